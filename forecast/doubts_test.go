package forecast

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatIsMissing(t *testing.T) {
	whole := Facts{Now: configuration(), Then: configuration(), Pods: sevenPods(), Host: machine()}
	whole.Node = nodeWith(t, whole.Now)
	for want, change := range map[string]func(*Facts){
		"the configuration that runs":      func(f *Facts) { f.Now = nil },
		"the configuration that is to run": func(f *Facts) { f.Then = &Configuration{} },
		"the Node":                         func(f *Facts) { f.Node = nil },
		"the node's pods":                  func(f *Facts) { f.Pods = nil },
	} {
		f := whole
		change(&f)
		if got := Of(f); whats(got.Missing) != want || got.Known() || len(got.Losses) > 0 {
			t.Errorf("%s: %+v", want, got)
		}
	}
	for want, change := range map[string]func(*Configuration){
		"memory is no quantity":  systemReserved("memory", "much"),
		"no quantity from 0 on":  systemReserved("memory", "-1Gi"),
		"no share from 0%":       soft("nodefs.available", "x%"),
		"is no list of CPUs":     func(c *Configuration) { c.ReservedSystemCPUs = "1-0" },
		"is no quantity above 0": hard("memory.available", "-1"),
	} {
		f := whole
		f.Then = configuration(change)
		got := Of(f)
		if whats(got.Missing) != "the configuration that is to run" || !strings.Contains(got.Missing[0].Why, want) {
			t.Errorf("%s: %+v", want, got)
		}
	}
	f := whole
	f.Pods = []corev1.Pod{}
	f.Then = configuration(maxPods(0), func(c *Configuration) { c.FeatureGates = map[string]bool{"X": true} })
	if got := Of(f); !got.Sure() || got.Running != 0 {
		t.Errorf("no pods: %+v", got)
	}
}

func TestDoubts(t *testing.T) {
	gate := func(value bool) func(*Configuration) {
		return func(c *Configuration) { c.FeatureGates = map[string]bool{"X": value} }
	}
	hostUsers, hosts := false, true
	ids, usual := int64(131072), int64(65536)
	enforce := func(list ...string) func(*Configuration) {
		return func(c *Configuration) { c.EnforceNodeAllocatable = list }
	}
	perQOS := func(on bool) func(*Configuration) { return func(c *Configuration) { c.CgroupsPerQOS = &on } }
	pod := []corev1.Pod{aPod("a", 0, asks("memory", "1Mi"))}
	reserves := func(name string, list ...string) func(*Configuration) {
		return func(c *Configuration) {
			c.SystemReserved, c.SystemReservedCgroup, c.EnforceNodeAllocatable = map[string]string{}, "/system.slice", []string{"pods", name}
			for i := 0; i < len(list); i += 2 {
				c.SystemReserved[list[i]] = list[i+1]
			}
		}
	}
	busy := func(h *Host) { h.Cgroups = map[string]CgroupUse{"/system.slice": {Memory: 30 << 20, PIDs: 20}} }
	checkAll(t, []row{
		{name: "a limit below what is in use", then: changes(reserves("system-reserved", "memory", "27Mi", "pid", "5")), host: busy, overfull: "systemReserved.memory, systemReserved.pid"},
		{name: "a limit above it", then: changes(reserves("system-reserved", "memory", "100Mi", "pid", "100", "cpu", "1")), host: busy},
		{name: "a limit that is not enforced", then: changes(reserves("none", "memory", "27Mi")), host: busy},
		{name: "a limit of what is not measured", then: changes(reserves("system-reserved", "memory", "27Mi")), unknown: "cgroup /system.slice"},
		{name: "a limit that is there already", now: changes(reserves("system-reserved", "memory", "27Mi", "pid", "5")), then: changes(reserves("system-reserved", "memory", "28Mi", "pid", "5")), host: busy},
		{name: "a limit that is lower than the one before", now: changes(reserves("system-reserved", "memory", "29Mi")), then: changes(reserves("system-reserved", "memory", "28Mi")), host: busy, overfull: "systemReserved.memory"},
		{name: "CPU alone", then: changes(reserves("system-reserved-compressible", "memory", "27Mi", "cpu", "1"))},
		{name: "a limit, and no pods", then: changes(reserves("system-reserved", "memory", "27Mi")), pods: []corev1.Pod{}, host: busy, overfull: "systemReserved.memory"},
		{name: "a gate", then: changes(gate(true)), unknown: "featureGates.X"},
		{name: "a gate that goes", now: changes(gate(false)), then: changes(func(c *Configuration) { c.FeatureGates = nil }), unknown: "featureGates.X"},
		{name: "limits of the classes", then: changes(func(c *Configuration) { c.QOSReserved = map[string]string{"memory": "50%"} }), unknown: "qosReserved"},
		{name: "local storage", then: changes(func(c *Configuration) { no := false; c.LocalStorageCapacityIsolation = &no }), unknown: "localStorageCapacityIsolation"},
		{name: "IDs of users", then: changes(func(c *Configuration) { c.UserNamespaces = &UserNamespaces{&ids} }), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Spec.HostUsers = &hostUsers })}, unknown: "userNamespaces.idsPerPod"},
		{name: "IDs of users as they are by default", then: changes(func(c *Configuration) { c.UserNamespaces = &UserNamespaces{} }), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Spec.HostUsers = &hostUsers })}},
		{name: "IDs of users as they are by default, by number", then: changes(func(c *Configuration) { c.UserNamespaces = &UserNamespaces{&usual} }), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Spec.HostUsers = &hostUsers })}},
		{name: "IDs of users, and pods that are the host's", then: changes(func(c *Configuration) { c.UserNamespaces = &UserNamespaces{&ids} }), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Spec.HostUsers = &hosts })}},
		{name: "IDs of users that do not change", pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Spec.HostUsers = &hostUsers })}},
		{name: "a limit of the other cgroup", then: changes(func(c *Configuration) {
			c.KubeReserved, c.KubeReservedCgroup, c.EnforceNodeAllocatable = map[string]string{"memory": "27Mi"}, "/system.slice", []string{"pods", "kube-reserved"}
		}), host: busy, overfull: "kubeReserved.memory"},
		{name: "a limit that is just what is in use", then: changes(reserves("system-reserved", "memory", "30Mi", "pid", "20")), host: busy},
		{name: "a limit of no memory is none", then: changes(reserves("system-reserved", "memory", "0")), host: busy},
		{name: "a limit of no process is one", then: changes(reserves("system-reserved", "pid", "0")), host: busy, overfull: "systemReserved.pid"},
		{name: "a limit of one", then: changes(reserves("system-reserved", "memory", "1", "pid", "1")), host: busy, overfull: "systemReserved.memory, systemReserved.pid"},
		{name: "a limit without a cgroup", then: changes(reserves("system-reserved", "memory", "27Mi"), func(c *Configuration) { c.SystemReservedCgroup = "" }), host: func(h *Host) { h.Cgroups = map[string]CgroupUse{"": {Memory: 30 << 20}} }},
		{name: "all pods' memory is limited anew", now: changes(enforce()), then: changes(enforce("pods")), host: func(h *Host) { h.PodsMemory = nil }, unknown: "the memory limit of all pods"},
		{name: "all pods' memory is limited, as they get cgroups", now: changes(perQOS(false)), then: changes(perQOS(true)), pods: pod, host: func(h *Host) { h.PodsMemory = nil }, losses: "a:CgroupsPerQOS+", unknown: "the memory limit of all pods"},
		{name: "all pods' memory is not limited", now: changes(enforce()), then: changes(enforce(), systemReserved("memory", "6Gi")), pods: pod, host: func(h *Host) { h.PodsMemory = nil }},
		{name: "all pods' memory is not limited, without cgroups", now: changes(perQOS(false)), then: changes(systemReserved("memory", "6Gi")), pods: pod, host: func(h *Host) { h.PodsMemory = nil }},
		{name: "all pods' memory is limited less", now: changes(systemReserved("memory", "6Gi")), then: changes(systemReserved("memory", "1Gi")), pods: pod, host: func(h *Host) { h.PodsMemory = nil }},
		{name: "all pods use just what they may", then: changes(systemReserved("memory", "2Gi"), hard("nodefs.available", "1%")), pods: pod, host: func(h *Host) { use := 6 * gi; h.PodsMemory = &use }},
		{name: "all pods use more than they may", then: changes(systemReserved("memory", "2Gi"), hard("nodefs.available", "1%")), pods: pod, host: func(h *Host) { use := 6*gi + 1; h.PodsMemory = &use }, unknown: "the memory limit of all pods"},
		{name: "what pods use is not known, and their threshold is new", then: changes(hard("memory.available", "200Mi")), pods: pod, host: func(h *Host) { h.PodsMemory = nil }},
		{name: "IDs of users that nobody has", then: changes(func(c *Configuration) { c.UserNamespaces = &UserNamespaces{&ids} })},
	})
}

// A threshold that cannot be measured may evict every pod that is not critical.
func TestUnmeasured(t *testing.T) {
	now, then := configuration(), configuration(func(c *Configuration) { c.EvictionHard = map[string]string{"imagefs.available": "60%"} })
	host := machine()
	host.ImageFS = nil
	facts := Facts{Now: now, Then: then, Node: nodeWith(t, now), Host: host, SameRuntime: true,
		Pods: []corev1.Pod{aPod("a", 0), aPod("crit", 1, priority(systemCritical)), aPod("waits", 2, phase(corev1.PodPending))}}
	doubt := Of(facts).InDoubt()
	if len(doubt) != 1 || doubt[0].Name != "a" || doubt[0].Reason != "Evicted" || doubt[0].Certain {
		t.Errorf("in doubt are %+v", doubt)
	}
	facts.Now.EvictionHard = facts.Then.EvictionHard
	if doubt := Of(facts).InDoubt(); len(doubt) > 0 {
		t.Errorf("by a threshold that is as it was, in doubt are %+v", doubt)
	}
	facts.Then.EvictionHard = nil
	if doubt := Of(facts).InDoubt(); len(doubt) > 0 {
		t.Errorf("in doubt are %+v", doubt)
	}
}
