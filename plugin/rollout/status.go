package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// poolInterval is the time between two reads of a pool. The controller writes its status at most once a second.
const poolInterval = time.Second

// statusOptions are the flags of rollout status.
type statusOptions struct {
	*cmdutil.Factory
	pool     string
	follow   bool
	timeout  time.Duration
	revision int64
	print    *genericclioptions.PrintFlags
}

func newStatus(f *cmdutil.Factory) *cobra.Command {
	o := &statusOptions{Factory: f}
	command := &cobra.Command{
		Use:   "status POOL",
		Short: "Show how far a pool's revision has come, and wait until it is through",
		Long: `Show how far the revision of a pool has come, with the nodes that are at risk and those that are not moved, and wait until it has reached all
nodes that it can reach, also those that became members since. Exit code 0: it has. 1: it was stopped, or could not be begun, or --timeout is over.
With --watch=false it does not wait, and ends with 1 when the revision was stopped, or nothing has moved for longer than spec.rollout.progressDeadline.`,
		Example: `  kubectl kubelet rollout status workers
  kubectl kubelet rollout status workers --watch=false
  kubectl kubelet rollout status workers --timeout=1h`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompletePools,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().BoolVarP(&o.follow, "watch", "w", true, "wait until it is completed, and show its progress")
	command.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait; 0: without end")
	command.Flags().Int64Var(&o.revision, "revision", 0, "the revision to wait for; it is an error when the pool is at another. 0: the one that the pool is at")
	o.print = cmdutil.PrintFlags(command, "")
	command.Flags().Lookup("output").Usage += "; then it does not wait"
	return command
}

// Complete takes the name of the pool.
func (o *statusOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.pool = arguments[0]
	return nil
}

// Validate refuses negative numbers.
func (o *statusOptions) Validate() error {
	if o.timeout < 0 || o.revision < 0 {
		return errors.New("--timeout and --revision cannot be negative")
	}
	return nil
}

// Run prints the progress of the revision, and waits until it is completed.
func (o *statusOptions) Run(ctx context.Context) error {
	client, pools, p, err := openPool(ctx, o.Factory, o.pool)
	if err != nil {
		return err
	}
	if *o.print.OutputFormat != "" {
		return o.PrintObject(o.print, "", p.Shown())
	}
	f := &follower{Factory: o.Factory, client: client, pools: pools, options: *o}
	switch done, err := f.tell(ctx, p); {
	case done || err != nil:
		return err
	case !o.follow:
		return p.overdue()
	}
	return f.follow(ctx, p.Name)
}

// overdue returns an error if nothing has moved for longer than the pool's progressDeadline.
func (p pool) overdue() error {
	c := p.Condition(v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != rollout.ReasonDeadlineExceeded || !p.Observed() {
		return nil
	}
	return fmt.Errorf("pool %s: %s", p.Name, bounded.Line(c.Message))
}

// lasts reports whether the same request would fail again.
func lasts(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// A follower prints the progress of a pool.
type follower struct {
	*cmdutil.Factory
	client  kubernetes.Interface
	pools   dynamic.ResourceInterface
	options statusOptions

	stage, said string // what was printed last
	last        pool   // as it was read last
}

// follow reads the pool until its rollout has ended. It tries again if the API server fails for a time.
func (f *follower) follow(ctx context.Context, name string) error {
	if f.options.timeout > 0 {
		var end context.CancelFunc
		ctx, end = endsAfter(ctx, f.options.timeout)
		defer end()
	}
	ticker := time.NewTicker(poolInterval)
	defer ticker.Stop()
	var failure error
	for {
		select {
		case <-ctx.Done():
			return f.ended(ctx, name, failure)
		case <-ticker.C:
		}
		p, err := view.GetPool(ctx, f.pools, name)
		switch {
		case err != nil && ctx.Err() != nil: // the context ended the request
			continue
		case err != nil && lasts(err):
			return err
		case err != nil:
			failure = err
			continue
		}
		failure = nil
		if done, err := f.tell(ctx, pool{p}); done {
			return err
		}
	}
}

// endsAfter ends a context after a time, without a deadline that a client can see: a client's rate limiter fails
// immediately if it would have to wait beyond the deadline, and its error would be the last message about a
// rollout that goes on.
func endsAfter(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

func (f *follower) ended(ctx context.Context, name string, failure error) error {
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("pool %s: stopped watching; its rollout goes on without that", name)
	}
	ctx, cancel := endsAfter(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	words := f.lookAt(ctx, f.last).standing()
	if failure != nil {
		return fmt.Errorf("pool %s: not within %s; last seen: %s; it cannot be seen now: %w", name, f.options.timeout, words, failure)
	}
	return fmt.Errorf("pool %s: not within %s: %s; its rollout goes on", name, f.options.timeout, words)
}

// lastLook limits a last read of the nodes after the user's timeout.
const lastLook = 5 * time.Second

// tell prints what is new: the whole view for a new stage, else one line. It returns whether the rollout has
// ended.
func (f *follower) tell(ctx context.Context, p pool) (done bool, err error) {
	f.last = p
	done, err = p.verdict(f.options.revision)
	if err != nil {
		return true, err
	}
	if stop := p.Stopped(); stop != nil && p.Observed() {
		return true, f.lookAt(ctx, p).stopError(*stop)
	}
	if done {
		done = !f.moves(ctx, p)
	}
	stage, said := p.stage(), p.countText()
	switch {
	case stage != f.stage:
		f.lookAt(ctx, p).write(f.Out)
	case said != f.said:
		_, _ = fmt.Fprintf(f.Out, "%s: %s\n", p.Name, said)
	}
	f.stage, f.said = stage, said
	return done, nil
}

// moves reports whether the revision is completed while new members are still on their way to it. It ignores late
// nodes that cannot be moved now, because they are NotReady or cordoned. It also returns false if the nodes cannot
// be read.
func (f *follower) moves(ctx context.Context, p pool) bool {
	n := p.Status.Nodes
	if n.Applying+n.OnTrial+n.Joining > 0 {
		return true
	}
	if n.Late == 0 {
		return false
	}
	story := f.lookAt(ctx, p)
	return story.unseen != nil && !lasts(story.unseen) || slices.ContainsFunc(story.view.Members, func(m rollout.Member) bool {
		return m.Class == rollout.Late && m.Node.Ready && !m.Node.Cordoned
	})
}

func (f *follower) lookAt(ctx context.Context, p pool) rolloutView {
	return viewOf(ctx, f.Factory, f.client, f.pools, p)
}

// verdict reports whether there is nothing left to wait for. It returns an error for a failure that waiting does
// not fix.
func (p pool) verdict(wanted int64) (done bool, err error) {
	ready := p.Condition(v1alpha1.ConditionReady)
	if !p.Observed() || ready == nil {
		return false, nil
	}
	if ready.Reason == rollout.ReasonInvalidSpec {
		return true, fmt.Errorf("pool %q: %s; the nodes keep what they have", p.Name, bounded.Line(ready.Message))
	}
	if t := p.Status.Target; wanted > 0 && t != nil && t.Revision != wanted {
		return true, fmt.Errorf("pool %q is at %s, not at revision %d", p.Name, t.Text(), wanted)
	}
	return ready.Status == metav1.ConditionTrue, nil
}

// stage returns a key that changes when the whole view is worth printing again.
func (p pool) stage() string {
	words := []string{fmt.Sprint(p.Status.Target), fmt.Sprint(p.Spec.Rollout.Pin != nil, p.Spec.Rollout.Paused, p.Observed())}
	if w := p.Status.Wave; w != nil {
		words = append(words, fmt.Sprint(w.Number))
	}
	if ready := p.Condition(v1alpha1.ConditionReady); ready != nil {
		words = append(words, ready.Reason)
	}
	return strings.Join(words, " ")
}
