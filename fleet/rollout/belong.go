package rollout

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// nobody owns the node.
const nobody = -1

// belong finds out which pool owns which node: of the pools that select it the one with the highest priority. At a tie nobody does.
func (d *decision) belong() {
	for _, n := range d.nodes {
		owner, tie := d.ownerOf(n)
		if tie {
			d.conflict(n, d.pools[owner].Spec.Priority)
			owner = nobody
		}
		if owner != nobody {
			d.pools[owner].own = append(d.pools[owner].own, len(d.owner))
		}
		if n.Mark.Pool != "" {
			if p := d.named[n.Mark.Pool]; p != nil {
				p.marked = append(p.marked, len(d.owner))
			}
		}
		d.owner, d.held = append(d.owner, owner), append(d.held, held(n))
	}
}

func (d *decision) ownerOf(n *Node) (owner int, tie bool) {
	owner = nobody
	if n.Labels[PoolLabel] == "none" {
		return nobody, false
	}
	for i, p := range d.pools {
		if !p.selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		switch {
		case owner == nobody || p.Spec.Priority > d.pools[owner].Spec.Priority:
			owner, tie = i, false
		case p.Spec.Priority == d.pools[owner].Spec.Priority:
			tie = true
		}
	}
	return owner, tie
}

// conflict tells all pools of a tie.
func (d *decision) conflict(n *Node, priority int32) {
	names := d.claimants(n, priority)
	for _, p := range d.pools {
		if p.Spec.Priority == priority && p.selector.Matches(labels.Set(n.Labels)) {
			if p.conflicts++; p.conflictNode == "" {
				p.conflictNode, p.conflictPools = n.Name, strings.Join(names, ", ")
			}
		}
	}
}

// claimants names the pools of a priority that select a node.
func (d *decision) claimants(n *Node, priority int32) (names []string) {
	for _, p := range d.pools {
		if p.Spec.Priority == priority && p.selector.Matches(labels.Set(n.Labels)) {
			names = append(names, p.Name)
		}
	}
	return names
}

// rulesOf are those of the pool that a mark names; where it is gone, the defaults.
func (d *decision) rulesOf(name string) *rules {
	if p := d.named[name]; p != nil {
		return &p.rules
	}
	return &d.defaults
}
