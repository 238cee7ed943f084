package rollout

import (
	"cmp"
	"strings"
)

// lack notes who cannot be assigned the target, because the API server does not take the variant. What rests on that waits. All else goes on:
// verdicts, what is taken back, new nodes, and the way back of everybody else.
func (d *decision) lack(p *pool) {
	if len(d.w.RefusedVariants) == 0 {
		return
	}
	for i := range p.members {
		m := &p.members[i]
		if m.lacks = d.refusedVariant(m.want); m.node.Source == m.want {
			continue
		}
		switch m.class {
		case Old, Late, Blocked:
			p.refused = cmp.Or(p.refused, m.lacks)
		}
	}
}

// refusedVariant has the API server's words, where it does not take the variant of an assignment.
func (d *decision) refusedVariant(source string) string {
	return d.w.RefusedVariants[variantOf(source)]
}

// variantOf is the name of the ConfigMap of an assignment.
func variantOf(source string) string {
	return strings.TrimSuffix(strings.TrimPrefix(source, Namespace+"/"), "/"+VariantKey)
}

// holds: nobody is sent ahead.
func (p *pool) holds() bool { return p.doubt != "" || p.refused != "" }

// refusal has the API server's words about what it does not take, and the pool needs.
func (p *pool) refusal() string { return cmp.Or(p.unmade, p.refused, p.missed) }
