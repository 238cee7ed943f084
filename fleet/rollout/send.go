package rollout

import (
	"cmp"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

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
	w.Source, w.Mark, w.Retry = source, Mark{p.Name, source, p.target.attempt, !m.node.Ready}, Retry{p.Name, hash, p.target.attempt}
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
