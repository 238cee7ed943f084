package forecast

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func staticCPUs(reserved string, options ...string) func(*Configuration) {
	return func(c *Configuration) {
		c.CPUManagerPolicy, c.KubeReserved, c.CPUManagerPolicyOptions = "static", map[string]string{"cpu": reserved}, map[string]string{}
		for _, option := range options {
			c.CPUManagerPolicyOptions[option] = "true"
		}
	}
}

// With full-pcpus-only the kubelet asks, before it looks into its state file, whether as many CPUs are free as a container wants: on cores of
// which nothing is reserved, its own CPUs not counted.
func TestWholeCores(t *testing.T) {
	only := staticCPUs("1", "full-pcpus-only")
	file := func(shared string, entries map[string][]int) func(*Host) {
		return func(h *Host) {
			cpus, _ := parseCPUs(shared)
			h.CPUState = &CPUState{Policy: "static", Shared: cpus, Entries: map[string]map[string][]int{}}
			for name, own := range entries {
				h.CPUState.Entries["uid-"+name] = map[string][]int{"main": own}
			}
		}
	}
	hosts := func(changes ...func(*Host)) func(*Host) {
		return func(h *Host) {
			for _, change := range changes {
				change(h)
			}
		}
	}
	one, two := aPod("one", 1, guaranteed("1", "1Gi")), aPod("two", 2, guaranteed("2", "1Gi"))
	before := changes(staticCPUs("1"))
	checkAll(t, []row{
		{name: "its own CPUs do not count", now: before, then: changes(only), pods: []corev1.Pod{two}, host: file("0,3", map[string][]int{"two": {1, 2}}), losses: "two:SMTAlignmentError"},
		{name: "as many are free", now: before, then: changes(only), pods: []corev1.Pod{one}, host: file("0,2-3", map[string][]int{"one": {1}})},
		{name: "two CPUs, of which one is reserved", now: before, then: changes(only), pods: []corev1.Pod{one}, node: cpuCount(2),
			host: hosts(built(2, 1, 1), file("0", map[string][]int{"one": {1}})), losses: "one:SMTAlignmentError"},
		{name: "with the configuration that runs too", now: changes(only), then: changes(maxPods(19)), pods: []corev1.Pod{two}, host: file("0,3", map[string][]int{"two": {1, 2}}), anyway: "two:SMTAlignmentError"},
		{name: "a sibling of a reserved CPU is not free", now: before, then: changes(only), pods: []corev1.Pod{two}, host: hosts(built(4, 2, 1), file("0,2", map[string][]int{"two": {1, 3}})), losses: "two:SMTAlignmentError"},
		{name: "a fresh file, and half of two cores is reserved", node: cpuCount(8), unknown: "the Node's allocatable cpu", host: built(8, 2, 1), then: changes(only, func(c *Configuration) { c.ReservedSystemCPUs = "0-1" }),
			pods: []corev1.Pod{aPod("four", 1, guaranteed("4", "1Gi")), two}, losses: "two:SMTAlignmentError"},
		{name: "a fresh file, no siblings", now: changes(func(c *Configuration) { c.KubeReserved = map[string]string{"cpu": "1"} }), then: changes(only), pods: []corev1.Pod{two}, host: built(4, 2, 1)},
		{name: "siblings are not known", now: before, then: changes(only), pods: []corev1.Pod{two}, host: hosts(func(h *Host) { h.CPUs = nil }, file("0,3", map[string][]int{"two": {1, 2}})), losses: "two:SMTAlignmentError?"},
		{name: "an init container's CPUs count as taken", now: changes(func(c *Configuration) { c.KubeReserved = map[string]string{"cpu": "1"} }), then: changes(only), pods: []corev1.Pod{withInit(two)},
			losses: "two:SMTAlignmentError"},
	})
}

// withInit gives a pod an init container that wants the same.
func withInit(pod corev1.Pod) corev1.Pod {
	first := *pod.Spec.Containers[0].DeepCopy()
	first.Name = "first"
	pod.Spec.InitContainers = []corev1.Container{first}
	return pod
}

// withTwoInits gives a pod two init containers that want so many CPUs.
func withTwoInits(pod corev1.Pod, cpus string) corev1.Pod {
	pod = withInit(pod)
	first := &pod.Spec.InitContainers[0]
	first.Resources.Requests[corev1.ResourceCPU], first.Resources.Limits = resource.MustParse(cpus), nil
	second := *first.DeepCopy()
	second.Name = "second"
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, second)
	return pod
}

func withSidecar(pod *corev1.Pod) {
	*pod = withInit(*pod)
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers[0].RestartPolicy = &always
}

func TestCPUs(t *testing.T) {
	two := []corev1.Pod{aPod("be", 0), aPod("one", 1, guaranteed("1", "1Gi")), aPod("two", 2, guaranteed("2", "1Gi")), aPod("part", 3, guaranteed("100m", "1Gi"))}
	file := func(policy, shared string, entries map[string]map[string][]int) func(*Host) {
		cpus, _ := parseCPUs(shared)
		return func(h *Host) { h.CPUState = &CPUState{Policy: policy, Shared: cpus, Entries: entries} }
	}
	own := map[string]map[string][]int{"uid-one": {"main": {1}}, "uid-two": {"main": {2, 3}}}
	checkAll(t, []row{
		{name: "enough", then: changes(staticCPUs("500m")), pods: two},
		{name: "a part of a CPU is a whole one", then: changes(staticCPUs("1100m")), pods: two, losses: "two:UnexpectedAdmissionError"},
		{name: "a part of a CPU without the manager", then: changes(systemReserved("cpu", "900m")), pods: two},
		{name: "a grown reservation, the file is refused", now: changes(staticCPUs("500m")), then: changes(staticCPUs("1100m")), pods: two, host: file("static", "0", own), losses: "two:UnexpectedAdmissionError"},
		{name: "a grown reservation of what is free", now: changes(staticCPUs("500m")), then: changes(staticCPUs("1500m")), pods: two[:2], host: file("static", "0,2-3", map[string]map[string][]int{"uid-one": {"main": {2}}}),
			unknown: ""},
		{name: "a grown reservation, which CPUs is not known", now: changes(staticCPUs("500m")), then: changes(staticCPUs("1100m")), pods: two, host: func(h *Host) { h.CPUs, h.NUMANodes = nil, nil }, losses: "two:OutOfcpu"}, // by the word that is certain
		{name: "as it was", now: changes(staticCPUs("1")), then: changes(maxPods(19)), pods: append(two[:2:2], aPod("three", 3, guaranteed("2", "1Gi")))},
		{name: "from static to none", now: changes(staticCPUs("500m")), then: changes(func(c *Configuration) { c.CPUManagerPolicy = "none" }), pods: two, host: file("static", "0", own)},
		{name: "no file", then: changes(staticCPUs("500m")), pods: two, host: file("", "", nil)},
		{name: "whole cores", now: changes(staticCPUs("500m")), then: changes(staticCPUs("500m", "full-pcpus-only")), pods: two, host: built(4, 2, 1), losses: "one:SMTAlignmentError two:SMTAlignmentError"},
		{name: "whole cores of unknown size", now: changes(staticCPUs("500m")), then: changes(staticCPUs("500m", "full-pcpus-only")), pods: two, host: func(h *Host) { h.CPUs = nil }, losses: "one:SMTAlignmentError? two:SMTAlignmentError?"},
		{name: "strict, and reserved CPUs are shared", now: changes(staticCPUs("500m")), then: changes(staticCPUs("500m", "strict-cpu-reservation")), pods: two, host: file("static", "0", own)},
		{name: "a static pod has its CPUs by the ID on its mirror", now: changes(staticCPUs("1")), then: changes(maxPods(19)), pods: []corev1.Pod{aPod("s", 0, static, guaranteed("3", "1Gi"))},
			host: file("static", "0", map[string]map[string][]int{"0123": {"main": {1, 2, 3}}})},
		{name: "an init container's CPUs are used again", then: changes(staticCPUs("1")), pods: []corev1.Pod{withInit(aPod("a", 0, guaranteed("2", "1Gi"))), aPod("b", 1, guaranteed("1", "1Gi"))}},
		{name: "a sidecar's CPUs are not", then: changes(staticCPUs("1")), pods: []corev1.Pod{aPod("a", 0, guaranteed("1", "1Gi"), withSidecar), aPod("b", 1, guaranteed("1", "1Gi")), aPod("c", 2, guaranteed("1", "1Gi"))},
			losses: "c:UnexpectedAdmissionError"},
		{name: "a pod that may be refused may have got less", then: changes(staticCPUs("3")), node: cpuCount(6), unknown: "the Node's allocatable cpu", host: built(6, 2, 1),
			pods: []corev1.Pod{withTwoInits(aPod("a", 0, guaranteed("4", "1Gi")), "2"), aPod("b", 1, guaranteed("1", "1Gi"))}, losses: "a:OutOfcpu b:UnexpectedAdmissionError?"},
		{name: "an init container's CPUs may not be used again", then: changes(staticCPUs("1")), host: built(4, 2, 1), pods: []corev1.Pod{withInit(aPod("a", 0, guaranteed("1", "1Gi"))), aPod("b", 1, guaranteed("2", "1Gi"))},
			losses: "b:UnexpectedAdmissionError?"},
		{name: "what a refused pod took, on a machine whose cores differ", then: changes(staticCPUs("1"), func(c *Configuration) { c.SystemReserved = map[string]string{"memory": "5Gi"} }),
			pods: []corev1.Pod{aPod("big", 0, guaranteed("2", "4Gi")), aPod("next", 1, guaranteed("2", "1Gi"))}, host: func(h *Host) { h.CPUs[3].Core = 2 },
			losses: "big:OutOfmemory next:UnexpectedAdmissionError?"},
		{name: "a strict reservation that is in the shared CPUs, so the file is refused", now: changes(staticCPUs("1")), then: changes(staticCPUs("1", "strict-cpu-reservation")),
			host: file("static", "0", map[string]map[string][]int{"uid-a": {"main": {1}}, "uid-gone": {"main": {2, 3}}}),
			pods: []corev1.Pod{aPod("a", 0, guaranteed("1", "1Gi")), aPod("b", 1, guaranteed("2", "1Gi"))}},
		{name: "a strict reservation whose file is kept", now: changes(staticCPUs("1", "strict-cpu-reservation")), then: changes(maxPods(19)), host: file("static", "3", map[string]map[string][]int{"uid-a": {"main": {1}}, "uid-gone": {"main": {2}}}),
			pods: []corev1.Pod{aPod("a", 0, guaranteed("1", "1Gi")), aPod("b", 1, guaranteed("2", "1Gi"))}, anyway: "b:UnexpectedAdmissionError"},
		{name: "what a refused pod took stays taken", then: changes(staticCPUs("1"), func(c *Configuration) { c.SystemReserved = map[string]string{"memory": "5Gi"} }),
			pods: []corev1.Pod{aPod("big", 0, guaranteed("2", "4Gi")), aPod("next", 1, guaranteed("2", "1Gi"))}, losses: "big:OutOfmemory next:UnexpectedAdmissionError"},
	})
}

// A reservation that no machine has costs no memory, nor time.
func TestTooManyCPUs(t *testing.T) {
	for _, list := range []string{"0-99999", strings.Repeat("0-65535,", 100)} {
		if cpus, err := parseCPUs(list); err == nil {
			t.Errorf("%.20s: %d CPUs", list, len(cpus))
		}
	}
	row{then: changes(staticCPUs("9E")), pods: []corev1.Pod{aPod("one", 1, guaranteed("1", "1Gi"))}, unknown: "the configuration that is to run",
		host: func(h *Host) { h.CPUState = &CPUState{Policy: "static", Shared: []int{0, 1, 2, 3}} }}.check(t)
}

func TestInitContainersCPUsAreUsedAgain(t *testing.T) {
	pod := aPod("a", 0, guaranteed("2", "1Gi"), func(pod *corev1.Pod) {
		first := pod.Spec.Containers[0]
		always := corev1.ContainerRestartPolicyAlways
		sidecar := *first.DeepCopy()
		sidecar.RestartPolicy = &always
		pod.Spec.InitContainers = []corev1.Container{first, first, sidecar}
	})
	if c := newCandidate(nodeWith(t, configuration()), &pod); alone(c.containers) != 4 {
		t.Errorf("%d CPUs, want those of the container and its sidecar", alone(c.containers))
	}
}

func TestStateFileOfAnyKubelet(t *testing.T) {
	want := &CPUState{Policy: "static", Shared: []int{0, 2, 3}, Entries: map[string]map[string][]int{"uid": {"main": {1}}}}
	old := `{"policyName":"static","defaultCpuSet":"0,2-3","entries":{"uid":{"main":"1"}},"checksum":1}`
	for name, text := range map[string]string{
		"up to 1.36": old,
		"1.37":       `{"policyName":"static","defaultCpuSet":"","checksum":1,"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0,2-3\",\"entries\":{\"uid\":{\"main\":\"1\"}}}"}`,
	} {
		if got, err := DecodeCPUState([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	const beside = `{"policyName":"none","defaultCpuSet":"9","entries":{"old":{"main":"8"}},"data":"{\"policyName\":\"static\"}"}` // of which the data alone counts
	if got, err := DecodeCPUState([]byte(beside)); err != nil || got.Policy != "static" || len(got.Shared)+len(got.Entries) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `{"defaultCpuSet":"x"}`, `{"entries":{"a":{"b":"2-1"}}}`, `{"data":"x"}`} {
		if got, err := DecodeCPUState([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
