package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// undoOptions are the flags of rollout undo.
type undoOptions struct {
	steerOptions
	to      int64 // the requested revision, if asked is set
	asked   bool
	toLocal bool
	yes     bool
}

func newUndo(f *cmdutil.Factory) *cobra.Command {
	o := &undoOptions{steerOptions: steerOptions{Factory: f, did: "undone"}}
	command := o.steering(&cobra.Command{
		Use:   "undo POOL",
		Short: "Go back to the revision that was completed before",
		Long: `Go back: in the middle of a rollout, or after a stop, to the revision that was completed last; from a completed one to the one that was completed
before it. Nodes go back within maxUnavailable, and a node that has not begun with its assignment gets the old one without a restart. While the pool is on its way back,
the same command changes nothing. No node goes back while the pool is paused, while its maxUnavailable is 0, or while a KubeletRolloutBudget that
takes the node is frozen: the command says so.

The nodes' own configuration is reached by --to-local alone. That, and a revision that was never completed, is shown and asked for first; scripts
give --yes.

The pool is pinned to that revision (spec.rollout.pin), whatever its layers say. Change the layers, and let it follow them again with kubectl kubelet
rollout unpin.`,
		Example: `  kubectl kubelet rollout undo workers
  kubectl kubelet rollout undo workers --to-revision=5
  kubectl kubelet rollout undo workers --to-local`,
	})
	command.RunE = cmdutil.RunE(o)
	command.Flags().Int64Var(&o.to, "to-revision", 0, "a revision of rollout history")
	command.Flags().Lookup("to-revision").DefValue = ""
	command.Flags().BoolVar(&o.toLocal, "to-local", false, "go to the nodes' own configuration")
	command.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return command
}

// Complete takes the name of the pool, and whether a revision was named.
func (o *undoOptions) Complete(command *cobra.Command, arguments []string) error {
	o.asked = command.Flags().Changed("to-revision")
	return o.steerOptions.Complete(command, arguments)
}

// Validate allows one way back.
func (o *undoOptions) Validate() error {
	switch {
	case o.asked && o.toLocal:
		return errors.New("give one of --to-revision and --to-local")
	case o.asked && o.to < 1:
		return fmt.Errorf("--to-revision=%d: revisions count from 1; kubectl kubelet rollout undo %s --to-local goes to the nodes' own configuration", o.to, o.pool)
	}
	return nil
}

// Run finds the revision to go back to, asks if it was never proven, and pins the pool to it.
func (o *undoOptions) Run(ctx context.Context) error {
	client, _, seen, err := openPool(ctx, o.Factory, o.pool)
	if err != nil {
		return err
	}
	shown, err := offer(ctx, o.Factory, client, seen, *o)
	if err != nil && !errors.Is(err, errNothingToDo) {
		return err
	}
	o.change = func(p pool, say notes) (map[string]any, error) {
		wanted, err := p.wayBack(*o)
		if err != nil {
			return nil, err
		}
		if err := p.mayGoTo(ctx, client, wanted); err != nil {
			return nil, err
		}
		if wanted != shown {
			return nil, fmt.Errorf("pool %s has changed in the meantime, and would go to %s, not to %s; look again", p.Name, wanted.Text(), shown.Text())
		}
		say("%s: %s, and pinned there; kubectl kubelet rollout unpin %s lets it follow its layers again", p.Name, p.wayTo(wanted), p.Name)
		say.managers(p, "pin")
		return inRollout(map[string]any{"pin": pinTo(wanted)}), nil
	}
	return o.steerOptions.Run(ctx)
}

// offer finds the revision to go back to, and prints what holds the pool. If the revision was never proven, it
// shows what would change, and asks.
func offer(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, p pool, o undoOptions) (wanted v1alpha1.RevisionName, err error) {
	if wanted, err = p.wayBack(o); err == nil {
		err = p.mayGoTo(ctx, client, wanted)
	}
	if err == nil || errors.Is(err, errNothingToDo) {
		warnOfHolds(ctx, f, client, p)
	}
	if err != nil {
		return wanted, err
	}
	if !wanted.Local && p.wasCompleted(wanted) {
		return wanted, nil
	}
	kept, err := view.ReadRevisions(ctx, client, p.Name)
	if err != nil {
		return wanted, err
	}
	f.Note("%s: %s%s", p.Name, p.wayTo(wanted), p.changeTo(wanted, kept))
	if n := p.onTarget(); n > 0 {
		f.Note("  %d of %s have %s", n, view.NodeCount(int(p.Status.Nodes.Selected)), p.Status.Target.Text())
	}
	if !wanted.Local {
		f.Note("  %s was never completed, so it goes by waves", wanted.Text())
	}
	if o.yes || o.dryRun != cmdutil.DryRunNone {
		return wanted, nil
	}
	return wanted, f.Confirm("Go to %s?", wanted.Text())
}

// wayTo returns from which revision to which the pool goes.
func (p pool) wayTo(wanted v1alpha1.RevisionName) string {
	switch t := p.Status.Target; {
	case t == nil:
		return "goes to " + wanted.Text()
	case t.RevisionName == wanted:
		return "stays at " + wanted.Text()
	default:
		return "from " + t.Text() + " back to " + wanted.Text()
	}
}

// changeTo returns what that does to the nodes that have the target.
func (p pool) changeTo(wanted v1alpha1.RevisionName, kept []view.Revision) string {
	if p.Status.Target == nil {
		return ""
	}
	story := rolloutView{pool: p, kept: kept}
	from, to := story.keptAs(p.Status.Target.RevisionName), story.keptAs(wanted)
	if change := view.ChangeText(from, to, 3); change != "" && (from != nil || to != nil) {
		return ": " + change
	}
	return ""
}

// onTarget returns how many members have the target.
func (p pool) onTarget() int32 {
	n := p.Status.Nodes
	return n.Applying + n.Waiting + n.OnTrial + n.Proven + n.Failed + n.Blocked
}

// pinTo returns a merge patch of the pin that replaces any pin before.
func pinTo(name v1alpha1.RevisionName) map[string]any {
	if name.Local {
		return map[string]any{"revision": nil, "local": true}
	}
	return map[string]any{"revision": name.Revision, "local": nil}
}

// wayBack returns the revision to go to: the requested one, else the one that was completed before.
func (p pool) wayBack(o undoOptions) (v1alpha1.RevisionName, error) {
	at, pin := p.Status.Target, p.Spec.Rollout.Pin
	switch {
	case o.asked || o.toLocal:
		wanted := v1alpha1.RevisionName{Revision: o.to, Local: o.toLocal}
		if pin != nil && pin.Name() == wanted {
			return wanted, nothingToDo("pool %s is pinned to %s already", p.Name, wanted.Text())
		}
		return p.named(wanted), nil
	case p.goesBack():
		return v1alpha1.RevisionName{}, nothingToDo("pool %s is on its way back to %s already; kubectl kubelet rollout status %s shows how far it is",
			p.Name, pin.Name().Text(), p.Name)
	case at == nil:
		return v1alpha1.RevisionName{}, fmt.Errorf("pool %s has assigned nothing yet, so there is nothing to undo; kubectl kubelet rollout pause %s holds it", p.Name, p.Name)
	case !p.Observed():
		return v1alpha1.RevisionName{}, fmt.Errorf("the newest change of pool %s has not been seen by the controller yet, so what an undo would go back to is not known; wait, or name it with --to-revision", p.Name)
	}
	before := p.completedBefore()
	if before == nil {
		return v1alpha1.RevisionName{}, fmt.Errorf(
			"pool %s has completed nothing before %s, so there is no revision to go back to; kubectl kubelet rollout undo %s --to-local goes to the nodes' own configuration",
			p.Name, at.Text(), p.Name)
	}
	if before.Local {
		return *before, fmt.Errorf("pool %s was at the nodes' own configuration before %s; kubectl kubelet rollout undo %s --to-local goes back there", p.Name, at.Text(), p.Name)
	}
	return *before, nil
}

// goesBack reports whether the pool is still on its way back to what was completed before.
func (p pool) goesBack() bool {
	pin, ready := p.Spec.Rollout.Pin, p.Condition(v1alpha1.ConditionReady)
	if pin == nil || p.Stopped() != nil {
		return false
	}
	to := p.named(pin.Name())
	if !to.Local && !p.wasCompleted(to) {
		return false
	}
	if !p.Observed() || ready == nil {
		return true
	}
	return ready.Reason != rollout.ReasonInvalidSpec && ready.Status != metav1.ConditionTrue
}

// completedBefore returns the revision that was completed last, other than the target; nil if there is none.
func (p pool) completedBefore() *v1alpha1.RevisionName {
	at := p.Status.Target.RevisionName
	for i := range p.Status.Completions {
		if name := &p.Status.Completions[i].RevisionName; *name != at && p.StopOf(name.Hash) == nil {
			return name
		}
	}
	return nil
}

// named returns the name with its hash, if the status has it.
func (p pool) named(name v1alpha1.RevisionName) v1alpha1.RevisionName {
	for _, r := range p.Status.Revisions {
		if r.Revision == name.Revision && r.Local == name.Local {
			return r.RevisionName
		}
	}
	return name
}

// wasCompleted reports whether the revision was stable at some time.
func (p pool) wasCompleted(name v1alpha1.RevisionName) bool {
	return slices.ContainsFunc(p.Status.Completions, func(c v1alpha1.Completion) bool { return c.RevisionName == name })
}

// mayGoTo returns an error if the controller does not store that revision, or if it was stopped.
func (p pool) mayGoTo(ctx context.Context, client kubernetes.Interface, to v1alpha1.RevisionName) error {
	if to.Local {
		return nil
	}
	for _, stop := range p.Status.Stops {
		if stop.Revision == to.Revision {
			return fmt.Errorf("pool %s does not go to %s, because it was stopped: %s; to try it again, give the pool its layers and use kubectl kubelet rollout retry %s",
				p.Name, to.Text(), view.StopText(stop), p.Name)
		}
	}
	kept, err := view.ReadRevisions(ctx, client, p.Name)
	if err != nil {
		return err
	}
	for _, r := range kept {
		if r.Number == to.Revision {
			if r.Tampered {
				return fmt.Errorf("pool %s: what is kept of %s is not what it was", p.Name, to.Text())
			}
			return nil
		}
	}
	return fmt.Errorf("pool %s has no %s; see kubectl kubelet rollout history %s", p.Name, to.Text(), p.Name)
}
