package forecast

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// doubts are what the change brings about which the facts, or this package, do not know enough.
func doubts(f Facts, now, then world, list []*candidate) []Unknown {
	unknown := limitDoubts(f)
	if !slices.ContainsFunc(list, func(c *candidate) bool { return c.runs }) {
		return unknown
	}
	unknown = slices.Concat(unknown, unmeasured(now, then), memoryDoubts(f, now, then))
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

// EnforcedCgroups are those whose limits are what is reserved for them, beside the pods' own, and by which field.
func (c *Configuration) EnforcedCgroups() map[string]string {
	enforced := map[string]string{}
	for name, cgroup := range map[string]string{"kube-reserved": c.KubeReservedCgroup, "system-reserved": c.SystemReservedCgroup} {
		if cgroup != "" && slices.Contains(c.EnforceNodeAllocatable, name) {
			enforced[name] = cgroup
		}
	}
	return enforced
}

// limitDoubts are about cgroups that would have a limit below what their processes take: the kernel ends some of them, or lets none begin. The
// container runtime and the kubelet itself may be among them.
func limitDoubts(f Facts) (list []Unknown) {
	for name, cgroup := range f.Then.EnforcedCgroups() {
		field, reserved := "kubeReserved", f.Then.KubeReserved
		if name == "system-reserved" {
			field, reserved = "systemReserved", f.Then.SystemReserved
		}
		use := f.Host.Cgroups[cgroup]
		for _, of := range []struct {
			kind corev1.ResourceName
			used int64
		}{{corev1.ResourceMemory, use.Memory}, {"pid", use.PIDs}} {
			limit, err := resource.ParseQuantity(reserved[string(of.kind)])
			if err == nil && limit.Value() > 0 && limit.Value() < of.used {
				used, most := amountText(string(of.kind), of.used), amountText(string(of.kind), limit.Value())
				list = append(list, Unknown{field + "." + string(of.kind), "it would be the limit of cgroup " + cgroup + ", whose processes take " + used + " and not " + most +
					": the kernel may end some of them, or let none begin; the kubelet and the container runtime may be among them"})
			}
		}
	}
	return list
}

func union(a, b map[string]bool) map[string]bool {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]bool{}
	}
	maps.Copy(all, b)
	return all
}

// unmeasuredLosses are the running pods that the kubelet evicts where it measures what the facts lack. A threshold that is as it was is no doubt
// of the change.
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
func unmeasured(now, then world) (list []Unknown) {
	for signal, what := range then.pressure.unmeasured {
		if signal == podMemory {
			continue
		}
		if then.config.thresholdText(signal) != now.config.thresholdText(signal) {
			list = append(list, Unknown{signal, what + " is not known"})
		}
	}
	return list
}

func (c *Configuration) thresholdText(signal string) string {
	for field, thresholds := range map[string]map[string]string{"evictionHard.": c.EvictionHard, "evictionSoft.": c.EvictionSoft} {
		if len(signal) > len(field) && signal[:len(field)] == field {
			return thresholds[signal[len(field):]]
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
