package controller

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// keptView is the revisions and variants as this process knows them: those of the cache, and those that it has made since.
type keptView struct {
	read map[string]readRevision
	// madeRevisions and madeVariants are those that the cache has not shown yet.
	madeRevisions map[string]made[appsv1.ControllerRevision]
	madeVariants  map[string]made[corev1.ConfigMap]
	// objects and variants are what there is now, by name.
	objects  map[string]*appsv1.ControllerRevision
	variants map[string]*corev1.ConfigMap
	// goneRecords say since when pools are gone, by their names. outdated are the records of pools that have been back since, by UID.
	goneRecords map[string]*corev1.ConfigMap
	outdated    map[types.UID]*corev1.ConfigMap
	// remade is when an object was deleted to be made again, or because admission had changed it. begun is when this process began.
	remade map[string]time.Duration
	begun  time.Duration
}

type made[T any] struct {
	object *T
	at     time.Duration
}

type readRevision struct {
	version  string
	revision rollout.Revision
}

// keptRevisions are those of one pool, and what tells them from an earlier time.
type keptRevisions struct {
	revisions []rollout.Revision
	versions  []string
}

func newKeptView(now time.Duration) keptView {
	return keptView{read: map[string]readRevision{}, madeRevisions: map[string]made[appsv1.ControllerRevision]{},
		madeVariants: map[string]made[corev1.ConfigMap]{}, remade: map[string]time.Duration{}, begun: now}
}

// remadeLately says whether a name has to wait before its object may be deleted again.
func (v *keptView) remadeLately(name string, now time.Duration) bool {
	maps.DeleteFunc(v.remade, func(_ string, at time.Duration) bool { return now-at >= remadeEvery })
	_, lately := v.remade[name]
	return lately
}

// readRevisions are the revisions of each pool.
func (v *keptView) readRevisions(cached []appsv1.ControllerRevision, now time.Duration) map[string]keptRevisions {
	v.objects = make(map[string]*appsv1.ControllerRevision, len(cached))
	var names []string
	for i := range cached {
		names = append(names, cached[i].Name)
		v.objects[cached[i].Name] = &cached[i]
		delete(v.madeRevisions, cached[i].Name)
	}
	for name, m := range v.madeRevisions {
		if now-m.at > lagLimit {
			delete(v.madeRevisions, name) // somebody has deleted it meanwhile
			continue
		}
		names, v.objects[name] = append(names, name), m.object
	}
	read, pools := make(map[string]readRevision, len(names)), map[string]keptRevisions{}
	for _, name := range names {
		object := v.objects[name]
		version := string(object.UID) + "/" + object.ResourceVersion
		known, is := v.read[name]
		if !is || known.version != version {
			known = readRevision{version, rollout.ReadRevision(object.Labels[PoolLabel], name, object.Data.Raw)}
		}
		read[name] = known
		pool := pools[object.Labels[PoolLabel]]
		pool.revisions, pool.versions = append(pool.revisions, known.revision), append(pool.versions, version)
		pools[object.Labels[PoolLabel]] = pool
	}
	v.read = read
	return pools
}

// readVariants notes the ConfigMaps that are variants, and those that say that pools are gone.
func (v *keptView) readVariants(cached []corev1.ConfigMap, pools []rollout.Pool, now time.Duration) {
	v.variants, v.goneRecords = make(map[string]*corev1.ConfigMap, len(cached)), map[string]*corev1.ConfigMap{}
	there, before := namesOf(pools), v.outdated
	v.outdated = map[types.UID]*corev1.ConfigMap{}
	for i := range cached {
		if object := &cached[i]; isGoneRecord(object) {
			if pool := object.Labels[goneLabel]; there[pool] || before[object.UID] != nil {
				v.outdated[object.UID] = object
			} else {
				v.goneRecords[pool] = object
			}
			continue
		}
		if _, is := cached[i].Labels[PoolLabel]; is || rollout.IsVariantName(cached[i].Name) {
			v.variants[cached[i].Name] = &cached[i]
			delete(v.madeVariants, cached[i].Name)
		}
	}
	for name, m := range v.madeVariants {
		if now-m.at > lagLimit {
			delete(v.madeVariants, name)
			continue
		}
		v.variants[name] = m.object
	}
}

// sound: a variant is there, and what its name says.
func (v *keptView) sound(name string) bool {
	object := v.variants[name]
	return object != nil && !rollout.Tampered(object.Labels[PoolLabel], name, object.Data)
}

// broken are the variants that nodes have been assigned, and that are not sound.
func (v *keptView) broken(nodes []rollout.Node) []rollout.Broken {
	var broken []rollout.Broken
	for _, name := range rollout.Named(nodes) {
		if !v.sound(name) {
			broken = append(broken, rollout.Broken{Name: name, Tampered: v.variants[name] != nil})
		}
	}
	return broken
}
