package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// otherThanShown compares what the Node shows with the machine as it is, and with what the configuration that runs
// should give. A kubelet may not have said it yet, and one that runs knows the machine of its own start. What is
// allocatable is computed, so no loss depends on what is shown.
func otherThanShown(f Facts) (list []Unknown) {
	shown, found := amountsOf(f.Node.Status.Capacity), capacityOf(f.Node, f.Host)
	for _, d := range shown.differences(found) {
		list = append(list, Unknown{"the Node's capacity " + string(d.name),
			"it is " + quantityText(d.name, d.shown) + ", and a kubelet that starts now finds " + quantityText(d.name, d.found)})
	}
	given, _ := roomOf(f.Now, f.Node, Host{}) // an error was reported before
	shown = amountsOf(f.Node.Status.Allocatable)
	differences := amounts{milliCPU: shown.milliCPU, memory: shown.memory}.differences(amounts{milliCPU: given.milliCPU, memory: given.memory})
	if pods := f.Node.Status.Allocatable[corev1.ResourcePods]; pods.Value() != given.pods {
		differences = append(differences, difference{corev1.ResourcePods, pods.Value(), given.pods})
	}
	for _, d := range differences {
		list = append(list, Unknown{"the Node's allocatable " + string(d.name),
			"it is " + quantityText(d.name, d.shown) + ", and the configuration that runs would give " + quantityText(d.name, d.found)})
	}
	return list
}

type difference struct {
	name         corev1.ResourceName
	shown, found int64
}

// differences lists what is not the same, devices left out.
func (a amounts) differences(found amounts) (list []difference) {
	look := func(name corev1.ResourceName, shown, found int64) {
		if shown != found && shown > 0 { // else it is not told
			list = append(list, difference{name, shown, found})
		}
	}
	look(corev1.ResourceCPU, a.milliCPU, found.milliCPU)
	look(corev1.ResourceMemory, a.memory, found.memory)
	look(corev1.ResourceEphemeralStorage, a.storage, found.storage)
	for _, name := range slices.Sorted(maps.Keys(withHugePages(a.scalars, found.scalars))) {
		if a.scalars[name] != found.scalars[name] {
			list = append(list, difference{name, a.scalars[name], found.scalars[name]})
		}
	}
	return list
}
