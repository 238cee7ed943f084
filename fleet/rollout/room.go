package rollout

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// slots returns how many of the members may be unavailable: at least 1, unless the spec says 0.
func (r *rules) slots(members int) int {
	a := r.maxUnavailable
	if a.value == 0 {
		return 0
	}
	return max(1, a.of(members))
}

// slots returns how many of the members may be unavailable.
func (p *course) slots() int { return p.rules.slots(p.count.members) }

// room returns how many more nodes the target may reach now.
func (p *course) room(why Why) int {
	if why == WhyRollback || why == WhyLate {
		return rate
	}
	return min(p.goal-p.count.placed, rate)
}

// admits reports whether the cohort of a member has room for it: a cohort that has not proven the target has at
// most one node at risk. A member that is not Ready is not tried while another one is not, because they may come
// back together.
func (c *crew) admits(m *member) bool {
	k := &c.cohorts[m.cohort]
	return c.vouched(m) || k.atRisk == 0 && (m.node.Ready || k.dead == 0)
}

// vouched reports whether the cohort of a member has proven the target, now or before.
func (c *crew) vouched(m *member) bool { return m.trusted || c.cohorts[m.cohort].proven > 0 }

// mayBegin reports whether the wave has room for the approval of a member that waits for its pods.
func (p *course) mayBegin(m *member) bool {
	c := &p.cohorts[m.cohort]
	isOne := p.vouched(m) || c.atRisk-c.idle <= 0
	return p.slots() > 0 && isOne && !p.failedIn(m) && (p.target.stable || !m.inWaves || p.wavers == "" && p.count.placed-p.count.idle < p.goal)
}

// letBegin counts a member whose change is approved.
func (c *crew) letBegin(m *member) {
	c.cohorts[m.cohort].idle--
	if m.inWaves {
		c.count.idle--
	}
}

// move assigns the target to candidates, as far as there is room.
func (p *turn) move(l *sharedLimits, why Why, candidate func(*member) bool) {
	outside := why == WhyAdvance && p.target.completed // a member that is not Ready is in no wave, and also goes back
	if p.room(why) <= 0 && !outside || p.slots() == 0 {
		p.starved = p.starved || p.room(why) > 0
		return
	}
	left := p.left(why)
	for _, m := range p.candidates(&p.aim, p.gate, candidate) {
		if p.room(why) <= 0 && !outside || len(p.writes) >= rate {
			return
		}
		if p.room(why) <= 0 && m.node.Ready {
			continue
		}
		if p.written(m.node) || !p.admits(m) || m.labelsMoved || !m.trusted && p.failedIn(m) {
			continue
		}
		if !p.hasSlot(l, m, left) {
			p.starved = true
			continue
		}
		if !p.passes(l, m, why) {
			continue
		}
		if !m.unavailable {
			left--
			p.moved++
			p.count.unavailable++
			if m.node.ControlPlane {
				l.controlPlanesAway++
			}
			m.unavailable = true
		}
		p.countAtRisk(m)
		p.assign(m, why, m.want)
	}
}

// isRollback reports whether the pool goes to what was completed before, in any cohort.
func (p *aim) isRollback(why Why) bool {
	return why == WhyRollback || why == WhyAdvance && p.target.completed
}

// left returns how many more members may become unavailable. On the way back only members count that change, or
// have what is abandoned: a node that failed for another reason does not delay others. And one at a time may
// always go back.
func (p *turn) left(why Why) int {
	if !p.isRollback(why) {
		return p.slots() - p.count.unavailable
	}
	taken, underway, spared := p.moved, p.moved, max(1, p.rules.tolerate.of(p.count.have))
	for m := range p.each {
		if m.isDead { // it will not answer, so the pool does not wait for it
			continue
		}
		if m.trusted && m.longIll(&p.rules) && spared > 0 { // one failed node is no sign of a bad revision
			spared--
			continue
		}
		if !m.unavailable {
			continue
		}
		if changing(m.node, m.seen) {
			taken, underway = taken+1, underway+1
		} else if m.superseded || m.node.Mark.Pool == p.Name && !p.wasCompleted(m.node.Retry.Hash) {
			taken++
		}
	}
	if underway == 0 {
		return max(1, p.slots()-taken)
	}
	return p.slots() - taken
}

// hasSlot reports whether one more member may become unavailable, or the member takes no slot, because it is
// NotReady or cordoned. A member that changes already has a slot, as long as not too many do. Only one control
// plane may be unavailable at a time, for whatever reason.
func (p *course) hasSlot(l *sharedLimits, m *member, left int) bool {
	switch {
	case !m.unavailable:
		return left > 0 && (!m.node.ControlPlane || l.controlPlanesAway == 0)
	case m.node.ControlPlane:
		return l.controlPlanesAway <= 1
	}
	return !m.node.Ready || m.node.Cordoned || p.count.unavailable <= p.slots() || left > 0
}

// countAtRisk counts a member that is assigned the target now.
func (c *crew) countAtRisk(m *member) {
	if c.count.have++; m.inWaves {
		c.count.placed++
	}
	c.cohorts[m.cohort].atRisk++
}

// candidates returns the members that may be moved, in order: first those with a superseded or failed revision,
// then cohorts without proof, then the domain in use, then one domain after the other, and finally by a hash, so
// that it is not always the same node that is first.
func (c *crew) candidates(p *aim, g *gate, candidate func(*member) bool) []*member {
	type ranked struct {
		m            *member
		rank         int
		domain, hash [sha256.Size]byte
	}
	var all []ranked
	for m := range c.each {
		if !candidate(m) || m.want == "" || m.lacks != "" {
			continue
		}
		rank := 0
		if !m.superseded {
			rank += 8
		}
		if c.cohorts[m.cohort].proven > 0 {
			rank += 4
		}
		if !m.node.Ready {
			rank += 2
		}
		r := ranked{m: m, rank: rank, hash: sha256.Sum256([]byte(string(m.node.UID) + p.target.retry.Hash))}
		if t := g.topology; t.key != "" {
			domain := m.node.Labels[t.key]
			if r.domain = sha256.Sum256([]byte(domain + p.target.retry.Hash)); g.held[domain] == 0 {
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
