package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
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
	for _, v := range views {
		s.note("%s: goes from %s back to its own configuration, which only the node knows", v.Name, firstOf(printable(v.assignment), localText))
	}
	if !o.yes && o.dryRun == dryRunNone {
		if err := s.confirm("Reset %s?", countNodes(views)); err != nil {
			return err
		}
	}
	return s.eachNode(ctx, views, o.parallel, func(ctx context.Context, v nodeView) error {
		return s.resetNode(ctx, client, v, o)
	})
}

func (s *session) resetNode(ctx context.Context, client kubernetes.Interface, v nodeView, o changeOptions) error {
	after, err := write(ctx, client, v, reference{}, o.dryRun)
	if err != nil {
		return err
	}
	if err := s.printObject(o.print, o.dryRun.did("reset"), after.Node); err != nil || o.dryRun != dryRunNone {
		return err
	}
	if v.carrier != carrierNone {
		if err := s.remember(ctx, client, v, goal{}); err != nil {
			s.note("%s: the reset is not recorded, so rollback will not know it: %v", v.Name, err)
		}
	}
	if o.wait.wait {
		if err := s.await(ctx, client, v.Name, goal{}, o.wait); err != nil {
			return err
		}
	}
	return s.revokeAfterReset(ctx, client, v)
}

// revokeAfterReset takes back what the node may read, where this person may: else prune does, by somebody who may.
func (s *session) revokeAfterReset(ctx context.Context, client kubernetes.Interface, v nodeView) error {
	err := s.revoke(ctx, client, "", v.Name, dryRunNone)
	if !apierrors.IsForbidden(err) {
		return err
	}
	r, ok := v.current()
	if !ok || r.local() || r.namespace == configNamespace {
		return nil // by the rules of install, which grants by no RoleBinding of ours
	}
	if err = s.revoke(ctx, client, r.namespace, v.Name, dryRunNone); apierrors.IsForbidden(err) {
		s.note("%s: what it may read in namespace %s stays (%v); kubectl kubelet prune removes it", v.Name, r.namespace, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("node %s is reset, but: %w", v.Name, err)
	}
	return nil
}
