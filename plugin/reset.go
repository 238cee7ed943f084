package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newReset(s *session) *cobra.Command {
	var o changeOptions
	command := &cobra.Command{
		Use:               "reset (NODE... | -l SELECTOR)",
		Short:             "Take the assignment away: nodes go back to their own configuration",
		Example:           "  kubectl kubelet reset n1",
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.complete(arguments); err != nil {
				return err
			}
			client, err := s.connect()
			if err != nil {
				return err
			}
			return s.reset(command.Context(), client, o)
		},
	}
	o.addFlags(command)
	return command
}

func (s *session) reset(ctx context.Context, client kubernetes.Interface, o changeOptions) error {
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	return s.change(ctx, client, o, []target{{views: views}}, "Reset")
}

func (s *session) previewReset(views []view.Node) {
	for _, v := range views {
		s.note("%s: goes from %s back to its own configuration, which only the node knows", v.Name, v.AssignmentText())
	}
}

func (s *session) resetNode(ctx context.Context, w *writer, v view.Node, o changeOptions, leavers *leavers) error {
	after, err := w.write(ctx, v, nodev1.Assignment{}, "")
	if err != nil {
		return err
	}
	if err := s.printObject(o.print, o.dryRun.did("reset"), after.Node); err != nil || o.dryRun != dryRunNone {
		return err
	}
	if o.wait.wait {
		if err := s.await(ctx, w.client, v.Name, goal{}, o.wait); err != nil {
			return err
		}
	}
	leavers.add(v)
	return nil
}
