package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// memory is what one turn passes to the next. It is lost with the process.
type memory struct {
	seen   map[types.UID]rollout.Seen
	gone   []rollout.Gone
	clocks map[string]rollout.Clock
	// age is the sum of all elapsed times, and looked is when the Nodes were last read.
	age, looked time.Duration
	begun       bool
}

// vanished returns the names of the Nodes that had an assignment, and that are not in read.
func (m *memory) vanished(read map[types.UID]*readNode) map[types.UID]string {
	vanished := map[types.UID]string{}
	for uid, seen := range m.seen {
		if _, is := read[uid]; !is && seen.Mark.Pool != "" {
			vanished[uid] = seen.Name
		}
	}
	return vanished
}

// elapsed returns the time since the last call, and notes this one. It has to be called after the Nodes were read: what happened in between would
// otherwise seem older than it is.
func (m *memory) elapsed(now time.Duration) time.Duration {
	elapsed := now - m.looked
	m.looked = now
	if !m.begun {
		return 0
	}
	return min(elapsed, longestElapsed)
}

// remember keeps what a plan passes to the next. The clock of a pool whose status was not written stays as it was, because its decision does not
// count.
func (m *memory) remember(w *rollout.World, plan *rollout.Plan, written map[string]bool) {
	for name := range plan.Status {
		if written[name] {
			continue
		}
		if old, is := w.Clocks[name]; is {
			plan.Clocks[name] = old
		} else {
			delete(plan.Clocks, name)
		}
	}
	m.seen, m.gone, m.clocks = plan.Seen, plan.Gone, plan.Clocks
	m.age, m.begun = m.age+w.Elapsed, true
}
