package forecast

import (
	"fmt"
	"maps"
	"slices"
)

// A numaRule is what a topology manager asks of pods that have to be near to their CPUs, memory and devices. The
// policies none and best-effort refuse no pod.
type numaRule struct {
	strict   bool
	single   bool // all on one node
	wholePod bool // its containers together
	asItWas  bool // as with the configuration that runs
	bySocket bool // align-by-socket: what is near is not a matter of nodes alone
	host     Host
	nodes    []int // how many CPUs each node has, the largest first
}

func numaRuleOf(c, now *Configuration, h Host) numaRule {
	r := numaRule{single: c.TopologyManagerPolicy == "single-numa-node", wholePod: c.TopologyManagerScope == "pod", host: h,
		bySocket: isOn(c.CPUManagerPolicyOptions, alignBySocket)}
	r.strict = r.single || c.TopologyManagerPolicy == "restricted"
	r.asItWas = now.TopologyManagerPolicy == c.TopologyManagerPolicy && now.TopologyManagerScope == c.TopologyManagerScope &&
		maps.Equal(now.TopologyManagerOptions, c.TopologyManagerOptions) && isOn(now.CPUManagerPolicyOptions, alignBySocket) == r.bySocket
	r.nodes = slices.Sorted(maps.Values(h.unit(func(c CPU) int { return c.Node })))
	slices.Reverse(r.nodes)
	return r
}

const affinityError = "TopologyAffinityError"

// place reports whether a pod is refused at this container because of where its CPUs, memory and devices are. What it
// has already stays where it is; where it would get what it has not is not known, except on a machine of one node,
// which leaves no choice.
func (m *managers) place(c *candidate, at int) verdict {
	r := m.numa
	if !r.strict || r.host.oneNode() {
		return admitted
	}
	together := c.containers
	switch {
	case r.wholePod && at > 0:
		return admitted
	case !r.wholePod && len(together) > 0:
		together = together[at : at+1]
	}
	cpus, memory := m.asked(together)
	switch {
	case cpus == 0 && !memory && !c.devices:
		return admitted
	case r.single && len(r.nodes) > 0 && cpus > r.nodes[0]:
		return verdict{Reason: affinityError, certain: true, why: fmt.Sprintf("it wants %d CPUs of one NUMA node, and none has more than %d", cpus, r.nodes[0])}
	case r.asItWas && m.keep(c, together):
		return admitted
	case !memory && !c.devices && !r.wholePod && !r.bySocket && m.keep(c, together) && m.cpus[0].has != nil && len(r.nodes) > 0:
		own := m.cpus[0].has[c.kubeletUID()][together[0].name]
		if on := r.host.nodesOf(own); on > r.fewest(cpus) {
			return verdict{Reason: affinityError, certain: true, why: fmt.Sprintf("its CPUs are on %d NUMA nodes", on)}
		}
		return admitted
	}
	return verdict{Reason: affinityError, why: "on which of the machine's NUMA nodes it would be is not known"}
}

// asked is what these containers want of the managers that give it.
func (m *managers) asked(containers []container) (cpus int, memory bool) {
	if len(m.cpus) > 0 {
		cpus = alone(containers)
	}
	for _, c := range containers {
		memory = memory || len(m.memory) > 0 && len(c.memory) > 0
	}
	return cpus, memory
}

// keep reports whether these containers of a pod certainly keep what they have.
func (m *managers) keep(c *candidate, containers []container) bool {
	for _, wants := range containers {
		for i := range m.cpus {
			if wants.cpus > 0 && !m.cpus[i].keeps(c, wants) {
				return false
			}
		}
		for i := range m.memory {
			if len(wants.memory) > 0 && !m.memory[i].keeps(c, wants) {
				return false
			}
		}
	}
	return true
}

// fewest is how many nodes so many CPUs take.
func (r numaRule) fewest(cpus int) int {
	for i, size := range r.nodes {
		if cpus -= size; cpus <= 0 {
			return i + 1
		}
	}
	return len(r.nodes)
}
