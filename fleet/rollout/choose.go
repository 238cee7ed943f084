package rollout

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// rate is how many writes a plan has at most: after as many answers it is time to look again.
const rate = 8

// choose says whom to assign now. What takes something back or lets a new node in needs no room; everything else is within the wave and
// within maxUnavailable.
func (d *decision) choose(p *pool) {
	p.answered = p.count.placed
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
		if !p.holds() {
			d.consent(p)
			d.drain(p)
			d.mend(p)
		}
		d.moveAll(p)
	}
	d.takeBack(p)
}

// moveAll assigns the target as far as it may go now. What is refused holds up who needs it on the way back, and everybody on the way ahead.
func (d *decision) moveAll(p *pool) {
	switch {
	case p.recoils != "":
	case p.target.stable:
		d.move(p, WhyBack, func(m *member) bool { return m.class == Old && m.superseded })
		if p.refused == "" {
			d.move(p, WhyLate, func(m *member) bool { return m.class == Late && m.node.Ready })
		}
	case p.target.completed: // a stop is of the cohorts that have not proven it
		d.move(p, WhyBack, func(m *member) bool {
			return m.class == Old && (m.node.Ready || m.superseded) && (p.target.stopped == nil || m.trusted)
		})
	case p.target.stopped != nil:
	case p.refused == "":
		d.move(p, WhyMove, func(m *member) bool { return m.class == Old && (m.node.Ready || m.superseded) })
	}
}

// mend gives a blocked node whose labels have changed the variant that it should have by now: that may be the cure. It needs no room, for it
// is the same node at the same risk.
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
		if m.relabelled(p) && m.lacks == "" && len(p.writes) < rate && !d.written(p, m.node) && d.passes(p, m, why) {
			d.assign(p, m, why, m.want)
		}
	}
}

// relabelled: it is blocked, and should have another variant by now.
func (m *member) relabelled(p *pool) bool {
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
		stopped := p.target.stopped != nil && m.begun && !m.trusted
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
		if m.class != Joining || p.stable == nil || m.node.Ready && !m.isNew {
			continue
		}
		refused := m.node.Source == m.keep && m.seen.Phase == Failed
		if m.node.Source != m.keep && d.misses(p, m) {
			continue
		}
		deadlock := refused && !p.target.stable && p.target.stopped == nil && !p.Spec.Rollout.Paused && !p.holds() &&
			p.count.of[Proven] > 0 && p.room() > 0 && p.admits(m)
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
		if slices.Contains(m.node.Taints, key) && (none || m.seen.Runs) && !d.written(p, m.node) {
			w := d.write(p, m, WhyJoin)
			w.RemoveTaint = key
			p.writes = append(p.writes, w)
		}
	}
}

func (d *decision) written(p *pool, n *Node) bool {
	return d.undrained(n) || slices.ContainsFunc(p.writes, func(w Write) bool { return w.UID == n.UID })
}

// maxUnavailable is the number that the spec asks for: at least 1, unless it says 0.
func (p *pool) maxUnavailable() int {
	a := p.rules.maxUnavailable
	if a.value == 0 {
		return 0
	}
	return max(1, a.of(p.count.members))
}

// room is how many more nodes the target may reach now.
func (p *pool) room() int {
	if p.target.completed {
		return rate
	}
	return min(p.goal-p.count.placed, rate)
}

// admits: a cohort that has not proven the target has at most one node at risk.
func (p *pool) admits(m *member) bool {
	c := &p.cohorts[m.cohort]
	if m.trusted || c.proven > 0 {
		return true
	}
	return c.atRisk == 0
}

// mayBegin: there is room in the wave for a member that waits for its pods to be let go on with it.
func (p *pool) mayBegin(m *member) bool {
	c := &p.cohorts[m.cohort]
	isOne := m.trusted || c.proven > 0 || c.atRisk-c.idle <= 0
	return p.maxUnavailable() > 0 && isOne && (p.target.completed || p.count.placed-p.count.idle < p.goal)
}

// begins counts one that is let go on.
func (p *pool) begins(m *member) {
	p.count.idle--
	p.cohorts[m.cohort].idle--
}

// move assigns the target to candidates, as far as there is room.
func (d *decision) move(p *pool, why Why, candidate func(*member) bool) {
	if p.room() <= 0 || p.maxUnavailable() == 0 {
		p.starved = p.starved || p.room() > 0
		return
	}
	left := p.left(why)
	for _, m := range p.candidates(candidate) {
		if p.room() <= 0 || len(p.writes) >= rate {
			return
		}
		if d.written(p, m.node) || !p.admits(m) {
			continue
		}
		if !d.hasSlot(p, m, left) {
			p.starved = true
			continue
		}
		if !d.passes(p, m, why) {
			continue
		}
		if !m.unavailable {
			left--
			p.count.unavailable++
			if m.node.ControlPlane {
				d.controlPlanesAway++
			}
			m.unavailable = true
		}
		p.place(m)
		d.assign(p, m, why, m.want)
	}
}

// left is how many more members may become unavailable. On the way back those count alone who change, or have what is left: who died of something
// else holds nobody up. And one at a time may always go back.
func (p *pool) left(why Why) int {
	if why != WhyBack {
		return p.maxUnavailable() - p.count.unavailable
	}
	taken, changing := 0, 0
	for i := range p.members {
		m := &p.members[i]
		if m.unavailable && (m.changing() || m.superseded || m.node.Mark.Pool == p.Name && !p.wasCompleted(m.node.Retry.Hash)) {
			taken++
		}
		if m.changing() && m.unavailable {
			changing++
		}
	}
	if changing == 0 {
		return max(1, p.maxUnavailable()-taken)
	}
	return p.maxUnavailable() - taken
}

// hasSlot: there is room for one more, or the member takes none: it is NotReady or cordoned. One that changes already holds its own, as long as no
// more do than may. Of control planes one is away at a time, whatever it is away for.
func (d *decision) hasSlot(p *pool, m *member, left int) bool {
	switch {
	case !m.unavailable:
		return left > 0 && (!m.node.ControlPlane || d.controlPlanesAway == 0)
	case m.node.ControlPlane:
		return d.controlPlanesAway <= 1
	}
	return !m.node.Ready || m.node.Cordoned || p.count.unavailable <= p.maxUnavailable() || left > 0
}

// place counts a member that is assigned the target now.
func (p *pool) place(m *member) {
	p.count.placed++
	p.cohorts[m.cohort].atRisk++
}

// candidates are those who may be moved, in their order: first who is on a revision that is superseded or has failed, then the cohorts
// without proof, then the domain in use, and one domain after the other, then by a hash, so that no node is always the first.
func (p *pool) candidates(candidate func(*member) bool) []*member {
	type ranked struct {
		m            *member
		rank         int
		domain, hash [sha256.Size]byte
	}
	var all []ranked
	for i := range p.members {
		m := &p.members[i]
		if !candidate(m) || m.want == "" || m.lacks != "" {
			continue
		}
		rank := 0
		if !m.superseded {
			rank += 8
		}
		if p.cohorts[m.cohort].proven > 0 {
			rank += 4
		}
		if !m.node.Ready {
			rank += 2
		}
		r := ranked{m: m, rank: rank, hash: sha256.Sum256([]byte(string(m.node.UID) + p.target.retry.Hash))}
		if t := p.gate.topology; t.key != "" {
			domain := m.node.Labels[t.key]
			if r.domain = sha256.Sum256([]byte(domain + p.target.retry.Hash)); p.gate.held[domain] == 0 {
				r.rank++
			}
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), bytes.Compare(a.domain[:], b.domain[:]), bytes.Compare(a.hash[:], b.hash[:]))
	})
	members := make([]*member, len(all))
	for i := range all {
		members[i] = all[i].m
	}
	return members
}

// assign writes an assignment, its mark and its retry.
func (d *decision) assign(p *pool, m *member, why Why, source string) {
	w := d.write(p, m, why)
	hash := p.target.retry.Hash
	switch {
	case why == WhyTakeBack:
		hash = p.hashOf(m, source)
	case why == WhyJoin && source == m.keep && p.stable != nil:
		hash = p.stable.Hash
	}
	w.Source, w.Mark, w.Retry = source, Mark{p.Name, source, p.target.attempt}, Retry{p.Name, hash, p.target.attempt}
	p.writes = append(p.writes, w)
}

// otherHash stands for what is no revision of the pool's: a person's, or one that is not kept any more.
const otherHash = "other"

// hashOf is the revision that a source is of.
func (p *pool) hashOf(m *member, source string) string {
	switch {
	case source == nodev1.Local:
		return localHash
	case source == m.want:
		return p.target.retry.Hash
	case source == m.keep && p.stable != nil:
		return p.stable.Hash
	}
	of := p.kept(func(r *Revision) bool { return r.SourceFor(m.node.Labels) == source })
	if of == nil {
		return otherHash
	}
	return of.Hash
}

func (d *decision) write(p *pool, m *member, why Why) Write {
	return Write{Node: m.node.Name, UID: m.node.UID, ResourceVersion: m.node.ResourceVersion, Pool: p.Name, Why: why}
}

// send takes the most urgent writes of all pools, with the variants that they name.
func (d *decision) send() {
	all := slices.Clone(d.undrains)
	for _, p := range d.pools {
		for _, w := range p.writes {
			if d.w.Denied[w.UID] == "" {
				all = append(all, w)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Write) int { return cmp.Compare(a.Why.order(), b.Why.order()) })
	d.plan.Writes = all[:min(len(all), rate)]
	for i := range d.plan.Writes {
		if w := &d.plan.Writes[i]; w.Source != "" && w.Source != nodev1.Local {
			d.addVariant(w)
		}
	}
}

func (d *decision) addVariant(w *Write) {
	p := d.named[w.Pool]
	m := p.memberOf(w)
	switch w.Source {
	case m.want:
		d.needs(w.Source, p.target.revision, m.wantMask)
	case m.keep:
		d.needs(w.Source, p.stable, m.keepMask)
	} // what a node runs it need not find
}

// needs puts a variant into the plan.
func (d *decision) needs(source string, of *Revision, mask uint32) {
	if slices.ContainsFunc(d.plan.Variants, func(v Variant) bool { return v.Name == variantOf(source) }) {
		return
	}
	if v, err := newVariants(of).object(mask); err == nil {
		d.plan.Variants = append(d.plan.Variants, v)
	}
}
