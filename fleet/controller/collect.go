package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// collectEvery is how often that is looked for.
const collectEvery = time.Minute

// collect deletes what nothing names any more, a few at a time. What it deletes does not come back by itself, so it compares its caches with
// what the API server holds now first, and then looks once more.
func (c *Controller) collect(ctx context.Context, w *rollout.World) error {
	now := c.monotonic()
	if now-c.collected < collectEvery {
		return nil
	}
	c.collected = now
	if err := c.recordGone(ctx, w); err != nil {
		c.log.Error(err, "what was kept of a pool that is gone stays") // nobody waits for that
	}
	if len(c.spent(w)) == 0 {
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
	spent := c.spent(&again)
	for _, object := range spent[:min(len(spent), patchesPerSecond)] {
		if err := c.delete(ctx, object); err != nil {
			return fmt.Errorf("collecting %s: %w", object.GetName(), err)
		}
		c.log.Info("nothing names it any more, so it was deleted", "name", object.GetName())
	}
	return nil
}

// collectsIn is when to look again for what can be collected although nothing happens; 0 is never.
func (c *Controller) collectsIn(w *rollout.World) time.Duration {
	if len(c.kept.gone(w))+len(c.kept.goneRecords) == 0 {
		return 0
	}
	return max(time.Millisecond, c.collected+collectEvery-c.monotonic())
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
