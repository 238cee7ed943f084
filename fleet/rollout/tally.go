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

// tallyBackward counts members that may have become NotReady because of what they have, as long as they can get
// what was completed before.
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

// isTouched reports whether the change concerns a member that can have it, now or later. A revision that no node
// has run is not completed.
func (m *member) isTouched() bool {
	switch m.class {
	case Leaving, Unsupervised, Manual:
		return false
	}
	return !m.begun || m.superseded
}

// longIll reports whether a member was Ready at the assignment, and has not been Ready for longer than the pool
// allows.
func (m *member) longIll(r *rules) bool {
	return !m.node.Ready && m.seen.Ill && m.seen.IllFor >= r.unreadyAfter
}

// isInWaves reports whether the waves limit a member. They do not limit a rollback to what its cohort has
// completed, nor a member that has the same variant from another revision, and so has nothing to prove.
func (p *aim) isInWaves(m *member) bool {
	if p.target.completed && (m.trusted || !m.begun && p.failedIn(m)) {
		return false
	}
	return !m.begun || m.superseded || m.node.recorded(p.Name, p.target.retry.Hash)
}

// tallyProgress counts a member that can be updated. A member whose PATCH the API server refuses is named, and
// delays nothing.
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
		if m.labelsMoved && m.seen.Restless >= p.rules.deadline { // it does not delay the others forever
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

// tallyRisk counts what a member with the target shows about its cohort.
func (c *crew) tallyRisk(m *member, k *cohort) {
	switch {
	case m.class != Proven && (m.node.Source == m.want || m.seen.Phase == ""): // a node that waits for its pods begins automatically when they end
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

// tallyFormer counts a member that was relabelled during the change: it is still at risk with the target's variant
// for its old labels. If it waits for its pods, it begins with that when they end.
func (c *crew) tallyFormer(p *aim, m *member) {
	n := m.node
	if n.Source == m.want || !p.judges(n) || !n.Mark.Records(n.Source) || !(m.begun && m.class != Proven || m.seen.Phase == Waiting) {
		return
	}
	switch m.class {
	case Applying, Waiting, OnTrial, Blocked, Old, Late:
	default:
		return
	}
	for i := range c.cohorts {
		if k := &c.cohorts[i]; k.source == n.Source && k.minor == n.Minor && k.arch == n.Arch {
			if !n.Ready && !m.seen.WasReady { // as a dead member of the cohort: another node is the canary
				k.dead++
				continue
			}
			k.atRisk++
			if m.seen.Phase == Waiting && !m.mayGoOn() {
				k.idle++
			}
		}
	}
}

// mayGoOn reports whether the controller has allowed it to begin, by a drain or an approval.
func (m *member) mayGoOn() bool {
	given, _ := m.node.Asks.GivenBy(m.node.Consent)
	return m.node.Draining || given
}
