package forecast

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Enforced is what a kubelet writes at its start on a cgroup that is not its own: what is reserved for it (enforceExistingCgroup in
// pkg/kubelet/cm). No kubelet ever takes it back. Of pages of every size that it does not name, none may be used.
type Enforced struct {
	Cgroup   string // as the configuration names it
	Field    string // that has the amounts
	Memory   int64  // bytes; 0: none is written
	PIDs     int64  // -1: none is written
	MilliCPU int64  // -1: none is written

	Pages     map[int64]int64 // bytes, by the size of a page
	MemoryMin bool            // the memory is guaranteed as well
}

// Enforced lists what a kubelet with this configuration writes. An amount that is no quantity is none: such a kubelet refuses it.
func (c *Configuration) Enforced() (list []Enforced) {
	for _, of := range []struct {
		name, field, cgroup string
		reserved            map[string]string
	}{
		{"system-reserved", "systemReserved", c.SystemReservedCgroup, c.SystemReserved},
		{"kube-reserved", "kubeReserved", c.KubeReservedCgroup, c.KubeReserved},
	} {
		whole, cpu := slices.Contains(c.EnforceNodeAllocatable, of.name), slices.Contains(c.EnforceNodeAllocatable, of.name+"-compressible")
		if of.cgroup == "" || !whole && !cpu {
			continue
		}
		e := Enforced{Cgroup: of.cgroup, Field: of.field, PIDs: -1, MilliCPU: -1, Pages: map[int64]int64{}}
		e.read(of.reserved, whole)
		if cpus, err := parseCPUs(c.ReservedSystemCPUs); err == nil && len(cpus) > 0 { // counts instead of both their CPU
			e.MilliCPU = -1
			if of.field == "systemReserved" {
				e.MilliCPU = 1000 * int64(len(cpus))
			}
		}
		e.MemoryMin = whole && c.FeatureGates["MemoryQoS"]
		list = append(list, e)
	}
	return list
}

func (e *Enforced) read(reserved map[string]string, whole bool) {
	for name, text := range reserved {
		quantity, err := resource.ParseQuantity(text)
		size, isPages := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix)
		switch {
		case err != nil, quantity.Sign() < 0:
		case name == string(corev1.ResourceCPU):
			e.MilliCPU = milli(quantity)
		case !whole:
		case name == string(corev1.ResourceMemory):
			e.Memory = quantity.Value()
		case name == "pid":
			e.PIDs = quantity.Value()
		case isPages:
			if page, err := resource.ParseQuantity(size); err == nil {
				e.Pages[page.Value()] = quantity.Value()
			}
		}
	}
}
