package rollout

import (
	"cmp"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// rate limits the writes of a plan, because their answers may change the next decision.
const rate = 8

// steps has what a pool does in this turn, and what prevents it from doing more.
type steps struct {
	writes   []Write
	lifted   []Write // ends of drains, of all pools
	variants neededVariants
	gate     *gate
	answered int    // how many of the wave's nodes had the target before
	moved    int    // how many were moved now, and were available before
	starved  bool   // a member could be moved if more could be unavailable
	blocked  said   // why a member could not be moved, although there was room
	missed   string // why the API server refuses what a joining or reverted node needs
	denied   string // a Node whose PATCH the API server refuses, and why
}

// turn is a pool's state at the end of a turn, with what it does.
type turn struct {
	course
	steps
}

// choice has what all pools do in this turn. choose returns it.
type choice struct {
	pools    []turn // by name
	budgets  []*gate
	writes   []Write
	drains   []Draining
	variants neededVariants
}

// choose decides which nodes are assigned now, which drains begin or end, and from which nodes pods are evicted.
func choose(w *World, f *fleet, courses []course) choice {
	chosen := choice{pools: make([]turn, len(courses))}
	for i := range courses {
		chosen.pools[i].course = courses[i]
	}
	all := newCensus(f, chosen.pools, w.Now)
	l := all.limits(w.Budgets, chosen.pools)
	lifted := endDrains(w, &all, chosen.pools, &l)
	for i := range chosen.pools {
		p := &chosen.pools[i]
		p.lifted, p.answered = lifted, p.placed()
		if w.Synced && !w.Mute[p.Name] {
			p.choose(w, &l)
		}
	}
	chosen.budgets = l.budgets
	if w.Synced {
		chosen.drains = evict(w, &all, chosen.pools)
	}
	chosen.send(w, f, lifted)
	return chosen
}

// choose decides which members a pool assigns now. A revert and a joining node need no room; everything else stays
// within the wave and within maxUnavailable.
func (p *turn) choose(w *World, l *sharedLimits) {
	if !p.target.there {
		p.removeJoinTaint()
		return
	}
	p.recordBlocked(w)
	p.join(w, l)
	p.removeJoinTaint()
	if !p.Spec.Rollout.Paused && p.doubt == "" {
		p.rollBack(l)
		if !p.holds() {
			p.consent(l)
			p.drain(l)
			p.repairBlocked(l)
		}
		p.advance(l)
	}
	p.revert()
}

// rollBack assigns to nodes what their cohort has completed before. It comes before advance, which gets the
// remaining room.
func (p *turn) rollBack(l *sharedLimits) {
	switch {
	case p.target.stable:
		p.move(l, WhyRollback, func(m *member) bool { return m.class == Old && m.superseded })
	case p.target.completed:
		p.move(l, WhyRollback, func(m *member) bool { return p.canMove(m) && m.trusted })
	}
}

// advance assigns the target as far as is allowed now. A refused variant stops only the members that need it on
// the way back, and all members on the way ahead.
func (p *turn) advance(l *sharedLimits) {
	switch {
	case p.refused != "" && (p.target.stable || !p.target.completed):
	case p.target.stable && p.recoils == "":
		p.move(l, WhyLate, func(m *member) bool { return m.class == Late && m.node.Ready })
	case !p.target.stable && p.target.stopped == nil && p.wavers == "":
		p.move(l, WhyAdvance, func(m *member) bool { return p.canMove(m) && !(p.target.completed && m.trusted) })
	}
}

// canMove reports whether a member needs a move, and can get it. A rollback also includes members that became
// NotReady with what they have.
func (p *aim) canMove(m *member) bool {
	return m.class == Old && (m.node.Ready || m.superseded || p.target.completed)
}

// repairBlocked assigns to a blocked node whose labels have changed the variant for its new labels, which may fix
// it. It needs no room in the wave, because the same node has the same risk, unless another node of the cohort is
// at risk.
func (p *turn) repairBlocked(l *sharedLimits) {
	if p.target.stopped != nil || p.slots() == 0 {
		return
	}
	why := WhyAdvance
	if p.target.completed {
		why = WhyLate
	}
	for m := range p.each {
		c := &p.cohorts[m.cohort]
		isOne := p.vouched(m) || c.atRisk == 0
		if p.outgrew(m) && isOne && m.lacks == "" && len(p.writes) < rate && !p.written(m.node) && p.passes(l, m, why) {
			c.atRisk++
			p.assign(m, why, m.want)
		}
	}
}

// outgrew reports whether a member is blocked with a variant that its labels no longer ask for.
func (p *aim) outgrew(m *member) bool {
	return m.class == Blocked && m.begun && m.want != "" && m.node.Source != m.want && p.judges(m.node)
}

// consent approves the change of nodes that wait for their pods, if the pool's rule is that pods may die. Such a
// node already holds a slot of maxUnavailable.
func (p *turn) consent(l *sharedLimits) {
	if !p.rules.disrupts || p.target.stopped != nil {
		return
	}
	for m := range p.each {
		if m.class != Waiting || m.node.Asks == "" || m.mayGoOn() || p.written(m.node) || len(p.writes) >= rate {
			continue
		}
		if p.count.unavailable > p.slots() || m.node.ControlPlane && l.controlPlanesAway > 1 {
			p.starved = true // it is available until it begins
			continue
		}
		if m.node.Active == m.node.Source {
			continue // it has what it should have, and waits with a change of its own files
		}
		if p.mayBegin(m) && p.passes(l, m, WhyConsent) {
			p.letBegin(m)
			p.approve(m, WhyConsent)
		}
	}
}

// revert assigns to nodes that have not begun with a stopped or superseded revision what they still run. Nothing
// restarts, so no limit applies.
func (p *turn) revert() {
	for m := range p.each {
		n := m.node
		stopped := (p.target.stopped != nil || p.failedIn(m)) && m.begun && !m.trusted
		superseded := m.superseded && !m.begun
		if !m.notBegun || !stopped && !superseded || n.Active == "" || n.Active == n.Source || m.held || p.manual(n) || p.written(n) {
			continue
		}
		switch m.class {
		case Old, Applying, Waiting, Blocked, Skipped, Leaving:
			p.assign(m, WhyRevert, n.Active)
		}
	}
}

// join assigns the stable revision to new nodes. If it is refused there, and the target is proven elsewhere, they
// get the target: otherwise a cluster whose stable revision no longer works could never grow.
func (p *turn) join(w *World, l *sharedLimits) {
	for m := range p.each {
		if p.letJoin(m) {
			continue
		}
		if m.class != Joining || p.stable == nil || m.node.Ready && !m.isNew || len(p.writes) >= 4*rate { // the others are sent in a later turn
			continue
		}
		refused := m.node.Source == m.keep && m.seen.Phase == Failed
		if m.node.Source != m.keep && (m.labelsMoved && m.node.Mark.Pool == p.Name || p.missesStable(w, m)) {
			continue
		}
		deadlock := refused && !p.target.stable && p.target.stopped == nil && !p.Spec.Rollout.Paused && !p.holds() &&
			p.count.of[Proven] > 0 && p.room(WhyAdvance) > 0 && p.admits(m)
		switch {
		case m.node.Source != m.keep && !(m.keep == nodev1.Local && m.node.Source == ""):
			p.assign(m, WhyJoin, m.keep)
		case deadlock && m.lacks != "":
			p.missed = cmp.Or(p.missed, m.lacks)
			p.variants.need(m.want, p.target.revision, m.wantMask)
		case deadlock && p.passes(l, m, WhyAdvance):
			p.countAtRisk(m)
			p.assign(m, WhyJoin, m.want)
		}
	}
}

// letJoin approves the change of a new node to the stable revision, if the pool's rule is that pods may die.
func (p *turn) letJoin(m *member) bool {
	isNew := m.young && (m.class == Joining || m.class == Waiting) && m.node.Source == m.keep
	lets := isNew && m.seen.Phase == Waiting && p.rules.disrupts && m.node.Asks != "" && !m.mayGoOn() && !p.written(m.node)
	if lets {
		p.approve(m, WhyJoin)
	}
	return lets
}

// removeJoinTaint removes the taint that keeps pods from a new node, once the node runs what it should.
func (p *turn) removeJoinTaint() {
	key := p.Spec.JoinTaint
	if key == "" {
		return
	}
	for m := range p.each {
		switch m.class {
		case Unsupervised, Manual, Held, Leaving, Failed:
			continue
		}
		none := p.status.Stable == nil || p.status.Stable.Local
		if len(p.writes) < 4*rate && slices.Contains(m.node.Taints, key) && (none || m.seen.Runs && !(m.isNew && m.keep != nodev1.Local)) && !p.written(m.node) {
			p.write(m, WhyJoin).RemoveTaint = key
		}
	}
}

// written reports whether the node already has a write in this turn.
func (p *steps) written(n *Node) bool {
	is := func(w Write) bool { return w.UID == n.UID }
	return slices.ContainsFunc(p.lifted, is) || slices.ContainsFunc(p.writes, is)
}
