package rollout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// unowned is the owner of a node that no pool owns.
const unowned = -1

// fleet has all nodes and pools, which pool owns which node, and what this process remembers of each. belong
// returns it.
type fleet struct {
	pools    []*Pool        // by name
	index    map[string]int // of pools, by name
	defaults rules          // of nodes without a pool
	nodes    []*Node        // by name
	owner    []int          // of each node: the index of its pool, or unowned
	held     []bool         // of each node: its label holds it out of pools
	seen     []Seen         // of each node
	owned    []membership   // of each pool
	absent   map[types.UID]Seen
	gone     []Gone
}

// membership has the nodes that concern a pool.
type membership struct {
	own    []int // the nodes that the pool owns
	marked []int // the nodes whose mark names the pool, even if another pool owns them

	conflicts                   int
	conflictNode, conflictPools string
}

// belong decides which pool owns which node: of those that select it, the one with the highest priority, and none
// at a tie. It also updates what this process remembers of each node.
func belong(w *World, defaults rules) fleet {
	f := fleet{pools: poolsByName(w.Pools), nodes: nodesByName(w.Nodes), defaults: defaults, index: make(map[string]int, len(w.Pools)),
		owned: make([]membership, len(w.Pools)), owner: make([]int, len(w.Nodes)), held: make([]bool, len(w.Nodes))}
	for i, p := range f.pools {
		f.index[p.Name] = i
	}
	selectors := indexSelectors(f.pools)
	for i, n := range f.nodes {
		owner, tie := selectors.ownerOf(n)
		if tie {
			f.conflict(n, selectors.claimants(n, f.pools[owner].Spec.Priority))
			owner = unowned
		}
		if owner != unowned {
			f.nodes[i] = leaving(n, f.pools[owner])
			f.owned[owner].own = append(f.owned[owner].own, i)
		}
		if p, is := f.pool(n.Mark.Pool); is {
			f.owned[p].marked = append(f.owned[p].marked, i)
		}
		f.owner[i], f.held[i] = owner, held(n)
	}
	f.remember(w)
	return f
}

// nodesByName sorts the nodes, so that the result does not depend on their order, as poolsByName does for pools.
func nodesByName(all []Node) []*Node {
	nodes := make([]*Node, len(all))
	for i := range all {
		nodes[i] = &all[i]
	}
	byName := func(a, b *Node) int {
		if order := strings.Compare(a.Name, b.Name); order != 0 {
			return order
		}
		return strings.Compare(string(a.UID), string(b.UID))
	}
	if !slices.IsSortedFunc(nodes, byName) {
		slices.SortFunc(nodes, byName)
	}
	return nodes
}

func poolsByName(all []Pool) []*Pool {
	pools := make([]*Pool, len(all))
	for i := range all {
		pools[i] = &all[i]
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return strings.Compare(a.Name, b.Name) })
	return pools
}

// leaving returns the node, marked as Leaving if it has a taint which its pool names as a sign of removal.
func leaving(n *Node, p *Pool) *Node {
	if n.Leaving || !slices.ContainsFunc(p.Spec.LeavingTaints, func(key string) bool { return slices.Contains(n.Taints, key) }) {
		return n
	}
	marked := *n
	marked.Leaving = true
	return &marked
}

func held(n *Node) bool { return n.Labels[RolloutLabel] == "hold" }

// pool returns the index of a pool.
func (f *fleet) pool(name string) (i int, is bool) {
	if name == "" {
		return 0, false
	}
	i, is = f.index[name]
	return i, is
}

// rulesOf returns the rules of the pool that a mark names, or the defaults if there is no such pool.
func (f *fleet) rulesOf(name string) *rules {
	if i, is := f.pool(name); is {
		return &f.pools[i].rules
	}
	return &f.defaults
}

// conflict records a tie for all pools that claim the node.
func (f *fleet) conflict(n *Node, claimants []string) {
	for _, name := range claimants {
		of := &f.owned[f.index[name]]
		if of.conflicts == 0 {
			of.conflictNode, of.conflictPools = n.Name, strings.Join(claimants, ", ")
		}
		of.conflicts++
	}
}

func (m *membership) conflictWords() string {
	return fmt.Sprintf("%d nodes are selected by several pools of the same priority, such as %s by %s", m.conflicts, m.conflictNode, m.conflictPools)
}

// aside reports whether the pool does not control the node: because of a label, a cordon, its removal, or another
// pool that owns it.
func (f *fleet) aside(i int) bool {
	n := f.nodes[i]
	if n.Mark.Pool == "" {
		return false
	}
	member := f.owner[i] != unowned && f.pools[f.owner[i]].Name == n.Mark.Pool
	return !member || n.Leaving || n.Cordoned || f.held[i]
}
