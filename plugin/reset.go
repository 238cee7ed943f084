package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
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
	views, err := o.chosen.nodes(ctx, client)
	if err != nil {
		return err
	}
	return s.change(ctx, client, o, []target{{views: views}}, "Reset")
}

func (s *session) previewReset(views []nodeView) {
	for _, v := range views {
		s.note("%s: goes from %s back to its own configuration, which only the node knows", v.Name, v.assignmentText())
	}
}

// assignmentText is the assignment for people, without a uid.
func (v nodeView) assignmentText() string {
	if r, ok := v.current(); ok {
		return r.Unpinned().String()
	}
	return bounded.Line(v.says.Assignment)
}

func (s *session) resetNode(ctx context.Context, w *writer, v nodeView, o changeOptions, leavers *leavers) error {
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
