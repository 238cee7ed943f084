package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const toRevisionFlag = "to-revision"

func newRolloutUndo(s *session) *cobra.Command {
	to := int64(-1)
	var command *cobra.Command
	command = s.steering(&cobra.Command{
		Use:   "undo POOL",
		Short: "Go back to the revision that was completed before",
		Long: `Go back: in the middle of a rollout, or after a stop, to the revision that was completed last; from a completed one to the completed one before
it. Where there is none, that is the nodes' own configuration, revision 0. Nodes go back in one wave, within maxUnavailable, and what was assigned
and not begun is taken back without a restart.

The pool is pinned to that revision (spec.rollout.pin), whatever its layers say. Change the layers, and let it follow them again with kubectl kubelet
rollout unpin.`,
		Example: `  kubectl kubelet rollout undo workers
  kubectl kubelet rollout undo workers --to-revision=5`,
	}, func(ctx context.Context, name string, o poolOptions) error {
		if !command.Flags().Changed(toRevisionFlag) {
			return s.undo(ctx, name, o, nil)
		}
		if to < 0 {
			return fmt.Errorf("--%s=%d: revisions count from 1, and 0 is the nodes' own configuration", toRevisionFlag, to)
		}
		return s.undo(ctx, name, o, &to)
	})
	command.Flags().Int64Var(&to, toRevisionFlag, to, "a revision of rollout history; 0 is the nodes' own configuration")
	command.Flags().Lookup(toRevisionFlag).DefValue = ""
	return command
}

func (s *session) undo(ctx context.Context, name string, o poolOptions, to *int64) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	return s.steer(ctx, name, "undone", o, func(p pool, say notes) (map[string]any, error) {
		wanted, err := p.wayBack(to)
		if err != nil {
			return nil, err
		}
		if err := p.mayGoTo(ctx, client, wanted); err != nil {
			return nil, err
		}
		way := "goes to " + revisionText(wanted)
		switch t := p.Status.Target; {
		case t != nil && t.Revision == wanted:
			way = "stays at " + revisionText(wanted)
		case t != nil:
			way = "from " + revisionText(t.Revision) + " back to " + revisionText(wanted)
		}
		say("%s: %s, and pinned there; kubectl kubelet rollout unpin %s lets it follow its layers again", p.Name, way, p.Name)
		if p.Spec.Rollout.Paused {
			say("warning: pool %s is paused, so nothing moves; kubectl kubelet rollout resume %s", p.Name, p.Name)
		}
		say.managers(p, "pin")
		return inRollout(map[string]any{"pin": wanted}), nil
	})
}

// wayBack is the revision to go back to: the one that is asked for, else the one that was completed before.
func (p pool) wayBack(to *int64) (int64, error) {
	at := p.Status.Target
	switch {
	case at == nil && to == nil:
		return 0, fmt.Errorf("pool %s has assigned nothing yet, so there is nothing to undo; kubectl kubelet rollout pause %s holds it", p.Name, p.Name)
	case to != nil:
		if pin := p.Spec.Rollout.Pin; pin != nil && *pin == *to {
			return 0, nothingToDo("pool %s is pinned to %s already", p.Name, revisionText(*to))
		}
		return *to, nil
	}
	stable := v1alpha1.RevisionName{}
	if p.Status.Stable != nil {
		stable = *p.Status.Stable
	}
	if stable != at.RevisionName {
		return stable.Revision, nil
	}
	if at.Revision == 0 {
		return 0, fmt.Errorf("pool %s is at the nodes' own configuration already; kubectl kubelet rollout undo %s --%s=N goes to a revision", p.Name, p.Name, toRevisionFlag)
	}
	before := int64(0)
	for _, r := range p.Status.Revisions {
		if r.Result == v1alpha1.ResultCompleted && r.Revision < at.Revision && p.stopOf(r.Hash) == nil {
			before = max(before, r.Revision)
		}
	}
	return before, nil
}

// mayGoTo: the controller keeps that revision, and it was not stopped.
func (p pool) mayGoTo(ctx context.Context, client kubernetes.Interface, number int64) error {
	if number == 0 {
		return nil
	}
	for _, stop := range p.Status.Stops {
		if stop.Revision == number {
			return fmt.Errorf("pool %s does not go to revision %d, for it was stopped: %s; to try it all the same, give the pool its layers and use kubectl kubelet rollout restart %s",
				p.Name, number, stopText(stop), p.Name)
		}
	}
	kept, err := readRevisions(ctx, client, p.Name)
	if err != nil {
		return err
	}
	for _, r := range kept {
		if r.Number == number {
			if r.Tampered {
				return fmt.Errorf("pool %s: what is kept of revision %d is not what it was", p.Name, number)
			}
			return nil
		}
	}
	return fmt.Errorf("pool %s has no revision %d; see kubectl kubelet rollout history %s", p.Name, number, p.Name)
}

// stopOf is the stop that holds against a revision; nil where there is none, or the attempt was raised since.
func (p pool) stopOf(hash string) *v1alpha1.Stop {
	for i := range p.Status.Stops {
		if stop := &p.Status.Stops[i]; stop.Hash == hash {
			return stop
		}
	}
	return nil
}

// stopped is the stop of the revision that the pool is at; nil where it goes on.
func (p pool) stopped() *v1alpha1.Stop {
	t := p.Status.Target
	if t == nil || p.Status.Stable != nil && *p.Status.Stable == t.RevisionName {
		return nil
	}
	if stop := p.stopOf(t.Hash); stop != nil && t.Attempt <= stop.Attempt {
		return stop
	}
	return nil
}

// stopText is who stopped a revision, and why.
func stopText(stop v1alpha1.Stop) string {
	return bounded.Line(fmt.Sprintf("%s %s: %s", stop.Node, stop.Reason, stop.Message))
}
