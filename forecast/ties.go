package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mostTurns bounds how many orders are tried where many different pods were created in one second.
const mostTurns = 24

// A replay is what a kubelet may do, over all orders that were tried.
type replay struct {
	verdicts map[*candidate]verdict
	// How many running pods go in each order, static ones not counted: when those in doubt stay, and when all of them
	// make room. Then those are not counted that may stay although others go.
	least, leastGone int
}

// replay tries the orders that may be. Pods of one second come in any: one that is refused in some of them only is not
// certain. How many are refused is exact where such pods ask for the same, as those of a Deployment; where they
// differ, the orders that are tried come near.
func (w world) replay(list []*candidate) replay {
	if w.room.lacks != "" {
		return replay{} // a kubelet that ends at its start kills no pod
	}
	r := replay{verdicts: map[*candidate]verdict{}, least: len(list), leastGone: len(list)}
	rounds := rounds{replay: &r, times: map[*candidate]int{}, either: map[*candidate]verdict{}}
	order := kubeletOrder(list)
	if !rounds.try(w, order, false) && !slices.ContainsFunc(order, (*candidate).holdsOther) {
		return r // all fit together, in any order
	}
	rounds.try(w, order, true)
	tied := ties(order)
	for _, other := range otherOrders(order, tied) {
		rounds.try(w, other, false)
	}
	for c, count := range rounds.times {
		if v := r.verdicts[c]; count < rounds.made && v.certain {
			r.verdicts[c] = v.oneOfSeveral()
		}
	}
	for _, t := range tied {
		for _, equals := range t.kinds {
			r.alike(equals)
		}
	}
	for c, v := range rounds.either {
		if said := r.verdicts[c]; said.certain {
			v = said.oneOfSeveral()
		} else if said.refused() {
			v = said
		}
		r.verdicts[c] = v
	}
	return r
}

// holdsOther reports whether a pod takes something else than it asks for, as one does that is resized: then what is
// left depends on who comes first.
func (c *candidate) holdsOther() bool { return c.holds.plain() != c.asks.plain() }

// Rounds are what was tried.
type rounds struct {
	*replay
	made   int
	times  map[*candidate]int     // how often each was refused
	either map[*candidate]verdict // of pods that may make room instead of an equal
}

// try admits in one order, and reports whether the order may count. Pods in doubt stay the first time, and then go:
// those for a shared reason, those for their own, and all.
func (r *rounds) try(w world, order []*candidate, lastOfEquals bool) (ordered bool) {
	a := w.admit(order, turn{lastOfEquals: lastOfEquals})
	stay, ordered := r.count(a)
	gone := stay
	if a.shared || a.own {
		gone = len(order)
	}
	for _, t := range []turn{{lastOfEquals, true, false}, {lastOfEquals, false, true}, {lastOfEquals, true, true}} {
		if (a.shared || !t.sharedGo) && (a.own || !t.othersGo) {
			lost, _ := r.count(w.admit(order, t))
			gone = min(gone, lost)
		}
	}
	r.least, r.leastGone = min(r.least, stay), min(r.leastGone, gone)
	return ordered
}

// count adds what a kubelet did in one round, and returns how many running pods it cost.
func (r *rounds) count(a *admission) (lost int, ordered bool) {
	r.made++
	maps.Copy(r.either, a.either)
	for c, v := range a.verdicts {
		if !v.refused() {
			continue
		}
		r.times[c]++
		ordered = ordered || v.ordered
		if c.runs && !c.static && a.lost(v) && (v.certain || v.shared) {
			lost++
		}
		if before, is := r.verdicts[c]; is {
			v = before.or(v)
		}
		r.verdicts[c] = v
	}
	return lost, ordered
}

// or is what to say where either may hold: the less certain. A word that depends on other pods comes first, for a change is about that.
func (v verdict) or(other verdict) verdict {
	if other.ordered && !v.ordered {
		v, other = other, v
	}
	switch {
	case !v.certain || other.certain:
		return v
	case v.ordered == other.ordered:
		return other
	}
	return v.oneOfSeveral()
}

func (v verdict) oneOfSeveral() verdict {
	v.certain = false
	v.why += "; but which pod is not certain: others were created in the same second, are its equals, or may go for another reason"
	return v
}

// alike makes what holds for some of several equal pods hold for each of them, without certainty.
func (r replay) alike(equals []*candidate) {
	var said verdict
	certain := 0
	for _, c := range equals {
		if v := r.verdicts[c]; v.certain {
			certain, said = certain+1, v.oneOfSeveral()
		} else if v.refused() {
			said = v
		}
	}
	if certain == len(equals) {
		return
	}
	for _, c := range equals {
		r.verdicts[c] = said
	}
}

// A tie is pods of one second, which are adjacent, by kind. Static pods are of a second of their own.
type tie struct {
	from  int
	kinds [][]*candidate
}

func ties(order []*candidate) (list []tie) {
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && order[to].created() == order[from].created() {
			to++
		}
		if to-from > 1 {
			list = append(list, tie{from, kindsOf(order[from:to])})
		}
		from = to
	}
	return list
}

// kindsOf puts pods together that are the same to the kubelet, the small ones first.
func kindsOf(pods []*candidate) (kinds [][]*candidate) {
	index := map[kind]int{}
	for _, c := range pods {
		kind := c.kind()
		i, is := index[kind]
		if !is {
			i = len(kinds)
			index[kind], kinds = i, append(kinds, nil)
		}
		kinds[i] = append(kinds[i], c)
	}
	slices.SortStableFunc(kinds, func(a, b []*candidate) int { return bySize(a[0], b[0]) })
	return kinds
}

// A kind is all that the admission looks at, of pods that are all static or all not.
type kind struct {
	runs                                                    bool
	devices, misplaced, untolerant, perhaps, memoryPressure bool

	asks, holds      [3]int64
	class            corev1.PodQOSClass
	priority         int64
	sysctls, further string
	features         string
}

func (c *candidate) kind() kind {
	k := kind{runs: c.runs,
		devices: c.devices, misplaced: c.misplaced, untolerant: c.untolerant, perhaps: c.perhaps, memoryPressure: c.memoryPressure,
		asks: c.asks.plain(), holds: c.holds.plain(), class: c.pod.Status.QOSClass,
		priority: math.MinInt64, sysctls: strings.Join(c.sysctls, " "), features: strings.Join(c.features, " ")}
	if c.pod.Spec.Priority != nil {
		k.priority = int64(*c.pod.Spec.Priority)
	}
	k.further = fmt.Sprint(c.asks.scalars, c.holds.scalars)
	for _, alone := range c.containers {
		k.further += fmt.Sprint(alone.ends, alone.cpus, alone.memory)
	}
	return k
}

func (a amounts) plain() [3]int64 { return [3]int64{a.milliCPU, a.memory, a.storage} }

// otherOrders are those in which pods of one second change places: each kind comes first once and last once, in each
// second next to all that may be in the others, where these are not too many.
func otherOrders(order []*candidate, tied []tie) (tried [][]*candidate) {
	if len(tied) == 0 {
		return nil
	}
	most, all := 0, 1
	for _, t := range tied {
		most, all = max(most, len(t.kinds)), min(all*len(t.kinds), mostTurns+1)
	}
	together := all > mostTurns
	if !together {
		most = all
	}
	for turn := range min(most, mostTurns) {
		forward, backward := slices.Clone(order), slices.Clone(order)
		for _, t := range tied {
			first := turn % len(t.kinds)
			if !together {
				turn /= len(t.kinds)
			}
			kinds := slices.Concat(t.kinds[first:], t.kinds[:first])
			copy(forward[t.from:], slices.Concat(kinds...))
			slices.Reverse(kinds)
			copy(backward[t.from:], slices.Concat(kinds...))
		}
		tried = append(tried, forward, backward)
	}
	return tried
}

func bySize(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.asks.memory, b.asks.memory), cmp.Compare(a.asks.milliCPU, b.asks.milliCPU), cmp.Compare(a.asks.storage, b.asks.storage))
}
