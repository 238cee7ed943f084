package forecast

import (
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are resources as the kubelet compares them: bytes and thousandths of a CPU.
type amounts struct {
	milliCPU, memory, storage int64
	scalars                   map[corev1.ResourceName]int64
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func amountsOf(list corev1.ResourceList) amounts {
	var a amounts
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			a.milliCPU = milli(quantity)
		case name == corev1.ResourceMemory:
			a.memory = quantity.Value()
		case name == corev1.ResourceEphemeralStorage:
			a.storage = quantity.Value()
		case quantity.Value() > 0 && (strings.Contains(string(name), "/") || isHugePages(name)):
			if a.scalars == nil {
				a.scalars = map[corev1.ResourceName]int64{}
			}
			a.scalars[name] = quantity.Value()
		}
	}
	return a
}

// milli is a quantity in thousandths; the largest number for what has more of them.
func milli(quantity resource.Quantity) int64 {
	if quantity.Value() > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return quantity.MilliValue()
}

// sum stays at the largest number, and at the smallest, if there is no larger or smaller one: no machine has so much,
// but every user can write it.
func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

func (a amounts) plus(b amounts, sign int64) amounts {
	all := amounts{milliCPU: sum(a.milliCPU, sign*b.milliCPU), memory: sum(a.memory, sign*b.memory), storage: sum(a.storage, sign*b.storage), scalars: a.scalars}
	if len(b.scalars) > 0 {
		if all.scalars = maps.Clone(a.scalars); all.scalars == nil {
			all.scalars = map[corev1.ResourceName]int64{}
		}
		for name, value := range b.scalars {
			all.scalars[name] = sum(all.scalars[name], sign*value)
		}
	}
	return all
}

// A shortage is a resource of which there is not enough for one more pod.
type shortage struct {
	name            corev1.ResourceName
	asked, used, of int64
}

func (s shortage) missing() int64 { return s.asked - (s.of - s.used) }

// short lists what there is not enough of, in the kubelet's order. Pods are counted by the caller.
func (a amounts) short(used, of amounts) []shortage {
	var list []shortage
	look := func(name corev1.ResourceName, asked, used, of int64) {
		if asked > 0 && asked > of-used {
			list = append(list, shortage{name, asked, used, of})
		}
	}
	look(corev1.ResourceCPU, a.milliCPU, used.milliCPU, of.milliCPU)
	look(corev1.ResourceMemory, a.memory, used.memory, of.memory)
	look(corev1.ResourceEphemeralStorage, a.storage, used.storage, of.storage)
	for name, asked := range a.scalars {
		look(name, asked, used.scalars[name], of.scalars[name])
	}
	return list
}
