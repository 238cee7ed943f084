package core

// A model of the hold, beside the core's: what the looks have answered, and which approvals had their effect.

// harm is what is known of a change.
type harm int

const (
	notAsked harm = iota // or nobody has answered
	harmful
	harmless
)

// expectApproved: of our own choice no kubelet is stopped for a change that would kill pods by the newest answer, or of which nobody has
// answered, without an approval that is on the disk; and each approval is worth one change.
func (d *drive) expectApproved(e Event) {
	d.t.Helper()
	d.learn(e)
	stop, is := d.step.Do.(Stop)
	s := d.s
	if !is || stop.Hung != "" || s.Stopping || s.Disruption != Hold || !runsWithoutFailure(&s) || noHealthyFallback(&s) {
		return
	}
	change := HoldTold{Runs: s.contentRun(), To: s.contentOf(wanted(&s))}
	if d.knows[change] == harmless {
		return
	}
	if approval := d.disk.Approval; approval == "" || d.used[approval] {
		d.t.Fatalf("from %s to %s without an approval, spent is %q: %+v, %s", change.Runs, change.To, approval, s.Outlook, d.shown())
	}
	d.used[d.disk.Approval] = true
}

func (d *drive) learn(e Event) {
	switch e := e.(type) {
	case Foreseen:
		change := HoldTold{Runs: e.Runs, To: e.Content}
		switch known := d.knows[change]; {
		case e.Lost > 0:
			d.knows[change] = harmful
		case len(e.Obstacles) > 0 && known == harmful:
		case len(e.Obstacles) > 0: // that it costs no pod is not enough
			d.knows[change] = notAsked
		case e.Known, e.WaitsFor == "" && known != harmful:
			d.knows[change] = harmless
		case known == harmless: // what was known may have changed since
			d.knows[change] = notAsked
		}
	case Assigned:
		d.forget(e.Version.Content)
	case Cleared:
		d.forget(d.s.Local)
	}
}

// forget is for another change: the holds of those before have ended.
func (d *drive) forget(asked string) {
	for change := range d.knows {
		if change.To != asked {
			delete(d.knows, change)
		}
	}
}
