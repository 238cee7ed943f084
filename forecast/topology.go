package forecast

import (
	"cmp"
	"maps"
	"slices"
)

// A CPU is one that is online, as a kubelet finds it. Siblings, which are threads of one core, have the same Core.
type CPU struct {
	ID     int
	Core   int // the lowest ID of its threads
	Socket int
	Node   int // of memory (NUMA)
}

// threads is how many CPUs a core has; 0: not known.
func (h Host) threads() int {
	if len(h.CPUs) == 0 {
		return 0
	}
	return len(h.CPUs) / len(h.unit(func(c CPU) int { return c.Core }))
}

// unit counts the CPUs of each core, socket or node.
func (h Host) unit(of func(CPU) int) map[int]int {
	sizes := map[int]int{}
	for _, c := range h.CPUs {
		sizes[of(c)]++
	}
	return sizes
}

// uniform reports whether all units of a kind are of one size.
func uniform(sizes map[int]int) bool {
	return len(slices.Compact(slices.Sorted(maps.Values(sizes)))) <= 1
}

// withSiblings adds the other threads of these CPUs' cores.
func (h Host) withSiblings(cpus []int) []int {
	cores, these := map[int]bool{}, setOf(cpus)
	for _, c := range h.CPUs {
		if these[c.ID] {
			cores[c.Core] = true
		}
	}
	var all []int
	for _, c := range h.CPUs {
		if cores[c.Core] {
			all = append(all, c.ID)
		}
	}
	return all
}

// nodesOf is on how many NUMA nodes these CPUs are.
func (h Host) nodesOf(cpus []int) int {
	nodes, these := map[int]bool{}, setOf(cpus)
	for _, c := range h.CPUs {
		if these[c.ID] {
			nodes[c.Node] = true
		}
	}
	return len(nodes)
}

// oneNode reports whether the machine has one NUMA node, so that there is nothing to choose.
func (h Host) oneNode() bool { return len(h.NUMANodes) == 1 }

// first is which CPUs the static CPU manager takes of all of them, where nothing is given away yet: whole nodes,
// sockets and cores, the lowest first. It is not known of machines whose units differ, nor with the options that
// spread CPUs.
func (h Host) first(count int, options map[string]string) (cpus []int, known bool) {
	cores, sockets, nodes := h.unit(func(c CPU) int { return c.Core }), h.unit(func(c CPU) int { return c.Socket }), h.unit(func(c CPU) int { return c.Node })
	if len(h.CPUs) < count || !uniform(cores) || !uniform(sockets) || !uniform(nodes) || isOn(options, preferUncoreCache) ||
		len(nodes) > 1 && (isOn(options, spreadOverNodes) || isOn(options, spreadOverCores)) {
		return nil, false
	}
	order := slices.Clone(h.CPUs)
	slices.SortFunc(order, func(a, b CPU) int {
		bySocket, byNode := cmp.Compare(a.Socket, b.Socket), cmp.Compare(a.Node, b.Node)
		if len(sockets) >= len(nodes) {
			bySocket, byNode = byNode, bySocket
		}
		byCore := cmp.Compare(a.Core, b.Core)
		if isOn(options, spreadOverCores) {
			byCore = 0
		}
		return cmp.Or(bySocket, byNode, byCore, cmp.Compare(a.ID, b.ID))
	})
	for _, c := range order[:count] {
		cpus = append(cpus, c.ID)
	}
	slices.Sort(cpus)
	return cpus, true
}
