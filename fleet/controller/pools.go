package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// poolStatuses reads the KubeletPools, lays newer answers of the API server over the cache, and writes their statuses.
type poolStatuses struct {
	live      client.Reader
	writer    writer
	events    record.EventRecorder
	metrics   *metrics
	verdicts  *verdicts
	monotonic func() time.Duration
	log       logr.Logger
	refused   *refusals // by the name of the pool

	read map[string]readPool
	// ahead are answers that are newer than the cache.
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

func newPoolStatuses(p parts, v *verdicts) *poolStatuses {
	return &poolStatuses{live: p.live, writer: p.writer, events: p.events, metrics: p.metrics, verdicts: v, monotonic: p.monotonic, log: p.log,
		refused: newRefusals(p, refusedFirst, refusedFor), read: map[string]readPool{}, ahead: map[types.UID]*v1alpha1.KubeletPool{}, wrote: map[types.UID]time.Duration{}}
}

func (s *poolStatuses) answered(object *v1alpha1.KubeletPool) { s.ahead[object.UID] = object }

func (s *poolStatuses) pools(cached []v1alpha1.KubeletPool) []*v1alpha1.KubeletPool {
	pools := make([]*v1alpha1.KubeletPool, len(cached))
	ahead := make(map[types.UID]*v1alpha1.KubeletPool, len(s.ahead))
	for i := range cached {
		pools[i] = &cached[i]
		if answer, is := s.ahead[cached[i].UID]; is && newer(answer.ResourceVersion, cached[i].ResourceVersion) {
			pools[i], ahead[cached[i].UID] = answer, answer
		}
	}
	s.ahead = ahead
	return pools
}

// readAll reads the pools. A pool that is being deleted no longer counts.
func (s *poolStatuses) readAll(cached []v1alpha1.KubeletPool, revisions map[string]poolRevisions) []rollout.Pool {
	read := make(map[string]readPool, len(cached))
	var pools []rollout.Pool
	for _, object := range s.pools(cached) {
		if object.DeletionTimestamp != nil {
			continue
		}
		kept := revisions[object.Name]
		version := fmt.Sprint(object.UID, object.Generation, object.Annotations["kubernetes.io/change-cause"], " ", strings.Join(kept.versions, " "))
		known, is := s.read[object.Name]
		if !is || known.version != version {
			known = readPool{version: version, pool: rollout.ReadPool(object, kept.revisions, time.LoadLocation)}
		}
		known.object = object
		known.pool.Status = object.Status
		read[object.Name] = known
		pools = append(pools, known.pool)
	}
	s.read = read
	return pools
}

// mute are the pools whose statuses were refused a moment ago, so that nothing can be written for them now.
func (s *poolStatuses) mute() map[string]bool {
	now, mute := s.monotonic(), make(map[string]bool, len(s.refused.all))
	for pool, refused := range s.refused.all {
		mute[pool] = now < refused.due
	}
	return mute
}

// due is in how long the pool's status may be written again.
func (s *poolStatuses) due(uid types.UID) time.Duration {
	wrote, is := s.wrote[uid]
	if !is {
		return 0
	}
	return max(0, wrote+statusEvery-s.monotonic())
}
