package rollout

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// nobody owns the node.
const nobody = -1

// label is one label of a node.
type label struct{ key, value string }

// selectors find the pools that may select a node without asking all of them: most pools ask for one value of one label.
type selectors struct {
	of   map[label][]int // indexes of pools, by a label that each of them asks for
	rest []int           // of those that ask in other ways
}

func (d *decision) indexSelectors() {
	d.selectors = selectors{of: map[label][]int{}}
	for i, p := range d.pools {
		if one, is := onlyValue(p.selector); is {
			d.selectors.of[one] = append(d.selectors.of[one], i)
		} else {
			d.selectors.rest = append(d.selectors.rest, i)
		}
	}
}

// onlyValue is a label with a value that every node has to have that a selector takes.
func onlyValue(s labels.Selector) (one label, is bool) {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if r.Values().Len() == 1 {
				return label{r.Key(), r.Values().UnsortedList()[0]}, true
			}
		}
	}
	return label{}, false
}

// selecting calls f with each pool that selects a node, in no order.
func (d *decision) selecting(n *Node, f func(i int)) {
	try := func(candidates []int) {
		for _, i := range candidates {
			if d.pools[i].selector.Matches(labels.Set(n.Labels)) {
				f(i)
			}
		}
	}
	try(d.selectors.rest)
	for key, value := range n.Labels {
		if of := d.selectors.of[label{key, value}]; of != nil {
			try(of)
		}
	}
}

// belong finds out which pool owns which node: of the pools that select it the one with the highest priority. At a tie nobody does.
func (d *decision) belong() {
	for _, n := range d.nodes {
		owner, tie := d.ownerOf(n)
		if tie {
			d.conflict(n, d.pools[owner].Spec.Priority)
			owner = nobody
		}
		if owner != nobody {
			d.leave(len(d.owner), d.pools[owner])
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

// leave marks a node that has a taint by which its pool says that nodes are taken away.
func (d *decision) leave(i int, p *pool) {
	if n := d.nodes[i]; !n.Leaving && slices.ContainsFunc(p.Spec.LeavingTaints, func(key string) bool { return slices.Contains(n.Taints, key) }) {
		leaving := *n
		leaving.Leaving = true
		d.nodes[i] = &leaving
	}
}

func (d *decision) ownerOf(n *Node) (owner int, tie bool) {
	owner = nobody
	if n.Labels[PoolLabel] == "none" {
		return nobody, false
	}
	d.selecting(n, func(i int) {
		switch {
		case owner == nobody || d.pools[i].Spec.Priority > d.pools[owner].Spec.Priority:
			owner, tie = i, false
		case d.pools[i].Spec.Priority == d.pools[owner].Spec.Priority:
			tie = true
		}
	})
	return owner, tie
}

// conflict tells all pools of a tie.
func (d *decision) conflict(n *Node, priority int32) {
	names := d.claimants(n, priority)
	for _, name := range names {
		if p := d.named[name]; p.conflicts == 0 {
			p.conflicts, p.conflictNode, p.conflictPools = 1, n.Name, strings.Join(names, ", ")
		} else {
			p.conflicts++
		}
	}
}

// claimants names the pools of a priority that select a node.
func (d *decision) claimants(n *Node, priority int32) (names []string) {
	d.selecting(n, func(i int) {
		if p := d.pools[i]; p.Spec.Priority == priority {
			names = append(names, p.Name)
		}
	})
	slices.Sort(names)
	return names
}

// rulesOf are those of the pool that a mark names; where it is gone, the defaults.
func (d *decision) rulesOf(name string) *rules {
	if p := d.named[name]; p != nil {
		return &p.rules
	}
	return &d.defaults
}
