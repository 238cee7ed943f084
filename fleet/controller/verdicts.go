package controller

import (
	"maps"
	"sync"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// verdicts counts the verdicts of nodes by pool, and measures how long after the first verdict of a pool an assignment was still sent. Watches call it
// concurrently. The times are of this process.
type verdicts struct {
	mutex sync.Mutex
	// count is how many verdicts came in each pool, and known how many had come when the Nodes were last read.
	count, known map[string]int
	heard        map[string]time.Duration // the first since the last stop, by pool
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

// look is called before the Nodes are read: the verdicts that have come by then are in the cache.
func (v *verdicts) look() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.known = maps.Clone(v.count)
}

// overtaken reports whether a verdict has come since the last look, so that the decision for the pool may be wrong.
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

// stopped returns for how long assignments were sent after the verdict that stopped the pool.
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
