package rollout

func (p *pool) tally(w *World) {
	c := &p.count
	c.of, c.dead = make(map[Class]int, len(Classes())), map[Class]int{}
	for i := range p.members {
		m := &p.members[i]
		m.inWaves = p.isInWaves(m)
		c.of[m.class]++
		if !m.held && !m.young {
			c.members++
		}
		if m.unavailable {
			c.unavailable++
		}
		if m.superseded && m.class == Old {
			c.superseded++
		}
		if m.isTouched() {
			c.touched++
		}
		switch m.class {
		case Applying, Waiting, OnTrial:
			if !m.isDead && !m.young {
				c.moving++
				if p.target.completed && m.trusted && m.longIll(p) || !p.target.completed && !m.inWaves {
					c.stuck++
				}
			}
			if m.class != Waiting && m.seen.Ill && m.seen.IllFor >= p.rules.unreadyAfter {
				c.ill++
			}
		case Late:
			if m.node.Ready && w.Denied[m.node.UID] == "" {
				c.late++
			}
		}
		p.tallyProgress(m)
		p.tallyFormer(m)
	}
	p.tallyBackward()
	p.straight = c.inWaves == 0 && (p.target.completed || c.touched == 0)
}

// tallyBackward counts those whom what they have may have made NotReady, as long as somebody may give them what was completed before.
func (p *pool) tallyBackward() {
	for i := range p.members {
		m := &p.members[i]
		if !p.target.completed || m.class != Old || m.node.Ready || m.node.Retry.Pool != p.Name {
			continue
		}
		if k := &p.cohorts[m.cohort]; m.trusted || !p.failedIn(m) && (k.proven > 0 || k.dead == 0) {
			p.count.backward++
		}
	}
}

// isTouched: the change is about a member that can have it, now or later: what nobody has run is not completed.
func (m *member) isTouched() bool {
	switch m.class {
	case Leaving, Unsupervised, Manual:
		return false
	}
	return !m.begun || m.superseded
}

// longIll: it was Ready when it was assigned what it has, and is not for longer than the pool allows.
func (m *member) longIll(p *pool) bool {
	return !m.node.Ready && m.seen.Ill && m.seen.IllFor >= p.rules.unreadyAfter
}

// isInWaves: the way back to what its cohort has completed is not for the waves to bound, and who has had what it should of another revision has
// nothing to prove.
func (p *pool) isInWaves(m *member) bool {
	if p.target.completed && (m.trusted || !m.begun && p.failedIn(m)) {
		return false
	}
	return !m.begun || m.superseded || p.recorded(m.node, p.target.retry.Hash)
}

// tallyProgress counts a member that can be updated. One that the API server does not let us patch is named and holds up nothing.
func (p *pool) tallyProgress(m *member) {
	c := &p.count
	if m.isDead && m.class != Failed && m.class != Old {
		c.away++
		c.dead[m.class]++
		if m.class != Proven {
			p.cohorts[m.cohort].dead++
		}
		return
	}
	switch m.class {
	case Old:
		if !m.node.Ready {
			c.away++
			return
		}
		if m.labelsMoved && m.seen.Restless >= p.rules.deadline { // it holds nobody up for ever
			return
		}
	case Late:
		p.cohorts[m.cohort].nodes++
		return
	case Blocked:
		if m.denied {
			c.denied++
			return
		}
		if m.inWaves || p.target.completed {
			c.blocked++
		}
	case Failed, Applying, Waiting, OnTrial, Proven:
	default:
		return
	}
	c.updatable++
	k := &p.cohorts[m.cohort]
	k.nodes++
	if m.inWaves {
		p.tallyWave(m, k)
	} else if m.class == Failed {
		c.trustedFailed++
	}
	if m.class == Old {
		if !m.inWaves && !p.failedIn(m) {
			c.backward++
		}
		return
	}
	if m.class != Failed {
		c.have++
	}
	p.tallyRisk(m, k)
}

// tallyWave counts a member for the waves.
func (p *pool) tallyWave(m *member, k *cohort) {
	c := &p.count
	c.inWaves++
	k.inWaves = true
	if m.class != Old && m.class != Failed {
		c.placed++
	}
	if m.class == Proven {
		c.proved++
	}
}

// tallyRisk counts what a member that has the target tells of its cohort.
func (p *pool) tallyRisk(m *member, k *cohort) {
	switch {
	case m.class != Proven && (m.node.Source == m.want || m.seen.Phase == ""): // one that waits for its pods begins as soon as they end, and asks nobody
		k.atRisk++
	case m.class != Proven:
	case !m.seen.Upgraded && (m.trusted || m.node.Ready):
		k.proven++
	case m.node.Ready:
		k.atRisk++
	}
	if m.class == Waiting && !m.hasWord() {
		k.idle++
		if m.inWaves {
			p.count.idle++
		}
	}
}

// tallyFormer counts a member that was relabelled in the middle: it is still at risk with the variant of the target that it should have no more. One
// that waits for its pods begins with that as soon as they end.
func (p *pool) tallyFormer(m *member) {
	n := m.node
	if m.isDead || n.Source == m.want || !p.judges(n) || !n.Mark.Records(n.Source) || !(m.begun && m.class != Proven || m.seen.Phase == Waiting) {
		return
	}
	switch m.class {
	case Applying, Waiting, OnTrial, Blocked, Old, Late:
	default:
		return
	}
	for i := range p.cohorts {
		if c := &p.cohorts[i]; c.source == n.Source && c.minor == n.Minor && c.arch == n.Arch {
			c.atRisk++
			if m.seen.Phase == Waiting && !m.hasWord() {
				c.idle++
			}
		}
	}
}

// hasWord: we have let it begin, by a drain or an approval.
func (m *member) hasWord() bool {
	given, _ := m.node.Asks.GivenBy(m.node.Consent)
	return m.node.Draining || given
}

// countControlPlanes counts those of all pools, so that no two of a cluster are changed at once.
func (d *decision) countControlPlanes(p *pool) {
	for i := range p.members {
		if m := &p.members[i]; m.unavailable && m.node.ControlPlane {
			d.controlPlanesAway++
		}
	}
}
