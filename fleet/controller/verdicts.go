package controller

import (
	"maps"
	"sync"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// verdicts knows which pools have heard one, and measures how long after a pool's first verdict an assignment was still sent. The times are this
// process's.
type verdicts struct {
	mutex sync.Mutex
	// count is how many were heard of each pool, and known how many when the Nodes were last looked at.
	count, known map[string]int
	heard        map[string]time.Duration // of each pool, since the last stop
	sent         map[string]time.Duration
}

func newVerdicts() *verdicts {
	return &verdicts{count: map[string]int{}, known: map[string]int{}, heard: map[string]time.Duration{}, sent: map[string]time.Duration{}}
}

// hear is called by a watch, with a Node that has changed.
func (v *verdicts) hear(n *rollout.Node, now time.Duration) {
	if !rollout.IsVerdict(n.Reason) || n.RetryHeard != n.Retry || n.Retry.Pool == "" {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.count[n.Retry.Pool]++
	if _, is := v.heard[n.Retry.Pool]; !is {
		v.heard[n.Retry.Pool] = now
	}
}

// look is called before the Nodes are read: what was heard by then is in the cache.
func (v *verdicts) look() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.known = maps.Clone(v.count)
}

// overtaken: what was decided for the pool may not hold any more.
func (v *verdicts) overtaken(pool string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.count[pool] > v.known[pool]
}

func (v *verdicts) assigned(pool string, now time.Duration) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.sent[pool] = now
}

// stopped is for how long after the verdict that stopped the pool assignments were sent.
func (v *verdicts) stopped(pool string) time.Duration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	heard, is := v.heard[pool]
	delete(v.heard, pool)
	if !is {
		return 0
	}
	return max(0, v.sent[pool]-heard)
}
