package controller

import (
	"context"
	"errors"
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
	live   client.Reader // what the API server has
	writer writer        // fenced
	leader leader
	// monotonic is this machine's clock, serverTime the API server's.
	monotonic  func() time.Duration
	serverTime func() time.Time
	events     record.EventRecorder
	metrics    *metrics
	log        logr.Logger
	limiter    flowcontrol.RateLimiter

	caches  caches
	nodes   *nodeView
	pools   poolView
	budgets budgetView
	layers  layerView
	owned   *ownedObjects
	turned  turnedView
	unbound *unbound
	denied  denials
	memory  memory
	// refusedStatuses are by the name of the pool, and refusedBudgets by that of the budget.
	refusedStatuses, refusedBudgets *refusals
	collector                       *collector
	verdicts                        verdicts
	drains                          *drainer
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

// vanished are the names of the Nodes that were assigned something, and that are not among those.
func (m *memory) vanished(read map[types.UID]*readNode) map[types.UID]string {
	vanished := map[types.UID]string{}
	for uid, seen := range m.seen {
		if _, is := read[uid]; !is && seen.Mark.Pool != "" {
			vanished[uid] = seen.Name
		}
	}
	return vanished
}

// parts are what a Controller is made of.
type parts struct {
	cached, live client.Reader
	writer       writer
	leader       leader
	watches      *watchErrors
	monotonic    func() time.Duration
	serverTime   func() time.Time
	events       record.EventRecorder
	metrics      *metrics
	log          logr.Logger
}

func newController(p parts) *Controller {
	m := newMaker(p)
	return &Controller{caches: caches{p.cached, p.live, p.watches, -1}, live: p.live, writer: p.writer, leader: p.leader, monotonic: p.monotonic, serverTime: p.serverTime,
		events: p.events, metrics: p.metrics, log: p.log, limiter: flowcontrol.NewTokenBucketRateLimiter(patchesPerSecond, 1),
		nodes: newNodeView(), pools: newPoolView(), layers: newLayerView(), owned: newOwnedObjects(p, m), turned: turnedView{}, unbound: newUnbound(p.monotonic),
		denied: newDenials(), refusedStatuses: newRefusals(p, refusedFirst, refusedFor), refusedBudgets: newRefusals(p, refusedFirst, refusedFor),
		collector: newCollector(p, m), verdicts: newVerdicts(), drains: newDrainer(p)}
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
	if err := c.caches.ensureFresh(ctx); err != nil {
		c.drains.follow(nil)
		c.log.Info("no decision is made until the caches have what the API server has", "why", err.Error())
		return reconcile.Result{RequeueAfter: askAgain}, nil
	}
	w, err := c.look(ctx)
	if err != nil {
		c.caches.distrust()
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

// decide makes a plan of which all is there that it needs. What the API server takes or refuses becomes part of the world, and it is decided once
// more.
func (c *Controller) decide(ctx context.Context, w *rollout.World) (rollout.Plan, error) {
	c.owned.refusedRevisions.begin()
	c.owned.refusedVariants.begin()
	for {
		w.RefusedRevisions, w.RefusedVariants = c.owned.refusedRevisions.words(), c.owned.refusedVariants.words()
		began := c.monotonic()
		plan := rollout.Decide(*w)
		c.metrics.decided(c.monotonic() - began)
		again, err := c.owned.ensure(ctx, w, &plan)
		if err != nil || !again {
			c.owned.refusedRevisions.end(err == nil)
			c.owned.refusedVariants.end(err == nil)
			return plan, err
		}
	}
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
	gone := c.owned.gone(w)
	err = c.collect(ctx, w, gone)
	return sooner(again, c.collector.next(gone, c.owned)), err
}

// collect deletes what nothing names any more. What is deleted does not come back automatically, so the caches are first compared with what the API
// server has, and read again.
func (c *Controller) collect(ctx context.Context, w *rollout.World, gone map[string]orphans) error {
	failure := c.collector.recordGone(ctx, gone, c.owned)
	if !c.collector.begin() {
		return failure
	}
	spent := c.owned.spent(w)
	if len(spent) > 0 {
		if !c.collector.due(spent) {
			return failure
		}
		c.caches.distrust()
		if err := c.caches.ensureFresh(ctx); err != nil {
			return failure // later
		}
		again, err := c.look(ctx)
		if err != nil {
			return failure
		}
		spent = c.owned.spent(&again)
	}
	return errors.Join(failure, c.collector.delete(ctx, spent))
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
	for _, all := range []*refusals{c.owned.refusedRevisions, c.owned.refusedVariants, c.refusedStatuses} {
		in = sooner(in, all.next())
	}
	return in
}
