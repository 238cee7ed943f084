package rollout

import (
	"fmt"
	"time"
)

// labelsStill is how long labels must stay unchanged before another variant is assigned, because other controllers
// remove labels and restore them when they restart.
const labelsStill = 5 * time.Minute

// Asks has what the labels of a node ask for: its variants of the target and of the stable revision of a pool.
type Asks struct{ pool, target, want, stable, keep string }

// other reports whether the labels ask for another variant of the same revision.
func (a Asks) other(b Asks) bool {
	return a.pool == b.pool && (a.target == b.target && a.want != b.want || a.stable == b.stable && a.keep != b.keep)
}

// noteLabels remembers what the labels ask for now, and since when.
func (s *Seen) noteLabels(now Asks, elapsed time.Duration) {
	switch {
	case s.Asks.pool != now.pool:
		s.AsksFor, s.Relabelled = 0, false
	case s.Asks.other(now):
		s.AsksFor, s.Relabelled = 0, true
	default:
		s.AsksFor += elapsed
	}
	s.Asks = now
	switch {
	case s.AsksFor >= labelsStill:
		s.Relabelled, s.Restless = false, 0
	case s.Relabelled:
		s.Restless += elapsed
	}
}

// hasMovedLabels reports whether only the node's labels ask for another variant than before, and have not been
// unchanged for long enough. A process that has not seen the change knows it from the node's assignment.
func (n *Node) hasMovedLabels(s *Seen) bool {
	if s.AsksFor >= labelsStill {
		return false
	}
	a := &s.Asks
	return s.Relabelled || n.recorded(a.pool, a.target) && n.Source != a.want || a.stable != "" && n.recorded(a.pool, a.stable) && n.Source != a.keep
}

// recorded reports whether the node has what the pool has assigned to it from a revision.
func (n *Node) recorded(pool, hash string) bool {
	return n.Mark.Pool == pool && n.Retry.Pool == pool && n.Retry.Hash == hash && n.Mark.Records(n.Source)
}

// labelWords names the members that wait only for their labels.
func (c *crew) labelWords() string {
	waits := func(m *member) bool { return m.labelsMoved && (m.class == Old || m.class == Late) }
	if names := c.names(waits); names != "" {
		return fmt.Sprintf("labels that choose a variant have changed within %v: %s", labelsStill, names)
	}
	return ""
}
