package rollout

import (
	"cmp"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// rate is how many writes a plan has at most: after as many answers it is time to look again.
const rate = 8

// choose says whom to assign now. What takes something back or lets a new node in needs no room; everything else is within the wave and
// within maxUnavailable.
func (d *decision) choose(p *pool) {
	p.answered = p.placed()
	if !d.w.Synced || d.w.Mute[p.Name] {
		return
	}
	if !p.target.there {
		d.untaint(p)
		return
	}
	d.lack(p)
	d.join(p)
	d.untaint(p)
	if !p.Spec.Rollout.Paused && p.doubt == "" {
		d.moveBack(p)
		if !p.holds() {
			d.consent(p)
			d.drain(p)
			d.mend(p)
		}
		d.moveAhead(p)
	}
	d.takeBack(p)
}

// moveBack gives nodes what their cohort has completed before: who goes ahead finds less room for it.
func (d *decision) moveBack(p *pool) {
	switch {
	case p.target.stable:
		d.move(p, WhyBack, func(m *member) bool { return m.class == Old && m.superseded })
	case p.target.completed:
		d.move(p, WhyBack, func(m *member) bool { return p.goes(m) && m.trusted })
	}
}

// moveAhead assigns the target as far as it may go now. What is refused holds up who needs it on the way back, and everybody on the way ahead.
func (d *decision) moveAhead(p *pool) {
	switch {
	case p.refused != "":
	case p.target.stable && p.recoils == "":
		d.move(p, WhyLate, func(m *member) bool { return m.class == Late && m.node.Ready })
	case !p.target.stable && p.target.stopped == nil && p.wavers == "":
		d.move(p, WhyMove, func(m *member) bool { return p.goes(m) && !(p.target.completed && m.trusted) })
	}
}

// goes: it is to be moved, and can be. The way back is for those, too, whom what they have has made NotReady.
func (p *pool) goes(m *member) bool {
	return m.class == Old && (m.node.Ready || m.superseded || p.target.completed)
}

// mend gives a blocked node whose labels have changed the variant that it should have by now: that may be the cure. It needs no room in the wave, for
// it is the same node at the same risk, unless another node of the cohort is.
func (d *decision) mend(p *pool) {
	if p.target.stopped != nil || p.maxUnavailable() == 0 {
		return
	}
	why := WhyMove
	if p.target.completed {
		why = WhyLate
	}
	for i := range p.members {
		m := &p.members[i]
		c := &p.cohorts[m.cohort]
		isOne := p.vouched(m) || c.atRisk == 0
		if m.outgrew(p) && isOne && m.lacks == "" && len(p.writes) < rate && !d.written(p, m.node) && d.passes(p, m, why) {
			c.atRisk++
			d.assign(p, m, why, m.want)
		}
	}
}

// outgrew: it is blocked with a variant that its labels do not ask for any more.
func (m *member) outgrew(p *pool) bool {
	return m.class == Blocked && m.begun && m.want != "" && m.node.Source != m.want && p.judges(m.node)
}

// consent lets nodes that wait for their pods make the change, where the pool's rule is that pods may die. Such a node holds a slot of
// maxUnavailable already.
func (d *decision) consent(p *pool) {
	if !p.rules.disrupts || p.target.stopped != nil {
		return
	}
	for i := range p.members {
		m := &p.members[i]
		if m.class != Waiting || m.node.Asks == "" || m.hasWord() || d.written(p, m.node) || len(p.writes) >= rate {
			continue
		}
		if p.count.unavailable > p.maxUnavailable() || m.node.ControlPlane && d.controlPlanesAway > 1 {
			p.starved = true // it serves until it begins
			continue
		}
		if m.node.Active == m.node.Source {
			continue // it runs what it should: what waits is a change of its own files
		}
		if p.mayBegin(m) && d.passes(p, m, WhyConsent) {
			p.begins(m)
			w := d.write(p, m, WhyConsent)
			w.Consent = m.node.Asks.WithAny()
			p.writes = append(p.writes, w)
		}
	}
}

// takeBack gives nodes that have not begun with a stopped or superseded revision what they run again, whatever that is. Nothing restarts there, so
// that no brake holds it up.
func (d *decision) takeBack(p *pool) {
	for i := range p.members {
		m := &p.members[i]
		n := m.node
		stopped := (p.target.stopped != nil || p.failedIn(m)) && m.begun && !m.trusted
		superseded := m.superseded && !m.begun
		if !m.notBegun || !stopped && !superseded || n.Active == "" || n.Active == n.Source || m.held || p.manual(n) || d.written(p, n) {
			continue
		}
		switch m.class {
		case Old, Applying, Waiting, Blocked, Skipped, Leaving:
			d.assign(p, m, WhyTakeBack, n.Active)
		}
	}
}

// join gives new nodes the stable revision. Where that is refused there, and the target is proven elsewhere, they get the target: else a
// cluster whose stable revision no longer works could never grow.
func (d *decision) join(p *pool) {
	for i := range p.members {
		m := &p.members[i]
		if d.letJoin(p, m) {
			continue
		}
		if m.class != Joining || p.stable == nil || m.node.Ready && !m.isNew || len(p.writes) >= 4*rate { // more are not sent at once
			continue
		}
		refused := m.node.Source == m.keep && m.seen.Phase == Failed
		if m.node.Source != m.keep && (m.labelsMoved && m.node.Mark.Pool == p.Name || d.misses(p, m)) {
			continue
		}
		deadlock := refused && !p.target.stable && p.target.stopped == nil && !p.Spec.Rollout.Paused && !p.holds() &&
			p.count.of[Proven] > 0 && p.room(WhyMove) > 0 && p.admits(m)
		switch {
		case m.node.Source != m.keep && !(m.keep == nodev1.Local && m.node.Source == ""):
			d.assign(p, m, WhyJoin, m.keep)
		case deadlock && m.lacks != "":
			p.missed = cmp.Or(p.missed, m.lacks)
			d.needs(m.want, p.target.revision, m.wantMask)
		case deadlock && d.passes(p, m, WhyMove):
			p.place(m)
			d.assign(p, m, WhyJoin, m.want)
		}
	}
}

// letJoin lets a new node go on with the stable revision, where the pool's rule is that pods may die.
func (d *decision) letJoin(p *pool, m *member) bool {
	if !m.young || m.class != Joining && m.class != Waiting || m.node.Source != m.keep || m.seen.Phase != Waiting || !p.rules.disrupts || m.node.Asks == "" || m.hasWord() || d.written(p, m.node) {
		return false
	}
	w := d.write(p, m, WhyJoin)
	w.Consent = m.node.Asks.WithAny()
	p.writes = append(p.writes, w)
	return true
}

// untaint removes the taint that keeps pods from a new node, once it runs what it should.
func (d *decision) untaint(p *pool) {
	key := p.Spec.JoinTaint
	if key == "" {
		return
	}
	for i := range p.members {
		m := &p.members[i]
		switch m.class {
		case Unsupervised, Manual, Held, Leaving, Failed:
			continue
		}
		none := p.status.Stable == nil || p.status.Stable.Local
		if len(p.writes) < 4*rate && slices.Contains(m.node.Taints, key) && (none || m.seen.Runs && !(m.isNew && m.keep != nodev1.Local)) && !d.written(p, m.node) {
			w := d.write(p, m, WhyJoin)
			w.RemoveTaint = key
			p.writes = append(p.writes, w)
		}
	}
}

func (d *decision) written(p *pool, n *Node) bool {
	return d.undrained(n) || slices.ContainsFunc(p.writes, func(w Write) bool { return w.UID == n.UID })
}
