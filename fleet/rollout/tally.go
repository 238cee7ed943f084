package rollout

func (p *pool) tally(w *World) {
	c := &p.count
	c.of, c.dead = make(map[Class]int, len(Classes())), map[Class]int{}
	for i := range p.members {
		m := &p.members[i]
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
		switch m.class {
		case Applying, Waiting, OnTrial:
			if !m.isDead && !m.young {
				c.moving++
			}
		case Late:
			if m.node.Ready && w.Denied[m.node.UID] == "" {
				c.late++
			}
		}
		p.tallyProgress(m)
	}
}

// tallyProgress counts a member that can be updated. One that the API server does not let us patch is named and holds up nothing.
func (p *pool) tallyProgress(m *member) {
	c, k := &p.count, &p.cohorts[m.cohort]
	if m.isDead && m.class != Failed && m.class != Old {
		c.away++
		c.dead[m.class]++
		return
	}
	switch m.class {
	case Old:
		if !m.node.Ready {
			c.away++
			return
		}
		c.updatable++
		k.nodes, k.updatable = k.nodes+1, true
		return
	case Late:
		k.nodes++
		return
	case Blocked:
		if m.denied {
			c.denied++
			return
		}
	case Failed, Applying, Waiting, OnTrial, Proven:
	default:
		return
	}
	c.updatable++
	k.nodes, k.updatable = k.nodes+1, true
	if m.class != Failed {
		c.placed++
	}
	if m.class == Proven {
		k.proven++
	} else { // one that waits for its pods begins as soon as they end, and asks nobody
		k.atRisk++
	}
	if m.begun && m.node.Source != m.want && m.class != Proven { // it is still at risk with what it should have no more
		for i := range p.cohorts {
			if other := &p.cohorts[i]; other.source == m.node.Source && other.minor == m.node.Minor && other.arch == m.node.Arch {
				other.atRisk++
			}
		}
	}
	if m.class == Waiting && !m.hasWord() {
		c.idle, k.idle = c.idle+1, k.idle+1
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
