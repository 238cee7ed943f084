package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a topology manager refuses is certain where a pod has its CPUs already, and a doubt where it would be given some.
func TestNUMANodes(t *testing.T) {
	policy := func(policy, scope string) func(*Configuration) {
		return func(c *Configuration) { c.TopologyManagerPolicy, c.TopologyManagerScope = policy, scope }
	}
	on := func(own ...int) func(*Host) {
		return func(h *Host) {
			built(4, 1, 2)(h)
			h.CPUState = &CPUState{Policy: "static", Shared: without([]int{0, 1, 2, 3}, own), Entries: map[string]map[string][]int{"uid-a": {"main": own}}}
		}
	}
	two, burstable := []corev1.Pod{aPod("a", 0, guaranteed("2", "1Gi"))}, []corev1.Pod{aPod("a", 0, asks("cpu", "1", "example.com/gpu", "1"))}
	devices := func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") }
	static := changes(staticCPUs("1"))
	checkAll(t, []row{
		{name: "on one node", now: static, then: changes(policy("single-numa-node", "container")), pods: two, host: on(2, 3)},
		{name: "on two nodes", now: static, then: changes(policy("single-numa-node", "container")), pods: two, host: on(1, 2), losses: "a:TopologyAffinityError"},
		{name: "on two nodes, and one would do", now: static, then: changes(policy("restricted", "container")), pods: two, host: on(1, 2), losses: "a:TopologyAffinityError"},
		{name: "on two nodes, as many as it takes", now: static, then: changes(policy("restricted", "container")), pods: []corev1.Pod{aPod("a", 0, guaranteed("3", "1Gi"))}, host: on(1, 2, 3)},
		{name: "best effort", now: static, then: changes(policy("best-effort", "container")), pods: two, host: on(1, 2)},
		{name: "of a whole pod", now: static, then: changes(policy("restricted", "pod")), pods: two, host: on(1, 2), losses: "a:TopologyAffinityError?"},
		{name: "as it was", now: append(static, policy("restricted", "container")), then: changes(maxPods(19)), pods: two, host: on(2, 3)},
		{name: "more than any node has", now: changes(systemReserved("cpu", "1")), then: append(static, policy("single-numa-node", "container")), pods: []corev1.Pod{aPod("a", 0, guaranteed("3", "1Gi"))},
			host: built(4, 1, 2), losses: "a:TopologyAffinityError"},
		{name: "what is refused before takes nothing", then: append(static, policy("single-numa-node", "pod")),
			pods: []corev1.Pod{withInit(aPod("a", 0, guaranteed("3", "1Gi"))), aPod("b", 1, guaranteed("1", "1Gi"))},
			host: built(4, 1, 2), losses: "a:TopologyAffinityError b:TopologyAffinityError?"},
		{name: "given anew", now: changes(systemReserved("cpu", "1")), then: append(static, policy("restricted", "container")), pods: two, host: built(4, 1, 2), losses: "a:TopologyAffinityError?"},
		{name: "no manager gives anything", then: changes(policy("restricted", "container")), pods: two, host: built(4, 1, 2)},
		{name: "no Guaranteed pods", now: static, then: changes(policy("restricted", "container")), pods: []corev1.Pod{aPod("a", 0)}, host: built(4, 1, 2)},
		{name: "a Burstable pod's devices", then: changes(policy("restricted", "container")), pods: burstable, node: devices, host: built(4, 1, 2), anyway: "a:TopologyAffinityError?"},
	})
}

// A static memory manager gives a pod its memory again, unless it has the file in which it is.
func TestMemoryManager(t *testing.T) {
	manager := func(reserved string) func(*Configuration) {
		return func(c *Configuration) {
			c.MemoryManagerPolicy = "Static"
			c.SystemReserved = map[string]string{"memory": reserved}
			c.ReservedMemory = []ReservedMemory{{Limits: map[string]string{"memory": reserved}}}
			c.EvictionHard = nil
		}
	}
	file := func(total, reserved, free int64, has ...string) func(*Host) {
		return func(h *Host) {
			h.MemoryState = &MemoryState{Policy: "Static", Nodes: map[int]map[string]MemoryAmounts{0: {"memory": {Total: uint64(total), Reserved: uint64(reserved), Free: uint64(free)}}}, Entries: map[string]map[string]bool{}}
			for _, name := range has {
				h.MemoryState.Entries["uid-"+name] = map[string]bool{"main": true}
			}
		}
	}
	pods := []corev1.Pod{aPod("a", 0, guaranteed("1", "3Gi")), aPod("b", 1, guaranteed("1", "3Gi"))}
	checkAll(t, []row{
		{name: "room for both", then: changes(manager("1Gi")), pods: pods},
		{name: "room for one", then: changes(manager("3Gi")), pods: pods, losses: "b:UnexpectedAdmissionError"},
		{name: "what a refused pod took stays taken", then: changes(manager("1100Mi"), maxPods(2)), pods: []corev1.Pod{aPod("x", 0), aPod("y", 1), aPod("z", 2, guaranteed("1", "3584Mi")), aPod("crit", 3, priority(systemCritical), guaranteed("1", "3584Mi"))},
			losses: "z:OutOfpods crit:UnexpectedAdmissionError"},
		{name: "they have theirs", now: changes(manager("1Gi")), then: changes(maxPods(19)), pods: pods, host: file(8*gi, gi, gi, "a", "b")},
		{name: "an init container wants more than is free", now: changes(manager("1Gi")), then: changes(maxPods(19)), pods: []corev1.Pod{withInit(pods[0]), pods[1]}, host: file(8*gi, gi, gi, "a", "b"),
			anyway: "a:UnexpectedAdmissionError"},
		{name: "another reservation", now: changes(manager("1Gi")), then: changes(manager("3Gi")), pods: pods, host: file(8*gi, gi, gi, "a", "b"), losses: "b:UnexpectedAdmissionError"},
		{name: "another machine", now: changes(manager("1Gi")), then: changes(maxPods(19)), pods: pods, host: file(7*gi, gi, 0, "a", "b")},
		{name: "two nodes", then: changes(manager("1Gi")), pods: pods[:1], host: built(4, 1, 2), losses: "a:UnexpectedAdmissionError?"},
		{name: "two nodes, and it has its own", now: changes(manager("1Gi")), then: changes(maxPods(19)), pods: pods[:1], host: func(h *Host) {
			built(4, 1, 2)(h)
			file(4*gi, gi, 0, "a")(h)
			h.MemoryState.Nodes[1] = map[string]MemoryAmounts{"memory": {Total: uint64(4 * gi), Free: uint64(4 * gi)}}
		}},
		{name: "the file is not known", now: changes(manager("1Gi")), then: changes(maxPods(19)), pods: pods},
		{name: "the file is not known, and may not be kept", now: changes(manager("1Gi")), then: changes(manager("3Gi")), pods: pods, losses: "b:OutOfmemory"}, // by the word that is certain
	})
}

func TestMemoryStateOfAnyKubelet(t *testing.T) {
	const old = `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":8,"systemReserved":1,"allocatable":7,"reserved":3,"free":4}},"cells":[0]}},` +
		`"entries":{"uid":{"main":[{"numaAffinity":[0],"type":"memory","size":3}]}},"checksum":1}`
	for name, text := range map[string]string{"up to 1.36": old, "1.37": `{"policyName":"Static","data":` + quoted(old) + `}`} {
		got, err := DecodeMemoryState([]byte(text))
		if err != nil || got.Policy != "Static" || got.Nodes[0]["memory"] != (MemoryAmounts{8, 1, 4}) || !got.Entries["uid"]["main"] {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	const beside = `{"policyName":"None","machineState":{"1":{}},"entries":{"old":{"main":[]}},"data":"{\"policyName\":\"Static\"}"}` // of which the data alone counts
	if got, err := DecodeMemoryState([]byte(beside)); err != nil || got.Policy != "Static" || len(got.Nodes)+len(got.Entries) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `{"machineState":{"x":{}}}`, `{"entries":{"a":[]}}`, `{"data":"x"}`} {
		if got, err := DecodeMemoryState([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
