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
	// patchesPerSecond limits how fast Nodes are written.
	patchesPerSecond = 20
	// statusEvery is the shortest time between two writes of a pool's status.
	statusEvery = time.Second
	// longestElapsed limits the time that counts as observed between two turns, because events during a longer gap were not seen.
	longestElapsed = time.Minute
	// askAgain is when to try again after something that a turn needs was not available.
	askAgain = time.Second
)

// Controller runs the turns, one after the other. Its values have the knowledge; it knows their order.
type Controller struct {
	leader leader
	// monotonic is the clock of this machine, serverTime that of the API server.
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

// writer is the part of a client that writes.
type writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
	Status() client.SubResourceWriter
	SubResource(name string) client.SubResourceClient
}

// parts are what a Controller gets from outside: clients, clocks, and where it reports.
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

// Reconcile is one turn. The manager calls it from one worker. An error is one that concerns all pools, and the queue calls again with a growing pause.
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
		c.log.Info("no decision is made until the caches have what the API server has", "error", err.Error())
		return reconcile.Result{RequeueAfter: askAgain}, nil
	}
	w, err := c.look(ctx)
	if err != nil {
		c.caches.distrust()
		c.drains.follow(nil)
		c.log.Info("no decision is made, because something is not known", "error", err.Error())
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

// decide makes a plan whose revisions and variants exist. What the API server accepts or refuses of them becomes part of the world, and then a new plan
// is made.
func (c *Controller) decide(ctx context.Context, w *rollout.World) (rollout.Plan, error) {
	c.owned.refusedRevisions.begin()
	c.owned.refusedVariants.begin()
	for {
		w.RefusedRevisions, w.RefusedVariants = c.owned.refusedRevisions.messages(), c.owned.refusedVariants.messages()
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

// carryOut does what the plan says, and returns when the next turn is due; 0 is never.
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
		return time.Millisecond, nil // the next turn sees the answers
	}
	gone := c.owned.gone(w)
	err = errors.Join(c.collector.recordGone(ctx, gone, c.owned), c.collect(ctx, w))
	return sooner(again, c.collector.next(gone, c.owned)), err
}

// collect deletes what nothing refers to. A deletion cannot be undone, so the caches are first compared with what
// the API server has, and read again.
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

// sooner is the shorter of two times, where 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// tryAgain is in how long the first request that was refused or not answered is sent again; 0 is never.
func (c *Controller) tryAgain() (in time.Duration) {
	now := c.monotonic()
	in = sooner(c.patcher.denied.next(now), c.layers.next(now))
	for _, all := range []*refusals{c.owned.refusedRevisions, c.owned.refusedVariants, c.pools.refused} {
		in = sooner(in, all.next())
	}
	return in
}
