package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	*cmdutil.Factory
	node, config string
}

func newDiff(f *cmdutil.Factory) *cobra.Command {
	o := &diffOptions{Factory: f}
	command := &cobra.Command{
		Use:   "diff NODE",
		Short: "Compare what a node is assigned, or could be, with what its kubelet runs with",
		Long: `Compare, field by field, the configuration that a node is assigned, or the one of --config, with what its kubelet really runs with. What
differs although it is active is set by a kubelet flag or a drop-in file of the node. For layers it shows what changes now. Fields that the layers do not
set come from the node's own file, which cannot be read from here. The last line says which running pods the restart would kill.

The exit code is 0 when nothing differs, 1 when something does, and 2 for an error.`,
		Example: `  kubectl kubelet diff n1
  kubectl kubelet diff n1 --config workers-d5bf27f224`,
		Args:              cobra.ExactArgs(1),
		Annotations:       map[string]string{comparesAnnotation: "yes"},
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVar(&o.config, "config", "", "[NAMESPACE/]NAME[/KEY], instead of what is assigned")
	return command
}

// Complete takes the name of the node.
func (o *diffOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.node = arguments[0]
	return nil
}

// Validate has nothing to refuse.
func (o *diffOptions) Validate() error {
	return nil
}

// Run compares, and returns errDiffers if something differs.
func (o *diffOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	v, err := view.GetNode(ctx, client, o.node)
	if err != nil {
		return err
	}
	wanted, ok := v.Current()
	if o.config != "" {
		wanted, err = document.ParseReference(o.config, o.Namespace())
	} else if !ok {
		err = fmt.Errorf("node %s: the assignment %q is malformed; name a configuration with --config", v.Name, v.Says.Assignment)
	}
	switch {
	case err != nil:
		return err
	case wanted.IsLocal():
		return fmt.Errorf("node %s: its own configuration is known to the node alone; name another with --config, and see what runs with kubectl kubelet config %s", v.Name, v.Name)
	}
	configMap, wanted, err := view.GetConfigMap(ctx, client, wanted)
	if err != nil {
		return err
	}
	written, err := document.Read(document.Payload(configMap), wanted.Key)
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	compared, err := compareOne(ctx, o.Factory, client, v, written)
	if err != nil {
		return fmt.Errorf("node %s: %w", v.Name, err)
	}
	_, _ = fmt.Fprintf(o.Out, "%s runs %s; with %s:\n", v.Name, bounded.Line(nodev1.AssignmentOf(v.Says.Config.Active).String()), wanted)
	writeComparison(o.Out, compared, v)
	if compared.ChangesNothing() {
		return nil
	}
	_, _ = fmt.Fprintln(o.Out, "  "+foresee(ctx, o.Factory, client, v, compared).Text)
	return errDiffers
}
