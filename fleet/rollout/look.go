package rollout

import "time"

// timer finds the earliest of the times at which to decide again.
type timer struct{ next time.Duration }

// at adds a time that is still to come, and ignores one that has passed.
func (t *timer) at(due time.Duration) {
	if due > 0 && (t.next == 0 || due < t.next) {
		t.next = due
	}
}

// lookAgain returns when to decide again if nothing happens: when the next time that a node or a pool waits for
// has passed. 0 means never.
func lookAgain(w *World, chosen *choice) time.Duration {
	t := timer{}
	for i := range chosen.pools {
		p := &chosen.pools[i]
		if p.clock.Wave > 0 && p.counts(&p.clock) {
			t.at(persist - p.clock.Elapsed%persist)
			t.at(p.rules.deadline - p.clock.Idle)
		}
		if p.clock.Soaking {
			t.at(p.wave().soak - p.clock.Soaked)
		}
		for m := range p.each {
			m.due(w, &p.rules, &t)
		}
	}
	for _, rejected := range w.Turned {
		t.at(rejectedFor - rejected.Age)
	}
	for _, g := range chosen.gates() {
		if !g.change.IsZero() {
			t.at(g.change.Sub(w.Now))
		}
	}
	return t.next
}

// due adds the times that matter for a member.
func (m *member) due(w *World, r *rules, t *timer) {
	if m.seen.Runs {
		t.at(r.settle - m.seen.Running)
	}
	if m.seen.Phase == Applying {
		t.at(r.deadline - m.seen.Unanswered)
	}
	if m.labelsMoved {
		t.at(labelsStill - m.seen.AsksFor)
	}
	if m.seen.Upgraded {
		t.at(r.unreadyAfter - m.seen.Upheld)
	}
	if m.seen.Ill {
		t.at(r.unreadyAfter - m.seen.IllFor)
	}
	if m.node.Draining {
		t.at(drainLook)
	}
	if m.class == Joining {
		t.at(youth - w.Now.Sub(m.node.Created))
	}
}
