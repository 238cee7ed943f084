package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

)

const (
	// collectEvery is how often that is looked for.
	collectEvery = time.Minute
	// uncollectedFor is the longest pause before it is tried again to delete something, or to make a record that a pool is gone.
	uncollectedFor = time.Hour
)

// collector deletes what nothing names any more.
type collector struct {
	maker     *maker
	monotonic func() time.Duration
	log       logr.Logger
	// Nobody waits for what these are of, so their pauses are long. They are by the UIDs of what is deleted, and by the names of what is made.
	refusedRecords, refusedDeletions *refusals
	// collected is when it was last looked for what nothing names.
	collected time.Duration
}

func newCollector(p parts, m *maker) *collector {
	return &collector{maker: m, monotonic: p.monotonic, log: p.log, refusedRecords: newRefusals(p, collectEvery, uncollectedFor),
		refusedDeletions: newRefusals(p, collectEvery, uncollectedFor)}
}

// begin says whether it is time to look for what nothing names. It is once a minute.
func (c *collector) begin() bool {
	now := c.monotonic()
	if now-c.collected < collectEvery {
		return false
	}
	c.collected = now
	return true
}

// due says whether any of these objects may be deleted now. All that was refused a moment ago has to wait.
func (c *collector) due(objects []client.Object) bool {
	return slices.ContainsFunc(objects, func(object client.Object) bool {
		return c.refusedDeletions.since(string(object.GetUID())) <= c.monotonic()
	})
}

// delete deletes a few of these objects, and forgets refusals of others.
func (c *collector) delete(ctx context.Context, objects []client.Object) error {
	var attempts []attempt
	for _, object := range objects {
		attempts = append(attempts, attempt{c.refusedDeletions, object.GetLabels()[PoolLabel], string(object.GetUID()), func() error {
			if err := c.maker.delete(ctx, object); err != nil {
				return fmt.Errorf("collecting %s: %w", object.GetName(), err)
			}
			c.log.Info("an object was deleted, because no node and no pool names it", "name", object.GetName())
			return nil
		}})
	}
	return c.refusedDeletions.tryAll(ctx, attempts)
}

// next is when to look again for what can be collected although nothing happens; 0 is never.
func (c *collector) next(gone map[string]orphans, owned *ownedObjects) time.Duration {
	if len(gone)+len(owned.goneRecords)+len(owned.outdated)+len(c.refusedDeletions.all) == 0 {
		return 0
	}
	return max(time.Millisecond, c.collected+collectEvery-c.monotonic())
}
