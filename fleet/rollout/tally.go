package rollout

import "k8s.io/apimachinery/pkg/types"

// tally counts the members.
func (c *crew) tally(p *aim, denied map[types.UID]string) {
	count := &c.count
	count.of, count.dead = make(map[Class]int, len(Classes())), map[Class]int{}
	for m := range c.each {
		m.inWaves = p.isInWaves(m)
		count.of[m.class]++
		if !m.held && !m.young {
			count.members++
		}
		if m.unavailable {
			count.unavailable++
		}
		if m.superseded && m.class == Old {
			count.superseded++
		}
		if m.isTouched() {
			count.touched++
		}
		switch m.class {
		case Applying, Waiting, OnTrial:
			if !m.isDead && !m.young {
				count.moving++
				if p.target.completed && m.trusted && m.longIll(&p.rules) || !p.target.completed && !m.inWaves {
					count.stuck++
				}
			}
			if m.class != Waiting && m.seen.Ill && m.seen.IllFor >= p.rules.unreadyAfter {
				count.ill++
			}
		case Late:
			if m.node.Ready && denied[m.node.UID] == "" {
				count.late++
			}
		}
		c.tallyProgress(p, m)
		c.tallyFormer(p, m)
	}
	c.tallyBackward(p)
	c.straight = count.inWaves == 0 && (p.target.completed || count.touched == 0)
}

// tallyBackward counts those that what they have may have made NotReady, as long as they may get what was completed before.
func (c *crew) tallyBackward(p *aim) {
	for m := range c.each {
		if !p.target.completed || m.class != Old || m.node.Ready || m.node.Retry.Pool != p.Name {
			continue
		}
		if k := &c.cohorts[m.cohort]; m.trusted || !p.failedIn(m) && (k.proven > 0 || k.dead == 0) {
			c.count.backward++
		}
	}
}

// isTouched reports whether the change is about a member that can have it, now or later. What no node has run is not completed.
func (m *member) isTouched() bool {
	switch m.class {
	case Leaving, Unsupervised, Manual:
		return false
	}
	return !m.begun || m.superseded
}

// longIll reports whether it was Ready when it was assigned what it has, and is not for longer than the pool allows.
func (m *member) longIll(r *rules) bool {
	return !m.node.Ready && m.seen.Ill && m.seen.IllFor >= r.unreadyAfter
}

// isInWaves reports whether the waves bound a member. They do not bound the way back to what its cohort has completed, nor a member that has had what it
// should have of another revision, and so has nothing to prove.
func (p *aim) isInWaves(m *member) bool {
	if p.target.completed && (m.trusted || !m.begun && p.failedIn(m)) {
		return false
	}
	return !m.begun || m.superseded || m.node.recorded(p.Name, p.target.retry.Hash)
}

// tallyProgress counts a member that can be updated. One that the API server does not let us patch is named and holds up nothing.
func (c *crew) tallyProgress(p *aim, m *member) {
	count := &c.count
	if m.isDead && m.class != Failed && m.class != Old {
		count.away++
		count.dead[m.class]++
		if m.class != Proven {
			c.cohorts[m.cohort].dead++
		}
		return
	}
	switch m.class {
	case Old:
		if !m.node.Ready {
			count.away++
			return
		}
		if m.labelsMoved && m.seen.Restless >= p.rules.deadline { // it does not hold up the others forever
			return
		}
	case Late:
		c.cohorts[m.cohort].nodes++
		return
	case Blocked:
		if m.denied {
			count.denied++
			return
		}
		if m.inWaves || p.target.completed {
			count.blocked++
		}
	case Failed, Applying, Waiting, OnTrial, Proven:
	default:
		return
	}
	count.updatable++
	k := &c.cohorts[m.cohort]
	k.nodes++
	if m.inWaves {
		c.tallyWave(m, k)
	} else if m.class == Failed {
		count.trustedFailed++
	}
	if m.class == Old {
		if !m.inWaves && !p.failedIn(m) {
			count.backward++
		}
		return
	}
	if m.class != Failed {
		count.have++
	}
	c.tallyRisk(m, k)
}

// tallyWave counts a member for the waves.
func (c *crew) tallyWave(m *member, k *cohort) {
	count := &c.count
	count.inWaves++
	k.inWaves = true
	if m.class != Old && m.class != Failed {
		count.placed++
	}
	if m.class == Proven {
		count.proved++
	}
}

// tallyRisk counts what a member that has the target tells of its cohort.
func (c *crew) tallyRisk(m *member, k *cohort) {
	switch {
	case m.class != Proven && (m.node.Source == m.want || m.seen.Phase == ""): // one that waits for its pods begins as soon as they end, without being asked
		k.atRisk++
	case m.class != Proven:
	case !m.seen.Upgraded && (m.trusted || m.node.Ready):
		k.proven++
	case m.node.Ready:
		k.atRisk++
	}
	if m.class == Waiting && !m.mayGoOn() {
		k.idle++
		if m.inWaves {
			c.count.idle++
		}
	}
}

// tallyFormer counts a member that was relabelled in the middle: it is still at risk with the variant of the target that it should have no more. One
// that waits for its pods begins with that as soon as they end.
func (c *crew) tallyFormer(p *aim, m *member) {
	n := m.node
	if m.isDead || n.Source == m.want || !p.judges(n) || !n.Mark.Records(n.Source) || !(m.begun && m.class != Proven || m.seen.Phase == Waiting) {
		return
	}
	switch m.class {
	case Applying, Waiting, OnTrial, Blocked, Old, Late:
	default:
		return
	}
	for i := range c.cohorts {
		if k := &c.cohorts[i]; k.source == n.Source && k.minor == n.Minor && k.arch == n.Arch {
			k.atRisk++
			if m.seen.Phase == Waiting && !m.mayGoOn() {
				k.idle++
			}
		}
	}
}

// mayGoOn reports whether the controller has let it begin, by a drain or an approval.
func (m *member) mayGoOn() bool {
	given, _ := m.node.Asks.GivenBy(m.node.Consent)
	return m.node.Draining || given
}
