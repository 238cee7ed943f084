package rollout

import (
	"cmp"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// assign writes an assignment, its mark and its retry.
func (p *turn) assign(m *member, why Why, source string) {
	w := p.write(m, why)
	hash := p.target.retry.Hash
	switch {
	case why == WhyRevert:
		hash = p.hashOf(m, source)
	case why == WhyJoin && source == m.keep && p.stable != nil:
		hash = p.stable.Hash
	}
	w.Source, w.Mark, w.Retry = source, Mark{p.Name, source, p.target.attempt, !m.node.Ready}, Retry{p.Name, hash, p.target.attempt}
}

// otherHash stands for anything that is not a stored revision of the pool: a user's configuration, or a revision
// that was removed.
const otherHash = "other"

// hashOf returns the revision of a source.
func (p *aim) hashOf(m *member, source string) string {
	switch {
	case source == nodev1.Local:
		return localHash
	case source == m.want:
		return p.target.retry.Hash
	case source == m.keep && p.stable != nil:
		return p.stable.Hash
	}
	of := p.keptWith(func(r *Revision) bool { return r.SourceFor(m.node.Labels) == source })
	if of == nil {
		return otherHash
	}
	return of.Hash
}

// write adds a write of a member's Node.
func (p *turn) write(m *member, why Why) *Write {
	p.writes = append(p.writes, Write{Node: m.node.Name, UID: m.node.UID, ResourceVersion: m.node.ResourceVersion, Pool: p.Name, Why: why})
	return &p.writes[len(p.writes)-1]
}

// approve lets a node make the change that it holds for its pods.
func (p *turn) approve(m *member, why Why) { p.write(m, why).Consent = m.node.Asks.WithAny() }

// send returns the most urgent writes of all pools, with the variants that they name.
func (c *choice) send(w *World, f *fleet, lifted []Write) {
	all := slices.Clone(lifted)
	for i := range c.pools {
		c.variants.add(c.pools[i].variants...)
		for _, one := range c.pools[i].writes {
			if w.Denied[one.UID] == "" {
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Write) int { return cmp.Compare(a.Why.order(), b.Why.order()) })
	c.writes = all[:min(len(all), rate)]
	for i := range c.writes {
		if one := &c.writes[i]; one.Source != "" && one.Source != nodev1.Local {
			p := &c.pools[f.index[one.Pool]]
			switch m := p.memberOf(one); one.Source {
			case m.want:
				c.variants.need(one.Source, p.target.revision, m.wantMask)
			case m.keep:
				c.variants.need(one.Source, p.stable, m.keepMask)
			} // the API server need not have what a node already runs
		}
	}
}
