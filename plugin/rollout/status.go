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

// poolInterval is the time between two looks at a pool. The controller writes its status once a second at most.
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
	command.Flags().BoolVarP(&o.follow, "watch", "w", true, "wait until it is through, and tell what happens meanwhile")
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

// Validate refuses numbers below zero.
func (o *statusOptions) Validate() error {
	if o.timeout < 0 || o.revision < 0 {
		return errors.New("--timeout and --revision cannot be negative")
	}
	return nil
}

// Run shows how far the revision is, and waits until it is through.
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

// overdue: nothing has moved for longer than the pool's progressDeadline.
func (p pool) overdue() error {
	c := p.Condition(v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != rollout.ReasonDeadlineExceeded || !p.Observed() {
		return nil
	}
	return fmt.Errorf("pool %s: %s", p.Name, bounded.Line(c.Message))
}

// lasts: asking again gives the same answer.
func lasts(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// A follower tells what becomes of a pool.
type follower struct {
	*cmdutil.Factory
	client  kubernetes.Interface
	pools   dynamic.ResourceInterface
	options statusOptions

	stage, said string // what was told last
	last        pool   // as it was seen last
}

// follow looks at the pool until its rollout has ended. What the API server cannot tell now it may tell later.
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
		case err != nil && ctx.Err() != nil: // it was this watching that ended the request
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

// endsAfter ends a context after a time, of which nobody who gets it knows: a client's rate limiter fails at once where it would have to wait for longer,
// and that would be the last word of a rollout that goes on.
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

// lastLook is how long a last look at the nodes may take, once the time of the user is over.
const lastLook = 5 * time.Second

// tell tells what is new: the whole story where another stage was reached, else one line. It tells whether the rollout has ended.
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

// moves: the revision is completed, and nodes that became members after that are on their way to it. Who is late and cannot be moved now, for it is
// NotReady or cordoned, is not waited for; nor is anybody who must not be seen.
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

// verdict tells whether there is nothing to wait for any more. The error is for what no waiting mends.
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

// stage changes where the whole story is worth to be told again.
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
