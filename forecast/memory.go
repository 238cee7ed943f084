package forecast

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A NUMANode is memory that is near to some CPUs.
type NUMANode struct {
	ID        int
	Memory    int64                         // bytes; 0: not known
	HugePages map[corev1.ResourceName]int64 // bytes of all pages, by their size
}

// A MemoryState is what the file memory_manager_state says.
type MemoryState struct {
	Policy  string                           // that wrote it; "": there is no file
	Nodes   map[int]map[string]MemoryAmounts // by NUMA node and kind of memory
	Entries map[string]map[string]bool       // pods' containers that have memory
}

// MemoryAmounts are those of one kind on one node, in bytes. The kubelet computes without a sign, and where more is
// taken than there is it has nearly all numbers.
type MemoryAmounts struct {
	Total    uint64 `json:"total"`
	Reserved uint64 `json:"systemReserved"`
	Free     uint64 `json:"free"`
}

// DecodeMemoryState reads the file, of any kubelet: from 1.37 on, what counts is in the string "data", itself JSON.
func DecodeMemoryState(text []byte) (*MemoryState, error) {
	type document struct {
		Policy string `json:"policyName"`
		Nodes  map[int]struct {
			Memory map[string]MemoryAmounts `json:"memoryMap"`
		} `json:"machineState"`
		Entries map[string]map[string]json.RawMessage `json:"entries"`
	}
	var outer struct {
		document
		Data string `json:"data"`
	}
	if err := json.Unmarshal(text, &outer); err != nil {
		return nil, fmt.Errorf("reading the memory manager's state: %w", err)
	}
	d := outer.document
	if outer.Data != "" {
		d = document{}
		if err := json.Unmarshal([]byte(outer.Data), &d); err != nil {
			return nil, fmt.Errorf("reading the memory manager's state: %w", err)
		}
	}
	state := &MemoryState{Policy: d.Policy, Nodes: map[int]map[string]MemoryAmounts{}, Entries: map[string]map[string]bool{}}
	for id, node := range d.Nodes {
		state.Nodes[id] = node.Memory
	}
	for pod, containers := range d.Entries {
		state.Entries[pod] = map[string]bool{}
		for container := range containers {
			state.Entries[pod][container] = true
		}
	}
	return state, nil
}

// A memoryPool is what a static memory manager has for the containers of Guaranteed pods.
type memoryPool struct {
	has     map[string]map[string]bool // pods' containers, by the state file
	allHave bool                       // those that run, whatever the file says
	known   bool                       // free is known: there is one node, which leaves nothing to choose
	free    map[corev1.ResourceName]uint64
}

func (p memoryPool) clone() memoryPool {
	p.free = maps.Clone(p.free)
	return p
}

// memoryPoolsOf returns what the memory manager starts with, as poolsOf does of CPUs.
func memoryPoolsOf(c, now *Configuration, h Host) ([]memoryPool, error) {
	if c.MemoryManagerPolicy != "Static" {
		return nil, nil
	}
	fresh := memoryPool{known: h.oneNode() && h.NUMANodes[0].Memory > 0, free: map[corev1.ResourceName]uint64{}}
	reserved, err := c.reservedOnNodes()
	if err != nil {
		return nil, err
	}
	if fresh.known {
		node := h.NUMANodes[0]
		fresh.free[corev1.ResourceMemory] = uint64(node.Memory) - reserved[node.ID]["memory"]
		for name, bytes := range node.HugePages {
			fresh.free[corev1.ResourceMemory] -= uint64(bytes)
			fresh.free[name] = uint64(bytes) - reserved[node.ID][string(name)]
		}
	}
	kept := keepsMemory(now, h, reserved)
	var pools []memoryPool
	if kept != no {
		p := memoryPool{known: fresh.known && h.MemoryState != nil, free: map[corev1.ResourceName]uint64{}, allHave: h.MemoryState == nil}
		if h.MemoryState != nil {
			p.has = h.MemoryState.Entries
			for _, node := range h.MemoryState.Nodes {
				for name, amount := range node {
					p.free[corev1.ResourceName(name)] += amount.Free
				}
			}
		}
		pools = append(pools, p)
	}
	if kept != yes {
		pools = append(pools, fresh)
	}
	return pools, nil
}

// keepsMemory reports whether the memory manager starts with the state file that is there: of the same machine and the same reservations.
func keepsMemory(now *Configuration, h Host, reserved map[int]map[string]uint64) certainty {
	state := h.MemoryState
	if state == nil {
		before, err := now.reservedOnNodes()
		if now.MemoryManagerPolicy != "Static" {
			return no
		}
		if err == nil && maps.EqualFunc(before, reserved, maps.Equal[map[string]uint64]) {
			return yes
		}
		return perhaps
	}
	if state.Policy != "Static" || len(state.Nodes) == 0 {
		return no
	}
	for id, node := range state.Nodes {
		for name, amount := range node {
			if amount.Reserved != reserved[id][name] {
				return no
			}
		}
	}
	if len(h.NUMANodes) == 0 {
		return perhaps
	}
	if len(h.NUMANodes) != len(state.Nodes) {
		return no
	}
	for _, node := range h.NUMANodes {
		wrote, is := state.Nodes[node.ID]
		if !is || len(wrote) != len(node.HugePages)+1 || wrote["memory"].Total != uint64(node.Memory) {
			return no
		}
		for name, bytes := range node.HugePages {
			if wrote[string(name)].Total != uint64(bytes) {
				return no
			}
		}
	}
	return yes
}

// reservedOnNodes is what the memory manager keeps from pods, by NUMA node and kind of memory.
func (c *Configuration) reservedOnNodes() (map[int]map[string]uint64, error) {
	all := map[int]map[string]uint64{}
	for _, reservation := range c.ReservedMemory {
		node := int(reservation.NUMANode)
		if all[node] == nil {
			all[node] = map[string]uint64{}
		}
		for name, text := range reservation.Limits {
			quantity, err := resource.ParseQuantity(text)
			if err != nil || quantity.Sign() < 0 {
				return nil, fmt.Errorf("reservedMemory of node %d, %s: it is no quantity from 0 on", node, name)
			}
			all[node][name] = uint64(quantity.Value())
		}
	}
	return all, nil
}

// A memoryTurn is one pod's, in one pool: what its init containers had can be taken again.
type memoryTurn struct {
	again   map[corev1.ResourceName]uint64
	doubted bool // it may have been refused before, and then takes nothing more
}

// keeps reports whether a container has its memory already.
func (p *memoryPool) keeps(pod *candidate, c container) bool {
	return p.has[pod.kubeletUID()][c.name] || p.allHave && pod.runs
}

// take gives a container its memory, or returns why not.
func (p *memoryPool) take(t *memoryTurn, pod *candidate, c container) verdict {
	if len(c.memory) == 0 {
		return admitted
	}
	if t.again == nil {
		t.again = map[corev1.ResourceName]uint64{}
	}
	const reason = "UnexpectedAdmissionError"
	switch {
	case p.keeps(pod, c):
	case !p.known:
		return verdict{Reason: reason, why: "how much memory is free on which of the machine's NUMA nodes is not known"}
	default:
		for name, asked := range c.memory {
			if free := p.free[name] + t.again[name]; asked > free {
				return verdict{Reason: reason, certain: true, ordered: true, why: "it wants " + quantityText(name, int64(asked)) + " of " + string(name) +
					" alone, and " + quantityText(name, int64(free)) + " is free"}
			}
		}
		for name, asked := range c.memory {
			p.free[name] -= asked - min(asked, t.again[name])
		}
		p.known = !t.doubted
	}
	for name, asked := range c.memory {
		if c.ends {
			t.again[name] = max(t.again[name], asked)
		} else {
			t.again[name] -= min(asked, t.again[name])
		}
	}
	return admitted
}
