package controller

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// ownedObjects are the revisions and variants of all pools: those of the cache, and those that this process has made and the cache does not have yet.
type ownedObjects struct {
	maker     *maker
	monotonic func() time.Duration
	// refusedRevisions and refusedVariants are by the names of the objects.
	refusedRevisions, refusedVariants *refusals

	read map[string]readRevision
	// madeRevisions and madeVariants are those that the cache has not shown yet.
	madeRevisions map[string]made[appsv1.ControllerRevision]
	madeVariants  map[string]made[corev1.ConfigMap]
	// objects and variants are what there is now, by name.
	objects  map[string]*appsv1.ControllerRevision
	variants map[string]*corev1.ConfigMap
	// goneRecords are the records of deleted pools, by the names of these. outdated are the records of pools that have existed again since, by UID.
	goneRecords map[string]*corev1.ConfigMap
	outdated    map[types.UID]*corev1.ConfigMap
}

type made[T any] struct {
	object *T
	at     time.Duration
}

type readRevision struct {
	version  string
	revision rollout.Revision
}

// poolRevisions are the revisions of one pool, and their versions.
type poolRevisions struct {
	revisions []rollout.Revision
	versions  []string
}

func newOwnedObjects(p parts, m *maker) *ownedObjects {
	return &ownedObjects{maker: m, monotonic: p.monotonic, refusedRevisions: newRefusals(p, refusedFirst, refusedFor),
		refusedVariants: newRefusals(p, refusedFirst, refusedFor), read: map[string]readRevision{},
		madeRevisions: map[string]made[appsv1.ControllerRevision]{}, madeVariants: map[string]made[corev1.ConfigMap]{}}
}

// readRevisions reads the revisions of each pool.
func (o *ownedObjects) readRevisions(cached []appsv1.ControllerRevision) map[string]poolRevisions {
	now := o.monotonic()
	o.objects = make(map[string]*appsv1.ControllerRevision, len(cached))
	var names []string
	for i := range cached {
		names = append(names, cached[i].Name)
		o.objects[cached[i].Name] = &cached[i]
		delete(o.madeRevisions, cached[i].Name)
	}
	for name, m := range o.madeRevisions {
		if now-m.at > lagLimit {
			delete(o.madeRevisions, name) // it was deleted since
			continue
		}
		names, o.objects[name] = append(names, name), m.object
	}
	read, pools := make(map[string]readRevision, len(names)), map[string]poolRevisions{}
	for _, name := range names {
		object := o.objects[name]
		version := string(object.UID) + "/" + object.ResourceVersion
		known, is := o.read[name]
		if !is || known.version != version {
			known = readRevision{version, rollout.ReadRevision(object.Labels[PoolLabel], name, object.Data.Raw)}
		}
		read[name] = known
		pool := pools[object.Labels[PoolLabel]]
		pool.revisions, pool.versions = append(pool.revisions, known.revision), append(pool.versions, version)
		pools[object.Labels[PoolLabel]] = pool
	}
	o.read = read
	return pools
}

// readVariants reads the ConfigMaps that are variants, and those that are records of deleted pools.
func (o *ownedObjects) readVariants(cached []corev1.ConfigMap, pools []rollout.Pool) {
	o.variants, o.goneRecords = make(map[string]*corev1.ConfigMap, len(cached)), map[string]*corev1.ConfigMap{}
	now, there, before := o.monotonic(), namesOf(pools), o.outdated
	o.outdated = map[types.UID]*corev1.ConfigMap{}
	for i := range cached {
		if object := &cached[i]; isGoneRecord(object) {
			if pool := object.Labels[goneLabel]; there[pool] || before[object.UID] != nil {
				o.outdated[object.UID] = object
			} else {
				o.goneRecords[pool] = object
			}
			continue
		}
		if _, is := cached[i].Labels[PoolLabel]; is || rollout.IsVariantName(cached[i].Name) {
			o.variants[cached[i].Name] = &cached[i]
			delete(o.madeVariants, cached[i].Name)
		}
	}
	for name, m := range o.madeVariants {
		if now-m.at > lagLimit {
			delete(o.madeVariants, name)
			continue
		}
		o.variants[name] = m.object
	}
}

// sound reports whether a variant exists, and has the content that its name stands for.
func (o *ownedObjects) sound(name string) bool {
	object := o.variants[name]
	return object != nil && !rollout.Tampered(object.Labels[PoolLabel], name, object.Data)
}

// broken returns the variants that are assigned to nodes, and that are not sound.
func (o *ownedObjects) broken(nodes []rollout.Node) []rollout.Broken {
	var broken []rollout.Broken
	for _, name := range rollout.Named(nodes) {
		if !o.sound(name) {
			broken = append(broken, rollout.Broken{Name: name, Tampered: o.variants[name] != nil})
		}
	}
	return broken
}

// spent returns the revisions and variants that this controller has made, and that nothing refers to.
func (o *ownedObjects) spent(w *rollout.World) []client.Object {
	names := slices.Sorted(maps.Keys(o.variants))
	names = slices.DeleteFunc(names, func(name string) bool { return !isOurs(o.variants[name]) })
	var spent []client.Object
	for i := range w.Pools {
		revisions, variants := rollout.Collect(*w, w.Pools[i].Name, names)
		for _, name := range revisions {
			if object, is := o.objects[name]; is && isOurs(object) {
				spent = append(spent, object)
			}
		}
		for _, name := range variants {
			spent = append(spent, o.variants[name])
		}
	}
	return append(spent, o.abandoned(w)...)
}
