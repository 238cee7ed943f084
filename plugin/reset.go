package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newReset(s *cmdutil.Factory) *cobra.Command {
	var o changeOptions
	command := &cobra.Command{
		Use:               "reset (NODE... | -l SELECTOR)",
		Short:             "Take the assignment away: nodes go back to their own configuration",
		Example:           "  kubectl kubelet reset n1",
		ValidArgsFunction: s.CompleteNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.complete(arguments); err != nil {
				return err
			}
			client, err := s.Connect()
			if err != nil {
				return err
			}
			return runReset(command.Context(), s, client, o)
		},
	}
	o.addFlags(command)
	return command
}

func runReset(ctx context.Context, s *cmdutil.Factory, client kubernetes.Interface, o changeOptions) error {
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	return changeNodes(ctx, s, client, o, []target{{views: views}}, "Reset")
}

func previewReset(s *cmdutil.Factory, views []view.Node) {
	for _, v := range views {
		s.Note("%s: goes from %s back to its own configuration, which only the node knows", v.Name, v.AssignmentText())
	}
}

func resetNode(ctx context.Context, s *cmdutil.Factory, w *writer, v view.Node, o changeOptions, leavers *leavers) error {
	after, err := w.write(ctx, v, nodev1.Assignment{}, "")
	if err != nil {
		return err
	}
	if err := s.PrintObject(o.print, o.dryRun.Did("reset"), after.Node); err != nil || o.dryRun != cmdutil.DryRunNone {
		return err
	}
	if o.wait.wait {
		if err := await(ctx, s, w.client, v.Name, goal{}, o.wait); err != nil {
			return err
		}
	}
	leavers.add(v)
	return nil
}
