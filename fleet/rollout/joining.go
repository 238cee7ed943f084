package rollout

import (
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// youth is how long a node that is not Ready yet counts as new.
const youth = 10 * time.Minute

// joined reports whether a node got its assignment while it was new, and has not passed it yet. A process that
// started since does not know that.
func joined(n *Node, s *Seen, now time.Time) bool {
	age := now.Sub(n.Created).Abs()
	return n.Good == nodev1.Local && age < 3*youth && age-s.Assigned < youth
}

// isNew reports whether nothing was ever assigned to a node that was created minutes ago, or has the pool's own
// taint. The node may be Ready, because this process may not have seen it before.
func (p *aim) isNew(n *Node, now time.Time) bool {
	if n.Source != "" || n.Mark.Pool != "" || p.stable == nil {
		return false
	}
	return isYoung(n, now) || p.Spec.JoinTaint != "" && slices.Contains(n.Taints, p.Spec.JoinTaint)
}

// hasJoined reports whether a member has its first assignment and has not proven it yet, or still has its taint.
func (p *aim) hasJoined(m *member, now time.Time) bool {
	if p.stable == nil || m.node.Source != m.keep || m.node.Mark.Pool != p.Name {
		return false
	}
	return isYoung(m.node, now) && m.seen.Phase != Proven || p.Spec.JoinTaint != "" && slices.Contains(m.node.Taints, p.Spec.JoinTaint)
}

// isYoung reports whether a node was created minutes ago.
func isYoung(n *Node, now time.Time) bool {
	age := now.Sub(n.Created)
	return age < youth && age > -youth
}
