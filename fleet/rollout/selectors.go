package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// label is one label of a node.
type label struct{ key, value string }

// selectors finds the pools that may select a node without testing all of them, because most pools require one
// value of one label.
type selectors struct {
	pools []*Pool
	of    map[label][]int // indexes of pools, by a label that each of them requires
	rest  []int           // the other pools
}

func indexSelectors(pools []*Pool) selectors {
	s := selectors{pools: pools, of: map[label][]int{}}
	for i, p := range pools {
		if one, is := onlyValue(p.selector); is {
			s.of[one] = append(s.of[one], i)
		} else {
			s.rest = append(s.rest, i)
		}
	}
	return s
}

// onlyValue returns a label with a value that a selector requires of every node.
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
func (s *selectors) selecting(n *Node, f func(i int)) {
	try := func(candidates []int) {
		for _, i := range candidates {
			if s.pools[i].selector.Matches(labels.Set(n.Labels)) {
				f(i)
			}
		}
	}
	try(s.rest)
	for key, value := range n.Labels {
		if of := s.of[label{key, value}]; of != nil {
			try(of)
		}
	}
}

// ownerOf returns the pool with the highest priority of those that select a node, or one of them at a tie.
func (s *selectors) ownerOf(n *Node) (owner int, tie bool) {
	owner = unowned
	if n.Labels[PoolLabel] == "none" {
		return unowned, false
	}
	s.selecting(n, func(i int) {
		switch {
		case owner == unowned || s.pools[i].Spec.Priority > s.pools[owner].Spec.Priority:
			owner, tie = i, false
		case s.pools[i].Spec.Priority == s.pools[owner].Spec.Priority:
			tie = true
		}
	})
	return owner, tie
}

// claimants returns the names of the pools of a priority that select a node.
func (s *selectors) claimants(n *Node, priority int32) (names []string) {
	s.selecting(n, func(i int) {
		if p := s.pools[i]; p.Spec.Priority == priority {
			names = append(names, p.Name)
		}
	})
	slices.Sort(names)
	return names
}
