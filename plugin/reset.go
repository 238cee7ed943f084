package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// resetOptions are the flags of reset.
type resetOptions struct {
	*cmdutil.Factory
	changeOptions
}

func newReset(f *cmdutil.Factory) *cobra.Command {
	o := &resetOptions{Factory: f}
	command := &cobra.Command{
		Use:               "reset (NODE... | -l SELECTOR)",
		Short:             "Take the assignment away: nodes go back to their own configuration",
		Example:           "  kubectl kubelet reset n1",
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	o.addFlags(command)
	return command
}

// Run resets the nodes.
func (o *resetOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	return resetNodes(ctx, o.Factory, client, o.changeOptions)
}

func resetNodes(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o changeOptions) error {
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	return changeNodes(ctx, f, client, o, []target{{views: views}}, "Reset")
}

func previewReset(f *cmdutil.Factory, views []view.Node) {
	for _, v := range views {
		f.Note("%s: goes from %s back to its own configuration, which only the node knows", v.Name, v.AssignmentText())
	}
}

func resetNode(ctx context.Context, f *cmdutil.Factory, w *writer, v view.Node, o changeOptions, leavers *leavers) error {
	after, err := w.write(ctx, v, nodev1.Assignment{}, "")
	if err != nil {
		return err
	}
	if err := f.PrintObject(o.print, o.dryRun.Did("reset"), after.Node); err != nil || o.dryRun != cmdutil.DryRunNone {
		return err
	}
	if o.wait.wait {
		if err := await(ctx, f, w.client, v.Name, waitCondition{}, o.wait); err != nil {
			return err
		}
	}
	leavers.add(v)
	return nil
}
