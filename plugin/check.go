package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// Exit codes of check, the same as those of kubelet-supervisor check --impact on the node.
const (
	checkUnknown exitCode = 3
	checkLost    exitCode = 4
)

// checkOptions are the flags of check.
type checkOptions struct {
	*cmdutil.Factory
	chosen view.Selection
	files  []string // [KEY=]FILE, the configuration first; "-" is stdin
	config string
}

func newCheck(f *cmdutil.Factory) *cobra.Command {
	o := &checkOptions{Factory: f}
	command := &cobra.Command{
		Use:   "check (NODE... | -l SELECTOR) (-f [KEY=]FILE... | --config [NAMESPACE/]NAME[/KEY])",
		Short: "Say which running pods a configuration would kill, before it is assigned",
		Long: `Ask nodes what a configuration would do to their running pods, before it is pushed or assigned. Nothing is changed.

A restarted kubelet admits every pod of its node again, and kills those that it refuses. One line for each node says which those are: by what its kubelet
runs with, its Node and pods, and what its kubelet measures. What is not known is said, and never guessed. It asks for get on nodes/proxy and list on pods.

The exit code is 0 when no pod would be lost, 4 when some certainly would on any of the nodes, 3 when that is not known of one, and 1 for an error.`,
		Example: `  kubectl kubelet check -l pool=workers -f kubelet.yaml
  kubectl kubelet check n1 --config workers-d5bf27f224`,
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVarP(&o.chosen.Selector, "selector", "l", "", "nodes by label")
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "the configuration, and other files for its ConfigMap; - is stdin")
	command.Flags().StringVar(&o.config, "config", "", "[NAMESPACE/]NAME[/KEY], instead of a file")
	return command
}

// Complete takes the names of nodes.
func (o *checkOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.chosen.Names = arguments
	return nil
}

// Validate requires nodes and one configuration.
func (o *checkOptions) Validate() error {
	if err := o.chosen.Validate(true); err != nil {
		return err
	}
	if (len(o.files) > 0) == (o.config != "") {
		return errors.New("give a file with -f, or a ConfigMap with --config")
	}
	return nil
}

// Run makes the forecasts, and returns an exitCode if a pod would be lost or nothing is known.
func (o *checkOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	written, err := documentToCheck(ctx, o.Factory, client, *o)
	if err != nil {
		return err
	}
	for _, warning := range written.Warnings {
		o.Note("warning: %s; kubelets ignore fields that they do not know", warning)
	}
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	if err := written.Shareable(); err != nil && len(views) > 1 {
		return fmt.Errorf("%d nodes cannot have it: %w", len(views), err)
	}
	impacts := make([]document.Impact, len(views))
	read := onceEach(client)
	askNodes(ctx, views, func(ctx context.Context, i int) {
		compared, err := compareWith(ctx, o.Factory, client, read, views[i], written)
		if err != nil {
			impacts[i] = document.UnknownImpact(err)
			return
		}
		impacts[i] = foresee(ctx, o.Factory, client, views[i], compared)
	})
	var code exitCode
	for i, found := range impacts {
		if _, err := fmt.Fprintf(o.Out, "%s: %s\n", views[i].Name, found.Text); err != nil {
			return err
		}
		code = max(code, impactCode(found))
	}
	if code != 0 {
		return code
	}
	return nil
}

// impactCode returns the exit code for an impact. A certain loss takes precedence over an unknown one.
func impactCode(i document.Impact) exitCode {
	switch {
	case i.Lost > 0:
		return checkLost
	case !i.Known:
		return checkUnknown
	}
	return 0
}

func documentToCheck(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o checkOptions) (document.Document, error) {
	if len(o.files) == 0 {
		wanted, err := document.ParseReference(o.config, f.Namespace())
		if err != nil {
			return document.Document{}, err
		}
		if wanted.IsLocal() {
			return document.Document{}, errors.New("a node's own configuration is known to the node alone; name another with --config")
		}
		found, wanted, err := view.GetConfigMap(ctx, client, wanted)
		if err != nil {
			return document.Document{}, err
		}
		written, err := document.Read(document.Payload(found), wanted.Key)
		if err != nil {
			return document.Document{}, fmt.Errorf("ConfigMap %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
		return written, written.Unmasked()
	}
	files, err := pushFiles(ctx, f, client, pushOptions{files: o.files})
	if err != nil {
		return document.Document{}, err
	}
	payload := map[string]string{}
	for _, file := range files {
		payload[file.Key] = string(file.Content)
	}
	written, err := document.Read(payload, files[0].Key)
	if err != nil {
		return document.Document{}, fmt.Errorf("%s: %w", files[0].Name, err)
	}
	return written, written.Unmasked()
}
