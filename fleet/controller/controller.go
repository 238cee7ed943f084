package controller

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/record"
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
	leader leader
	// monotonic is this machine's clock, serverTime the API server's.
	monotonic  func() time.Duration
	serverTime func() time.Time
	metrics    *metrics
	log        logr.Logger

	caches    caches
	nodes     *nodeView
	patcher   *patcher
	pools     *poolStatuses
	budgets   *budgetStatuses
	layers    layerView
	owned     *ownedObjects
	collector *collector
	failed    failedPods
	unbound   *unbound
	verdicts  *verdicts
	memory    memory
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
	nodes, verdicts, maker := newNodeView(p), newVerdicts(), newMaker(p)
	return &Controller{leader: p.leader, monotonic: p.monotonic, serverTime: p.serverTime, metrics: p.metrics, log: p.log,
		caches: caches{p.cached, p.live, p.watches, -1}, nodes: nodes, patcher: newPatcher(p, nodes, verdicts), pools: newPoolStatuses(p, verdicts),
		budgets: newBudgetStatuses(p), layers: newLayerView(), owned: newOwnedObjects(p, maker), collector: newCollector(p, maker),
		failed: failedPods{}, unbound: newUnbound(p.monotonic), verdicts: verdicts, drains: newDrainer(p)}
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
	later, written, err := c.pools.write(ctx, w, plan)
	again = sooner(again, later)
	c.memory.remember(w, plan, written)
	c.metrics.report(w, plan)
	again = sooner(again, c.tryAgain())
	if err != nil {
		return again, err
	}
	writes := c.patcher.writesOf(plan, written)
	if err := c.patcher.send(ctx, writes); err != nil {
		return again, err
	}
	again = sooner(again, c.budgets.write(ctx, plan))
	if len(writes) > 0 {
		return time.Millisecond, nil // looks again after what was answered
	}
	gone := c.owned.gone(w)
	err = errors.Join(c.collector.recordGone(ctx, gone, c.owned), c.collect(ctx, w))
	return sooner(again, c.collector.next(gone, c.owned)), err
}

// collect deletes what nothing names any more. What is deleted does not come back automatically, so the caches are first compared with what the API
// server has, and read again.
func (c *Controller) collect(ctx context.Context, w *rollout.World) error {
	if !c.collector.begin() {
		return nil
	}
	spent := c.owned.spent(w)
	if len(spent) > 0 {
		if !c.collector.due(spent) {
			return nil
		}
		c.caches.distrust()
		if err := c.caches.ensureFresh(ctx); err != nil {
			return nil // later
		}
		again, err := c.look(ctx)
		if err != nil {
			return nil
		}
		spent = c.owned.spent(&again)
	}
	return c.collector.delete(ctx, spent)
}

// sooner is the first of two times, where 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// tryAgain is when the first of what was refused, or was not told, is tried again; 0 is never.
func (c *Controller) tryAgain() (in time.Duration) {
	now := c.monotonic()
	in = sooner(c.patcher.denied.next(now), c.layers.next(now))
	for _, all := range []*refusals{c.owned.refusedRevisions, c.owned.refusedVariants, c.pools.refused} {
		in = sooner(in, all.next())
	}
	return in
}
