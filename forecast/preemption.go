package forecast

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// preempt makes room for a critical pod as the kubelet does: of the pods that were admitted before it, those of the
// lowest class first, and of a class as few and as fitting ones as can be. It reports whether there were enough.
func (a *admission) preempt(c *candidate, shortages []shortage) bool {
	var classes [3][]*candidate // BestEffort, Burstable, Guaranteed
	for _, other := range a.inside {
		if !preemptable(c, other) {
			continue
		}
		switch other.pod.Status.QOSClass {
		case corev1.PodQOSBestEffort:
			classes[0] = append(classes[0], other)
		case corev1.PodQOSGuaranteed:
			classes[2] = append(classes[2], other)
		default:
			classes[1] = append(classes[1], other)
		}
	}
	need := needs{}
	for _, s := range shortages {
		need = append(need, needed{s.name, s.missing()})
	}
	guaranteed, ok := a.nearest(classes[2], need.without(slices.Concat(classes[0], classes[1])))
	if !ok {
		return false
	}
	burstable, _ := a.nearest(classes[1], need.without(slices.Concat(classes[0], guaranteed.pods))) // with all of the lower classes there are enough
	bestEffort, _ := a.nearest(classes[0], need.without(slices.Concat(burstable.pods, guaranteed.pods)))
	word := verdict{Reason: "Preempting", certain: true, ordered: true, why: "it makes room for critical pod " + c.pod.Namespace + "/" + c.pod.Name}
	for _, chosen := range []choice{bestEffort, burstable, guaranteed} {
		for _, other := range chosen.pods {
			a.leave(other, word)
		}
		for other := range chosen.equals {
			a.either[other] = word.oneOfSeveral()
		}
	}
	return true
}

// A choice is which pods make room, and which of them and of others are equal to the kubelet, so that it may be any of these.
type choice struct {
	pods   []*candidate
	equals map[*candidate]bool
}

// preemptable reports whether a critical pod may take the room of another one.
func preemptable(by, other *candidate) bool {
	if !other.critical {
		return true
	}
	mine, its := by.pod.Spec.Priority, other.pod.Spec.Priority
	return mine != nil && its != nil && *mine > *its
}

type needed struct {
	name   corev1.ResourceName
	amount int64
}

type needs []needed

func (n needs) without(pods []*candidate) needs {
	var left needs
	for _, want := range n {
		for _, c := range pods {
			want.amount -= c.gives(want.name)
		}
		if want.amount > 0 {
			left = append(left, want)
		}
	}
	return left
}

// distance is how far a pod's end is from what is needed.
func (n needs) distance(c *candidate) (sum float64) {
	for _, want := range n {
		if left := float64(want.amount - c.gives(want.name)); left > 0 {
			sum += math.Pow(left/float64(want.amount), 2)
		}
	}
	return sum
}

// gives is what there is more of when the pod ends.
func (c *candidate) gives(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourcePods:
		return 1
	case corev1.ResourceCPU:
		return c.asks.milliCPU
	case corev1.ResourceMemory:
		return c.asks.memory
	case corev1.ResourceEphemeralStorage:
		return c.asks.storage
	}
	return c.asks.scalars[name]
}

// nearest picks pods until nothing more is needed, each time the nearest, and of equal ones the smaller. Of pods that are equal in both,
// the kubelet takes any: first one that does not run, which costs no pod. The list is used up.
func (a *admission) nearest(pods []*candidate, need needs) (picked choice, ok bool) {
	picked.equals = map[*candidate]bool{}
	equals := map[*candidate][]*candidate{} // of each that is picked
	for len(need) > 0 {
		if len(pods) == 0 {
			return choice{}, false
		}
		best := 0
		for i, c := range pods {
			if order := need.compare(c, pods[best]); order < 0 || order == 0 && (a.lastOfEquals || pods[best].runs && !c.runs) {
				best = i
			}
		}
		chosen := pods[best]
		pods = slices.Delete(pods, best, best+1)
		for _, other := range pods {
			if need.compare(other, chosen) == 0 {
				equals[chosen] = append(equals[chosen], other)
			}
		}
		need = need.without([]*candidate{chosen})
		picked.pods = append(picked.pods, chosen)
	}
	for chosen, others := range equals {
		for _, other := range others {
			if !slices.Contains(picked.pods, other) { // else all of them are taken
				picked.equals[chosen], picked.equals[other] = true, true
			}
		}
	}
	return picked, true
}

// compare orders pods by which one the kubelet takes first.
func (n needs) compare(a, b *candidate) int {
	return cmp.Or(cmp.Compare(n.distance(a), n.distance(b)), cmp.Compare(a.asks.memory, b.asks.memory), cmp.Compare(a.asks.milliCPU, b.asks.milliCPU))
}
