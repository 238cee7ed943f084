package controller

import (
	"sync"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// verdicts measures how long after a pool's first verdict an assignment was still sent. The times are this process's.
type verdicts struct {
	mutex sync.Mutex
	heard map[string]time.Duration // of each pool, since the last stop
	sent  map[string]time.Duration
}

func newVerdicts() verdicts {
	return verdicts{heard: map[string]time.Duration{}, sent: map[string]time.Duration{}}
}

// hear is called by a watch, with a Node that has changed.
func (v *verdicts) hear(n *rollout.Node, now time.Duration) {
	if !rollout.IsVerdict(n.Reason) || n.RetryObserved != n.Retry || n.Retry.Pool == "" {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, is := v.heard[n.Retry.Pool]; !is {
		v.heard[n.Retry.Pool] = now
	}
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
