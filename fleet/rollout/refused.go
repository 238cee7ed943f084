package rollout

import (
	"cmp"
	"strings"
)

// lack notes who cannot be assigned the target, because the API server does not take the variant. Who goes ahead waits for that. All else goes
// on: verdicts, what is taken back, new nodes, and the way back of everybody else.
func (d *decision) lack(p *pool) {
	for i := range p.members {
		if m := &p.members[i]; m.denied && m.class == Blocked && p.denied == "" {
			p.denied = m.node.Name + ": " + d.w.Denied[m.node.UID]
		}
	}
	if len(d.w.RefusedVariants) == 0 || p.target.stopped != nil || p.Spec.Rollout.Paused {
		return
	}
	for i := range p.members {
		m := &p.members[i]
		if m.node.Source == m.want && !m.superseded { // it has what it should
			continue
		}
		if m.lacks = d.w.RefusedVariants[variantOf(m.want)]; m.lacks == "" {
			continue
		}
		if p.goes(m) || m.class == Late && m.node.Ready || m.outgrew(p) {
			p.refused = cmp.Or(p.refused, m.lacks)
			d.needs(m.want, p.target.revision, m.wantMask)
		}
	}
}

// misses: the API server does not take the variant of the stable revision that the member should have.
func (d *decision) misses(p *pool, m *member) bool {
	words := d.w.RefusedVariants[variantOf(m.keep)]
	if words != "" {
		p.missed = cmp.Or(p.missed, words)
		d.needs(m.keep, p.stable, m.keepMask)
	}
	return words != ""
}

// variantOf is the name of the ConfigMap of an assignment.
func variantOf(source string) string {
	return strings.TrimSuffix(strings.TrimPrefix(source, Namespace+"/"), "/"+VariantKey)
}

// holds: nobody is sent ahead.
func (p *pool) holds() bool { return p.doubt != "" || p.refused != "" && !p.target.completed }

// refusal has the API server's words about what it does not take, and the pool needs. About a Node it has them where nobody else moves.
func (p *pool) refusal() string {
	words := cmp.Or(p.refused, p.missed)
	if words == "" && !p.moves() && !p.finished() && !p.Spec.Rollout.Paused && p.doubt == "" && p.barred.reason == "" && !p.starved {
		words = p.denied
	}
	return words
}
