package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const (
	// collectEvery is how often that is looked for.
	collectEvery = time.Minute
	// uncollectedFor is the longest pause before it is tried again to delete something, or to make a record that a pool is gone.
	uncollectedFor = time.Hour
)

// collect deletes what nothing names any more, a few objects at a time, and gives when to look again although nothing happens; 0 is never.
func (c *Controller) collect(ctx context.Context, w *rollout.World) (again time.Duration, failure error) {
	now, gone := c.monotonic(), c.kept.gone(w)
	failure = c.recordGone(ctx, gone)
	if now-c.collected >= collectEvery {
		c.collected = now
		failure = errors.Join(failure, c.collectSpent(ctx, w))
	}
	if len(gone)+len(c.kept.goneRecords)+len(c.kept.outdated)+len(c.refusedDeletions.all) > 0 {
		again = max(time.Millisecond, c.collected+collectEvery-c.monotonic())
	}
	return again, failure
}

// collectSpent deletes revisions and variants. They do not come back automatically, so it first compares the caches with what the API server holds
// now, and looks again.
func (c *Controller) collectSpent(ctx context.Context, w *rollout.World) error {
	spent := c.spent(w)
	if len(spent) == 0 {
		return c.tryAll(ctx, &c.refusedDeletions, nil) // forgets what was refused
	}
	if !slices.ContainsFunc(spent, func(object client.Object) bool {
		return c.refusedDeletions.since(string(object.GetUID())) <= c.monotonic()
	}) {
		return nil
	}
	c.trusted = -1
	if err := c.believe(ctx); err != nil {
		return nil // later
	}
	again, err := c.look(ctx)
	if err != nil {
		return nil
	}
	var attempts []attempt
	for _, object := range c.spent(&again) {
		attempts = append(attempts, attempt{&c.refusedDeletions, object.GetLabels()[PoolLabel], string(object.GetUID()), func() error {
			if err := c.delete(ctx, object); err != nil {
				return fmt.Errorf("collecting %s: %w", object.GetName(), err)
			}
			c.log.Info("an object was deleted, because no node and no pool names it", "name", object.GetName())
			return nil
		}})
	}
	return c.tryAll(ctx, &c.refusedDeletions, attempts)
}

// tryAll makes a few attempts, first those that have waited for longest. Those that are refused, or that hang, hold up no others: these come first
// the next time.
func (c *Controller) tryAll(ctx context.Context, refused *refusals, attempts []attempt) (failure error) {
	refused.begin(c.monotonic())
	slices.SortStableFunc(attempts, longestWaiting)
	for _, a := range attempts {
		if len(refused.tried) == patchesPerSecond || c.monotonic()-refused.began > retryTime {
			return failure
		}
		_, err := c.try(ctx, a)
		failure = errors.Join(failure, err)
	}
	refused.end(true)
	return failure
}

// spent are the revisions and variants that this controller has made, and that nothing names.
func (c *Controller) spent(w *rollout.World) []client.Object {
	names := slices.Sorted(maps.Keys(c.kept.variants))
	names = slices.DeleteFunc(names, func(name string) bool { return !isOurs(c.kept.variants[name]) })
	var spent []client.Object
	for i := range w.Pools {
		revisions, variants := rollout.Collect(*w, w.Pools[i].Name, names)
		for _, name := range revisions {
			if object, is := c.kept.objects[name]; is && isOurs(object) {
				spent = append(spent, object)
			}
		}
		for _, name := range variants {
			spent = append(spent, c.kept.variants[name])
		}
	}
	return append(spent, c.abandoned(w)...)
}
