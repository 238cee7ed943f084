package controller

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const (
	// patchesPerSecond is how fast Nodes are written at most.
	patchesPerSecond = 20
	// statusEvery is how often a pool's status is written at most.
	statusEvery = time.Second
	// longestElapsed: who has not looked for longer has not seen what happened meanwhile, so that time does not count.
	longestElapsed = time.Minute
	// askAgain is when to look again where something has to come right first.
	askAgain = time.Second
)

// Controller is the shell. Its turns come one after the other.
type Controller struct {
	cached client.Reader // what the API server held a moment ago
	live   client.Reader // what it holds
	writer writer        // fenced
	leader leader
	// monotonic is this machine's clock, serverTime the API server's.
	monotonic  func() time.Duration
	serverTime func() time.Time
	events     record.EventRecorder
	metrics    *metrics
	log        logr.Logger
	limiter    flowcontrol.RateLimiter

	nodes   *nodeView
	pools   poolView
	budgets budgetView
	layers  layerView
	kept    keptView
	turned  turnedView
	unbound *unbound
	denied  denials
	memory  memory
	// refusedRevisions and refusedVariants are by the names of the objects, refusedStatuses by that of the pool, and refusedBudgets by that of the budget.
	refusedRevisions, refusedVariants, refusedStatuses, refusedBudgets refusals
	// refusedRecords and refusedDeletions are of what nobody waits for, so the pauses are long. They are by the UIDs of what is deleted, and by the
	// names of what is made.
	refusedRecords, refusedDeletions refusals
	// troubles counts watches that have failed. trusted: the caches were found to be as the API server is after that many.
	troubles atomic.Int64
	trusted  int64
	// collected is when it was last looked for what nothing names.
	collected time.Duration
	verdicts  verdicts
	drains    *drainer
}

// writer is what a controller writes with.
type writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
	Status() client.SubResourceWriter
	SubResource(name string) client.SubResourceClient
}

// memory is what one decision leaves to the next.
type memory struct {
	seen   map[types.UID]rollout.Seen
	gone   []rollout.Gone
	clocks map[string]rollout.Clock
	// age is all elapsed time, and looked when the world was looked at last.
	age, looked time.Duration
	begun       bool
}

// parts are what a Controller is made of.
type parts struct {
	cached, live client.Reader
	writer       writer
	leader       leader
	monotonic    func() time.Duration
	serverTime   func() time.Time
	events       record.EventRecorder
	metrics      *metrics
	log          logr.Logger
}

func newController(p parts) *Controller {
	return &Controller{cached: p.cached, live: p.live, writer: p.writer, leader: p.leader, monotonic: p.monotonic, serverTime: p.serverTime,
		events: p.events, metrics: p.metrics, log: p.log, limiter: flowcontrol.NewTokenBucketRateLimiter(patchesPerSecond, 1),
		nodes: newNodeView(), pools: newPoolView(), layers: newLayerView(), kept: newKeptView(p.monotonic()), turned: turnedView{}, unbound: newUnbound(p.monotonic),
		denied: newDenials(), refusedRevisions: newRefusals(refusedFirst, refusedFor), refusedVariants: newRefusals(refusedFirst, refusedFor),
		refusedStatuses: newRefusals(refusedFirst, refusedFor), refusedBudgets: newRefusals(refusedFirst, refusedFor),
		refusedRecords: newRefusals(collectEvery, uncollectedFor), refusedDeletions: newRefusals(collectEvery, uncollectedFor),
		trusted: -1, verdicts: newVerdicts(), drains: newDrainer(p)}
}

// Reconcile is one turn.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := c.leader.waits(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if !c.leader.outlasts(requestTime) {
		c.drains.follow(nil)
		return reconcile.Result{RequeueAfter: askAgain}, nil
	}
	if err := c.believe(ctx); err != nil {
		c.drains.follow(nil)
		c.log.Info("no decision is made until the caches have what the API server has", "why", err.Error())
		return reconcile.Result{RequeueAfter: askAgain}, nil
	}
	w, err := c.look(ctx)
	if err != nil {
		c.trusted = -1
		c.drains.follow(nil)
		c.log.Info("no decision is made, because something is not known", "why", err.Error())
		return reconcile.Result{RequeueAfter: askAgain}, nil
	}
	plan, err := c.decide(ctx, &w)
	c.drains.follow(plan.Drains)
	if err != nil {
		return reconcile.Result{}, err
	}
	again, err := c.carryOut(ctx, &w, &plan)
	return reconcile.Result{RequeueAfter: again}, err
}

// carryOut does what the plan says, and gives when to look again; 0 is never.
func (c *Controller) carryOut(ctx context.Context, w *rollout.World, plan *rollout.Plan) (time.Duration, error) {
	again := min(plan.Look, longestElapsed)
	later, written, err := c.writeStatuses(ctx, w, plan)
	again = sooner(again, later)
	c.remember(w, plan, written)
	c.metrics.report(w, plan)
	again = sooner(again, c.tryAgain())
	if err != nil {
		return again, err
	}
	writes := c.writesOf(plan, written)
	if err := c.send(ctx, writes); err != nil {
		return again, err
	}
	again = sooner(again, c.writeBudgets(ctx, plan))
	if len(writes) > 0 {
		return time.Millisecond, nil // looks again after what was answered
	}
	later, err = c.collect(ctx, w)
	return sooner(again, later), err
}

// sooner is the first of two times, where 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// remember keeps what a plan leaves to the next. For a pool whose status could not be written nothing was decided.
func (c *Controller) remember(w *rollout.World, plan *rollout.Plan, written map[string]bool) {
	for name := range plan.Status {
		if written[name] {
			continue
		}
		if old, is := w.Clocks[name]; is {
			plan.Clocks[name] = old
		} else {
			delete(plan.Clocks, name)
		}
	}
	c.memory.seen, c.memory.gone, c.memory.clocks = plan.Seen, plan.Gone, plan.Clocks
	c.memory.age, c.memory.begun = c.memory.age+w.Elapsed, true
}

// writesOf are the writes of the pools whose decision is in their status. A cordon of ours is lifted without one. A Node that was put off for a
// moment is left out.
func (c *Controller) writesOf(plan *rollout.Plan, written map[string]bool) []rollout.Write {
	var writes []rollout.Write
	for _, w := range plan.Writes {
		if c.denied.rests(w.UID, c.monotonic()) {
			continue
		}
		if _, changes := plan.Status[w.Pool]; !changes || written[w.Pool] || w.Why == rollout.WhyUndrain {
			writes = append(writes, w)
		}
	}
	return writes
}

// tryAgain is when the first of what was refused, or was not told, is tried again; 0 is never.
func (c *Controller) tryAgain() (in time.Duration) {
	now := c.monotonic()
	in = sooner(c.denied.next(now), c.layers.next(now))
	for _, all := range []*refusals{&c.refusedRevisions, &c.refusedVariants, &c.refusedStatuses} {
		in = sooner(in, all.next(now))
	}
	return in
}
