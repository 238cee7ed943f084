package controller

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// poolView is the KubeletPools as this process knows them.
type poolView struct {
	read map[string]readPool
	// ahead are answers that the cache has not caught up with.
	ahead map[types.UID]*v1alpha1.KubeletPool
	// wrote is when each status was written last.
	wrote map[types.UID]time.Duration
}

// readPool is a pool, read once for each version of its spec and of its revisions.
type readPool struct {
	object  *v1alpha1.KubeletPool
	version string
	pool    rollout.Pool
}

func newPoolView() poolView {
	return poolView{read: map[string]readPool{}, ahead: map[types.UID]*v1alpha1.KubeletPool{},
		wrote: map[types.UID]time.Duration{}}
}

func (v *poolView) answered(object *v1alpha1.KubeletPool) { v.ahead[object.UID] = object }

func (v *poolView) pools(cached []v1alpha1.KubeletPool) []*v1alpha1.KubeletPool {
	pools := make([]*v1alpha1.KubeletPool, len(cached))
	ahead := make(map[types.UID]*v1alpha1.KubeletPool, len(v.ahead))
	for i := range cached {
		pools[i] = &cached[i]
		if answer, is := v.ahead[cached[i].UID]; is && newer(answer.ResourceVersion, cached[i].ResourceVersion) {
			pools[i], ahead[cached[i].UID] = answer, answer
		}
	}
	v.ahead = ahead
	return pools
}

// readAll are the pools. One that is being deleted is none any more: nothing of it waits for that.
func (v *poolView) readAll(cached []v1alpha1.KubeletPool, revisions map[string]poolRevisions) []rollout.Pool {
	read := make(map[string]readPool, len(cached))
	var pools []rollout.Pool
	for _, object := range v.pools(cached) {
		if object.DeletionTimestamp != nil {
			continue
		}
		kept := revisions[object.Name]
		version := fmt.Sprint(object.UID, object.Generation, object.Annotations["kubernetes.io/change-cause"], " ", strings.Join(kept.versions, " "))
		known, is := v.read[object.Name]
		if !is || known.version != version {
			known = readPool{version: version, pool: rollout.ReadPool(object, kept.revisions, time.LoadLocation)}
		}
		known.object = object
		known.pool.Status = object.Status
		read[object.Name] = known
		pools = append(pools, known.pool)
	}
	v.read = read
	return pools
}

// due is when the pool's status may be written again.
func (v *poolView) due(uid types.UID, now time.Duration) time.Duration {
	wrote, is := v.wrote[uid]
	if !is {
		return 0
	}
	return max(0, wrote+statusEvery-now)
}
