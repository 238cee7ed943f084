package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const (
	// goneFor is how long a pool has to be deleted before its objects are collected, because GitOps tools and restored backups make pools again.
	goneFor = 24 * time.Hour
	// goneLabel is on the ConfigMap that records that a pool is deleted. Its creationTimestamp is the time that counts, because no process knows when the
	// pool was deleted. That time is later than the deletion, so objects are kept for longer, and never for shorter.
	goneLabel = "kubelet-supervisor.io/gone-pool"
)

// orphans are the names of the objects of a deleted pool.
type orphans struct{ revisions, variants []string }

// gone returns the deleted pools that have left objects.
func (o *ownedObjects) gone(w *rollout.World) map[string]orphans {
	there, gone := namesOf(w.Pools), map[string]orphans{}
	for _, name := range slices.Sorted(maps.Keys(o.objects)) {
		if object := o.objects[name]; isOurs(object) && !there[object.Labels[PoolLabel]] {
			of := gone[object.Labels[PoolLabel]]
			of.revisions = append(of.revisions, name)
			gone[object.Labels[PoolLabel]] = of
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.variants)) {
		if object := o.variants[name]; isOurs(object) && !there[object.Labels[PoolLabel]] {
			of := gone[object.Labels[PoolLabel]]
			of.variants = append(of.variants, name)
			gone[object.Labels[PoolLabel]] = of
		}
	}
	return gone
}

func namesOf(pools []rollout.Pool) map[string]bool {
	names := make(map[string]bool, len(pools))
	for i := range pools {
		names[pools[i].Name] = true
	}
	return names
}

// isGoneRecord reports whether an object is the record of a deleted pool, and was made by this controller.
func isGoneRecord(object client.Object) bool {
	pool := object.GetLabels()[goneLabel]
	record, is := object.(*corev1.ConfigMap)
	return is && pool != "" && record.Labels[managedByLabel] == Name && record.Name == goneName(pool) &&
		record.Immutable != nil && *record.Immutable && record.Data[goneKey] == pool
}

// goneKey is the key of the record with the name of the pool. Labels alone are no proof, because others may write them.
const goneKey = "pool"

func goneName(pool string) string { return "pool-" + pool + "-gone" }

// recordGone makes a record for each pool that is gone, and deletes those of pools that are back, or of which
// nothing is left. It does so in every turn, because a pool may be back for a moment only, and then a day begins
// again.
func (c *collector) recordGone(ctx context.Context, gone map[string]orphans, owned *ownedObjects) error {
	var attempts []attempt
	superseded := map[string]bool{}
	drop := func(record *corev1.ConfigMap) {
		pool := record.Labels[goneLabel]
		superseded[pool] = true
		attempts = append(attempts, attempt{c.refusedRecords, pool, string(record.UID), func() error {
			if err := c.maker.delete(ctx, record); err != nil {
				return fmt.Errorf("deleting the record that pool %s is gone: %w", pool, err)
			}
			return nil
		}})
	}
	for _, record := range owned.outdated {
		drop(record)
	}
	for pool, record := range owned.goneRecords {
		if _, is := gone[pool]; !is {
			drop(record)
		}
	}
	for pool := range gone {
		if owned.goneRecords[pool] == nil && !superseded[pool] { // both have the same name
			attempts = append(attempts, attempt{c.refusedRecords, pool, goneName(pool), func() error { return c.makeRecord(ctx, pool) }})
		}
	}
	return c.refusedRecords.tryAll(ctx, attempts)
}

func (c *collector) makeRecord(ctx context.Context, pool string) error {
	immutable := true
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: goneName(pool),
		Labels: map[string]string{goneLabel: pool, managedByLabel: Name}}, Immutable: &immutable, Data: map[string]string{goneKey: pool, "about": "KubeletPool " + pool +
		" is gone since this was made. What was kept of it, and no node names, is deleted a day later."}}
	var there corev1.ConfigMap
	stored, err := c.maker.make(ctx, making{record, &there, func() bool { return isGoneRecord(&there) }, c.refusedRecords.all[record.Name].altered})
	if err != nil {
		return fmt.Errorf("recording that pool %s is gone: %w", pool, err)
	}
	if stored == &there { // it was made before, and the cache does not have it yet
		return nil
	}
	c.log.Info("a pool is gone, so its revisions and variants that no node refers to are deleted after a day", "pool", pool)
	return nil
}

// abandoned returns the objects of pools that have been deleted for long enough.
func (o *ownedObjects) abandoned(w *rollout.World) (all []client.Object) {
	gone := o.gone(w)
	for _, pool := range slices.Sorted(maps.Keys(gone)) {
		record := o.goneRecords[pool]
		if record == nil || w.Now.Sub(record.CreationTimestamp.Time) < goneFor {
			continue
		}
		revisions, variants := rollout.CollectGone(*w, pool, gone[pool].revisions, gone[pool].variants)
		for _, name := range revisions {
			all = append(all, o.objects[name])
		}
		for _, name := range variants {
			all = append(all, o.variants[name])
		}
	}
	return all
}
