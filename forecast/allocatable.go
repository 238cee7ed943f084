package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A room is what a Node has for pods with a configuration.
type room struct {
	pods     int64
	capacity amounts // of the machine, whatever the configuration
	amounts          // allocatable
	podLimit int64   // of the memory of all pods together, bytes
	lacks    string  // of what more is reserved than the machine has: a kubelet ends at its start; "": nothing
}

// capacityOf is what a kubelet that starts now finds. A running one reports the machine that it found at its own
// start, and memory, huge pages, CPUs and disks change since. Where nothing was measured, that has to do.
func capacityOf(node *corev1.Node, h Host) amounts {
	capacity := amountsOf(node.Status.Capacity)
	if len(h.CPUs) > 0 {
		capacity.milliCPU = 1000 * int64(len(h.CPUs))
	}
	capacity.memory = cmp.Or(h.MemoryTotal, capacity.memory)
	if capacity.storage > 0 { // else the kubelet does not count it
		capacity.storage = cmp.Or(h.Storage, capacity.storage)
	}
	capacity.scalars = withHugePages(capacity.scalars, h.HugePages)
	return capacity
}

// withHugePages replaces pages with those that were measured.
func withHugePages(scalars, pages map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	if pages == nil {
		return scalars
	}
	all := maps.Clone(pages)
	for name, value := range scalars {
		if !isHugePages(name) {
			all[name] = value
		}
	}
	return all
}

// roomOf computes what the kubelet will say is allocatable: capacity without what is reserved and without the hard eviction thresholds.
func roomOf(c *Configuration, node *corev1.Node, h Host) (room, error) {
	r := room{capacity: capacityOf(node, h)}
	if r.capacity.milliCPU == 0 || r.capacity.memory == 0 {
		return r, errors.New("the Node does not tell its capacity")
	}
	r.pods = int64(*c.MaxPods)
	if c.PodsPerCore > 0 {
		r.pods = min(r.pods, int64(c.PodsPerCore)*r.capacity.milliCPU/1000)
	}
	reserved, err := reservedOf(c)
	if err != nil {
		return r, err
	}
	memory, storage := hardReservation(c, "memory.available", r.capacity.memory), hardReservation(c, "nodefs.available", r.capacity.storage)
	r.lacks = lackOf(r.capacity, reserved.plus(amounts{memory: memory, storage: storage}, 1))
	r.podLimit = rest(r.capacity.memory, reserved.memory)
	r.milliCPU = rest(r.capacity.milliCPU, reserved.milliCPU)
	r.memory = rest(r.podLimit, memory)
	r.storage = rest(rest(r.capacity.storage, reserved.storage), storage)
	r.scalars = withHugePages(amountsOf(node.Status.Allocatable).scalars, h.HugePages)
	for name, pages := range r.capacity.scalars {
		if isHugePages(name) {
			r.memory = rest(r.memory, pages)
		}
	}
	return r, nil
}

// lackOf compares as the kubelet does before it touches a pod (validateNodeAllocatable in pkg/kubelet/cm, 1.23 to 1.37).
func lackOf(capacity, reserved amounts) string {
	for _, of := range []struct {
		name           corev1.ResourceName
		have, reserved int64
	}{{corev1.ResourceCPU, capacity.milliCPU, reserved.milliCPU}, {corev1.ResourceMemory, capacity.memory, reserved.memory},
		{corev1.ResourceEphemeralStorage, capacity.storage, reserved.storage}} {
		if of.have > 0 && of.reserved > of.have {
			return fmt.Sprintf("more %s is reserved than the machine's %s", of.name, quantityText(of.name, of.have))
		}
	}
	return ""
}

// rest is what is left when these amounts, neither below 0, are taken away.
func rest(of, taken int64) int64 { return max(of-taken, 0) }

// reservedOf is kubeReserved and systemReserved together. The list of reserved CPUs counts instead of both their CPU.
func reservedOf(c *Configuration) (amounts, error) {
	var all amounts
	for field, reserved := range map[string]map[string]string{"kubeReserved": c.KubeReserved, "systemReserved": c.SystemReserved} {
		list := corev1.ResourceList{}
		for name, text := range reserved {
			quantity, err := resource.ParseQuantity(text)
			if err != nil || quantity.Sign() < 0 {
				return all, fmt.Errorf("%s.%s is no quantity from 0 on", field, name)
			}
			list[corev1.ResourceName(name)] = quantity
		}
		all = all.plus(amountsOf(list), 1)
	}
	if c.ReservedSystemCPUs != "" {
		cpus, err := parseCPUs(c.ReservedSystemCPUs)
		if err != nil {
			return all, fmt.Errorf("reservedSystemCPUs: %w", err)
		}
		all.milliCPU = 1000 * int64(len(cpus))
	}
	return all, nil
}

// hardReservation is a hard threshold. What is none reserves nothing; pressureOf reports it.
func hardReservation(c *Configuration, signal string, capacity int64) int64 {
	t, _ := parseThreshold(c.EvictionHard[signal])
	return t.of(capacity)
}

// A threshold is a quantity, or a share of what there is. The zero value is none.
type threshold struct {
	quantity int64
	share    float32
}

// of computes as the kubelet does, its rounding included.
func (t threshold) of(capacity int64) int64 {
	if t.share > 0 {
		return int64(float64(capacity) * float64(t.share))
	}
	return t.quantity
}

func parseThreshold(text string) (threshold, error) {
	if share, is := strings.CutSuffix(text, "%"); is {
		if text == "100%" { // how a default is switched off, as with 0%
			return threshold{}, nil
		}
		percent, err := strconv.ParseFloat(share, 32)
		if err != nil || math.IsNaN(percent) || percent < 0 || percent > 100 {
			return threshold{}, fmt.Errorf("it is no share from 0%% to 100%%")
		}
		return threshold{share: float32(percent) / 100}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return threshold{}, fmt.Errorf("it is no quantity above 0")
	}
	return threshold{quantity: quantity.Value()}, nil
}
