package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// memory is what one decision leaves to the next.
type memory struct {
	seen   map[types.UID]rollout.Seen
	gone   []rollout.Gone
	clocks map[string]rollout.Clock
	// age is all elapsed time, and looked when the world was looked at last.
	age, looked time.Duration
	begun       bool
}

// vanished are the names of the Nodes that were assigned something, and that are not among those.
func (m *memory) vanished(read map[types.UID]*readNode) map[types.UID]string {
	vanished := map[types.UID]string{}
	for uid, seen := range m.seen {
		if _, is := read[uid]; !is && seen.Mark.Pool != "" {
			vanished[uid] = seen.Name
		}
	}
	return vanished
}

// elapsed is the time since the last decision. It is asked for when the Nodes have been read: what has come between could else seem to be older
// than it is.
func (m *memory) elapsed(now time.Duration) time.Duration {
	elapsed := now - m.looked
	m.looked = now
	if !m.begun {
		return 0
	}
	return min(elapsed, longestElapsed)
}

// remember keeps what a plan leaves to the next. For a pool whose status could not be written nothing was decided.
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
