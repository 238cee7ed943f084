package rollout

import (
	"cmp"
	"strings"
)

// recordBlocked records which members cannot be assigned the target, because the API server refuses the variant.
// Members on the way ahead wait for that. Everything else goes on: verdicts, reverts, new nodes, and the rollback
// of all other members.
func (p *turn) recordBlocked(w *World) {
	for m := range p.each {
		if m.denied && m.class == Blocked && p.denied == "" {
			p.denied = m.node.Name + ": " + w.Denied[m.node.UID]
		}
	}
	if len(w.RefusedVariants) == 0 || p.target.stopped != nil || p.Spec.Rollout.Paused {
		return
	}
	for m := range p.each {
		if m.node.Source == m.want && !m.superseded { // it already has what it should
			continue
		}
		if m.lacks = w.RefusedVariants[variantOf(m.want)]; m.lacks == "" {
			continue
		}
		if p.canMove(m) || m.class == Late && m.node.Ready || p.outgrew(m) {
			p.refused = cmp.Or(p.refused, m.lacks)
			p.variants.need(m.want, p.target.revision, m.wantMask)
		}
	}
}

// missesStable reports whether the API server refuses the variant of the stable revision that the member should
// have.
func (p *turn) missesStable(w *World, m *member) bool {
	words := w.RefusedVariants[variantOf(m.keep)]
	if words != "" {
		p.missed = cmp.Or(p.missed, words)
		p.variants.need(m.keep, p.stable, m.keepMask)
	}
	return words != ""
}

// variantOf returns the name of the ConfigMap of an assignment.
func variantOf(source string) string {
	return strings.TrimSuffix(strings.TrimPrefix(source, Namespace+"/"), "/"+VariantKey)
}

// holds reports whether no member may go ahead.
func (p *course) holds() bool { return p.doubt != "" || p.refused != "" && !p.target.completed }

// refusal returns the API server's message about an object that the pool needs. A message about a Node is returned
// only if no other node moves.
func (p *turn) refusal() string {
	words := cmp.Or(p.refused, p.missed)
	if words == "" && !p.isMoving() && !finished(p) && !p.Spec.Rollout.Paused && p.doubt == "" && p.blocked.reason == "" && !p.starved {
		words = p.denied
	}
	return words
}
