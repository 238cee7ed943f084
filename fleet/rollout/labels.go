package rollout

import (
	"fmt"
	"time"
)

// labelsStill is how long labels have to be as they are before another variant follows from them: other controllers take labels away and put them
// back when they are restarted.
const labelsStill = 5 * time.Minute

// Asks is what the labels of a node ask for: its variants of the target and of the stable revision of a pool.
type Asks struct{ pool, target, want, stable, keep string }

// other: the labels ask for another variant of the same revision.
func (a Asks) other(b Asks) bool {
	return a.pool == b.pool && (a.target == b.target && a.want != b.want || a.stable == b.stable && a.keep != b.keep)
}

// labelsMoved: nothing but its labels asks for another variant than before, and they have not been still for long enough. A process that has not seen
// them change knows it from what the node has.
func (d *decision) labelsMoved(p *pool, m *member) bool {
	if !p.target.there {
		return false
	}
	s, now := m.seen, Asks{pool: p.Name, target: p.target.retry.Hash, want: m.want, keep: m.keep}
	if p.stable != nil {
		now.stable = p.stable.Hash
	}
	switch {
	case s.Asks.pool != now.pool:
		s.AsksFor, s.Relabelled = 0, false
	case s.Asks.other(now):
		s.AsksFor, s.Relabelled = 0, true
	case !p.classified:
		s.AsksFor += d.w.Elapsed
	}
	s.Asks = now
	if s.AsksFor >= labelsStill {
		s.Relabelled, s.Restless = false, 0
		return false
	}
	if s.Relabelled && !p.classified {
		s.Restless += d.w.Elapsed
	}
	n := m.node
	return s.Relabelled || p.recorded(n, now.target) && n.Source != m.want || p.stable != nil && p.recorded(n, now.stable) && n.Source != m.keep
}

// recorded: the node has what this pool has assigned to it of a revision.
func (p *pool) recorded(n *Node, hash string) bool {
	return n.Mark.Pool == p.Name && n.Retry.Pool == p.Name && n.Retry.Hash == hash && n.Mark.Records(n.Source)
}

// labelWords name those who wait for nothing but their labels.
func (p *pool) labelWords() string {
	waits := func(m *member) bool { return m.labelsMoved && (m.class == Old || m.class == Late) }
	if names := p.names(waits); names != "" {
		return fmt.Sprintf("labels that choose a variant have changed within %v: %s", labelsStill, names)
	}
	return ""
}
