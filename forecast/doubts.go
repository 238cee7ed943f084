package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// doubts are what the change brings about which the facts, or this package, do not know enough.
func doubts(f Facts, now, then world, list []*candidate) []Unknown {
	unknown := cgroupDoubts(f)
	if !slices.ContainsFunc(list, func(c *candidate) bool { return c.runs }) {
		return unknown
	}
	unknown = slices.Concat(unknown, unmeasured(now, then), memoryDoubts(f, now, then), startupProbeDoubts(f, list))
	for name := range maps.Keys(union(f.Now.FeatureGates, f.Then.FeatureGates)) {
		before, was := f.Now.FeatureGates[name]
		after, is := f.Then.FeatureGates[name]
		if before != after || was != is {
			unknown = append(unknown, Unknown{"featureGates." + name, "what this gate changes for running pods is not known"})
		}
	}
	if !maps.Equal(f.Now.QOSReserved, f.Then.QOSReserved) {
		unknown = append(unknown, Unknown{"qosReserved", "the kernel may end containers over the new limits of their class"})
	}
	if f.Now.localStorage() != f.Then.localStorage() {
		unknown = append(unknown, Unknown{"localStorageCapacityIsolation", "which pods use more local storage than they may is not known"})
	}
	if f.Now.idsPerPod() != f.Then.idsPerPod() && slices.ContainsFunc(list, func(c *candidate) bool { return c.pod.Spec.HostUsers != nil && !*c.pod.Spec.HostUsers }) {
		unknown = append(unknown, Unknown{"userNamespaces.idsPerPod", "the kubelet does not start while there are pods with a user namespace"})
	}
	return sortUnknown(unknown)
}

func union(a, b map[string]bool) map[string]bool {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]bool{}
	}
	maps.Copy(all, b)
	return all
}

// unmeasuredLosses are the running pods that the kubelet evicts where it measures what the facts lack. A threshold
// that is as it was is no doubt of the change.
func unmeasuredLosses(now, then world, list []*candidate) (losses []Loss) {
	if len(unmeasured(now, then)) == 0 {
		return nil
	}
	for _, c := range kubeletOrder(list) {
		if c.runs && !c.critical {
			losses = append(losses, verdict{Reason: "Evicted"}.loss(c))
		}
	}
	return losses
}

// unmeasured are new thresholds about which the facts say nothing. One that is as it was is no doubt of the change.
// That of all pods is no field.
func unmeasured(now, then world) (list []Unknown) {
	for signal, what := range then.pressure.unmeasured {
		if then.config.thresholdText(signal) != now.config.thresholdText(signal) {
			list = append(list, Unknown{signal, what + " is not known"})
		}
	}
	return list
}

func (c *Configuration) thresholdText(signal string) string {
	for field, thresholds := range map[string]map[string]string{"evictionHard.": c.EvictionHard, "evictionSoft.": c.EvictionSoft} {
		if name, is := strings.CutPrefix(signal, field); is {
			return thresholds[name]
		}
	}
	return ""
}

// memoryDoubts are about the limit of all pods' memory, and about what the kubelet does after it has admitted them.
func memoryDoubts(f Facts, now, then world) (list []Unknown) {
	if then.pressure.hardMemory > now.pressure.hardMemory {
		list = append(list, Unknown{"evictionHard.memory.available", "as long as it is met, the kubelet evicts more pods, one after the other"})
	}
	limited := f.Then.perQOS() && slices.Contains(f.Then.EnforceNodeAllocatable, "pods")
	wasLimited := f.Now.perQOS() && slices.Contains(f.Now.EnforceNodeAllocatable, "pods")
	if !limited || wasLimited && then.room.podLimit >= now.room.podLimit {
		return list
	}
	const what = "the memory limit of all pods"
	switch {
	case f.Host.PodsMemory == nil:
		list = append(list, Unknown{what, fmt.Sprintf("it would be %s, and what they use is not known", quantityText(corev1.ResourceMemory, then.room.podLimit))})
	case *f.Host.PodsMemory > then.room.podLimit:
		list = append(list, Unknown{what, fmt.Sprintf("it would be %s, and they use %s: the kernel may end some of them",
			quantityText(corev1.ResourceMemory, then.room.podLimit), quantityText(corev1.ResourceMemory, *f.Host.PodsMemory))})
	}
	return list
}
