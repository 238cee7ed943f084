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
	// collectEvery is how often the collector looks for objects to delete.
	collectEvery = time.Minute
	// uncollectedFor is the longest pause before another attempt to delete an object, or to make the record of a deleted pool.
	uncollectedFor = time.Hour
)

// collector deletes what nothing refers to.
type collector struct {
	maker     *maker
	monotonic func() time.Duration
	log       logr.Logger
	// The pauses of these are long, because nothing waits for the objects. They are by the UIDs of objects to delete, and by the names of records to make.
	refusedRecords, refusedDeletions *refusals
	// collected is when the collector last looked for objects to delete.
	collected time.Duration
}

func newCollector(p parts, m *maker) *collector {
	return &collector{maker: m, monotonic: p.monotonic, log: p.log, refusedRecords: newRefusals(p, collectEvery, uncollectedFor),
		refusedDeletions: newRefusals(p, collectEvery, uncollectedFor)}
}

// begin reports whether it is time to look for objects to delete, and notes that.
func (c *collector) begin() bool {
	now := c.monotonic()
	if now-c.collected < collectEvery {
		return false
	}
	c.collected = now
	return true
}

// due reports whether any of these objects may be deleted now. One whose deletion was refused has to wait.
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
			c.log.Info("an object was deleted, because no node and no pool refers to it", "name", object.GetName())
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
