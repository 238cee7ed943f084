package forecast

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Which of a pod's sysctls is named: the first that certainly is forbidden, else the first that may be.
func TestForbidden(t *testing.T) {
	now := &Configuration{AllowedUnsafeSysctl: []string{"net/core/*", "kernel.msg*"}}
	for name, row := range map[string]struct {
		then    []string
		sysctls []string
		want    string
		certain bool
	}{
		"none":                       {nil, nil, "", false},
		"all are safe":               {nil, []string{"kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"}, "", false},
		"one that was allowed":       {nil, []string{"net.core.somaxconn"}, "net.core.somaxconn", true},
		"one that nobody allowed":    {nil, []string{"net.ipv4.tcp_new"}, "net.ipv4.tcp_new", false},
		"one that is safe perhaps":   {nil, []string{"net.ipv4.tcp_rmem"}, "net.ipv4.tcp_rmem", false},
		"a certain one comes first":  {nil, []string{"net.ipv4.tcp_new", "kernel.msgmax"}, "kernel.msgmax", true},
		"the first of certain ones":  {nil, []string{"net.core.somaxconn", "kernel.msgmax"}, "net.core.somaxconn", true},
		"the first of doubtful ones": {nil, []string{"net.ipv4.tcp_new", "net.ipv4.tcp_rmem"}, "net.ipv4.tcp_new", false},
		"a doubtful one after it":    {nil, []string{"kernel.msgmax", "net.ipv4.tcp_new"}, "kernel.msgmax", true},
		"still allowed":              {[]string{"kernel/msgmax"}, []string{"kernel.msgmax"}, "", false},
		"allowed by its beginning":   {[]string{"kernel/*"}, []string{"kernel.msgmax", "net.core.somaxconn"}, "net.core.somaxconn", true},
	} {
		then := &Configuration{AllowedUnsafeSysctl: row.then}
		if got, certain := then.forbidden(row.sysctls, now); got != row.want || certain != row.certain {
			t.Errorf("%s: %q, %t, want %q, %t", name, got, certain, row.want, row.certain)
		}
	}
	for slashed, want := range map[string]string{"net/ipv4/conf/eth0.1/rp_filter": "net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter": "net.ipv4.conf.eth0/1.rp_filter", "vm": "vm", "": "", "/a.b": ".a/b", ".a/b": ".a/b"} {
		if got := dotted(slashed); got != want {
			t.Errorf("%s with dots is %s, want %s", slashed, got, want)
		}
	}
}

// The first CPUs of a machine are those of whole nodes, sockets and cores.
func TestFirstCPUs(t *testing.T) {
	machine := func(cpus ...CPU) Host { // in the order of their IDs
		for i := range cpus {
			cpus[i].ID = i
		}
		return Host{CPUs: cpus}
	}
	siblingsApart := machine(CPU{Core: 0}, CPU{Core: 1}, CPU{Core: 0}, CPU{Core: 1})
	interleaved := machine(CPU{Core: 0}, CPU{Core: 1, Socket: 1, Node: 1}, CPU{Core: 2}, CPU{Core: 3, Socket: 1, Node: 1})
	option := func(names ...string) map[string]string {
		all := map[string]string{}
		for _, name := range names {
			all[name] = "true"
		}
		return all
	}
	for name, row := range map[string]struct {
		host    Host
		count   int
		options map[string]string
		want    []int
		unknown bool
	}{
		"none":                           {siblingsApart, 0, nil, nil, false},
		"whole cores":                    {siblingsApart, 3, nil, []int{0, 1, 2}, false},
		"a core":                         {siblingsApart, 2, nil, []int{0, 2}, false},
		"spread over cores":              {siblingsApart, 2, option(spreadOverCores), []int{0, 1}, false},
		"by cache":                       {siblingsApart, 2, option(preferUncoreCache), nil, true},
		"more than there are":            {siblingsApart, 5, nil, nil, true},
		"all":                            {siblingsApart, 4, nil, []int{0, 1, 2, 3}, false},
		"a node":                         {interleaved, 2, nil, []int{0, 2}, false},
		"spread over nodes":              {interleaved, 2, option(spreadOverNodes), nil, true},
		"spread over cores of two nodes": {interleaved, 2, option(spreadOverCores), nil, true},
		"a node of two sockets":          {machine(CPU{Core: 0}, CPU{Core: 1, Socket: 1, Node: 1}, CPU{Core: 2, Socket: 2}, CPU{Core: 3, Socket: 3, Node: 1}), 2, nil, []int{0, 2}, false},
		"a node of two sockets, the second first": {machine(CPU{Core: 0, Socket: 2}, CPU{Core: 1, Socket: 1, Node: 1}, CPU{Core: 2}, CPU{Core: 3, Socket: 3, Node: 1}), 1, nil, []int{2}, false},
		"a socket of two nodes":                   {machine(CPU{Core: 0}, CPU{Core: 1, Socket: 1, Node: 1}, CPU{Core: 2, Node: 2}, CPU{Core: 3, Socket: 1, Node: 3}), 2, nil, []int{0, 2}, false},
		"a node that is a socket of its own":      {machine(CPU{Core: 0, Socket: 1}, CPU{Core: 1, Node: 1}), 1, nil, []int{0}, false},
		"cores that differ":                       {machine(CPU{Core: 0}, CPU{Core: 0}, CPU{Core: 2}), 1, nil, nil, true},
		"sockets that differ":                     {machine(CPU{Core: 0}, CPU{Core: 1}, CPU{Core: 2, Socket: 1}), 1, nil, nil, true},
		"nodes that differ":                       {machine(CPU{Core: 0}, CPU{Core: 1}, CPU{Core: 2, Node: 1}), 1, nil, nil, true},
	} {
		if got, known := row.host.first(row.count, row.options); !slices.Equal(got, row.want) || known == row.unknown {
			t.Errorf("%s: %v, %t, want %v", name, got, known, row.want)
		}
	}
}

func TestListsOfCPUs(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "0": {0}, " 1 , 3-4 ": {1, 3, 4}, "5,1-2,2": {1, 2, 5}, "1, ,2": {1, 2}, "65535": {65535}, "2 - 3": {2, 3}} {
		if got, err := parseCPUs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "1-x", "x-1", "-1", "-1-2", "2-1", "65536", "1-65536"} {
		if got, err := parseCPUs(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// A forecast is sure where nothing that the change does is in doubt; what any restart does is not the change's.
func TestSureAndInDoubt(t *testing.T) {
	certain, perhaps := Loss{Name: "c", Certain: true}, Loss{Name: "p"}
	again := Loss{Name: "d", DaemonSet: true, Restarted: true}
	static := Loss{Name: "s", Static: true, DaemonSet: true, Restarted: true}
	for name, row := range map[string]struct {
		Forecast
		sure  bool
		doubt string
	}{
		"nothing":                  {Forecast{}, true, ""},
		"certain losses":           {Forecast{Losses: []Loss{certain}, Static: []Loss{certain}, Anyway: []Loss{certain}}, true, ""},
		"a loss":                   {Forecast{Losses: []Loss{certain, perhaps}}, false, "p:?"},
		"a static pod":             {Forecast{Static: []Loss{perhaps}}, false, "p:?"},
		"any restart":              {Forecast{Anyway: []Loss{perhaps}}, true, "p:?"},
		"a doubt":                  {Forecast{Doubts: []Unknown{{"a", "b"}}}, false, ""},
		"nothing is known":         {Forecast{Missing: []Unknown{{"a", "b"}}}, false, ""},
		"not measured":             {Forecast{Unmeasured: []Loss{perhaps}}, true, "p:?"},
		"of a DaemonSet, anew":     {Forecast{Losses: []Loss{again}}, false, ""},
		"of a DaemonSet, static":   {Forecast{Static: []Loss{static}}, false, "s:?+"},
		"of a DaemonSet, not anew": {Forecast{Losses: []Loss{{Name: "e", DaemonSet: true}}}, false, "e:?"},
	} {
		if got := lines(row.InDoubt()); row.Sure() != row.sure || got != row.doubt {
			t.Errorf("%s: sure %t, in doubt %q, want %t, %q", name, row.Sure(), got, row.sure, row.doubt)
		}
	}
}

// All losses that are named hold a change where more go than are certain by name; static ones only where they are certain.
func TestLostByNumber(t *testing.T) {
	one, other := Loss{Name: "a"}, Loss{Name: "b"}
	certain, static := Loss{Name: "c", Certain: true}, Loss{Name: "s", Static: true}
	for name, row := range map[string]struct {
		Forecast
		want string
	}{
		"by name":                           {Forecast{Losses: []Loss{certain, one}, LeastOfAll: 1}, "c:"},
		"by number":                         {Forecast{Losses: []Loss{certain, one}, LeastOfAll: 2}, "c: a:?"},
		"by name, any restart":              {Forecast{Losses: []Loss{certain, one}, Anyway: []Loss{{Name: "x", Certain: true}}, LeastOfAll: 2}, "c: x:"},
		"by number, a static pod perhaps":   {Forecast{Losses: []Loss{one, other}, Static: []Loss{static}, LeastOfAll: 1}, "a:? b:?"},
		"by number, a static pod certainly": {Forecast{Losses: []Loss{one}, Static: []Loss{{Name: "s", Static: true, Certain: true}}, LeastOfAll: 1}, "a:? s:"},
	} {
		if got := lines(row.Lost()); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// A loss says whose pod it is.
func TestLossOfAPod(t *testing.T) {
	for kind, want := range map[string]bool{"DaemonSet": true, "ReplicaSet": false} {
		f := Facts{Now: configuration(), Then: configuration(maxPods(0)), Node: nodeWith(t, configuration()), Host: machine(), Pods: []corev1.Pod{aPod("a", 0, controlledBy(kind))}}
		got := Of(f).Losses
		if len(got) != 1 || got[0].Namespace != "default" || got[0].UID != "uid-a" || got[0].DaemonSet != want {
			t.Errorf("of a %s: %+v", kind, got)
		}
	}
}

// What the kubelet has granted counts while a pod is resized, and once it is admitted what it holds.
func TestResizedPods(t *testing.T) {
	status := func(allocated, inForce string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			s := corev1.ContainerStatus{Name: "main"}
			if allocated != "" {
				s.AllocatedResources = quantities([]string{"cpu", allocated})
			}
			if inForce != "" {
				s.Resources = &corev1.ResourceRequirements{Requests: quantities([]string{"cpu", inForce})}
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "gone", AllocatedResources: quantities([]string{"cpu", "9"})}, s}
		}
	}
	sidecar := func(allocated string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			pod.Spec.InitContainers = []corev1.Container{{Name: "first", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "1"})}}}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first", AllocatedResources: quantities([]string{"cpu", allocated})}}
		}
	}
	for name, row := range map[string]struct {
		changes     []func(*corev1.Pod)
		asks, holds int64
	}{
		"not resized":                      {[]func(*corev1.Pod){}, 2000, 2000},
		"nothing is told":                  {[]func(*corev1.Pod){status("", "")}, 2000, 2000},
		"granted as asked":                 {[]func(*corev1.Pod){status("2", "2")}, 2000, 2000},
		"granted as asked, in other words": {[]func(*corev1.Pod){status("2000m", "2000m")}, 2000, 2000},
		"less is granted":                  {[]func(*corev1.Pod){status("1", "1")}, 1000, 2000},
		"less is granted than in force":    {[]func(*corev1.Pod){status("1", "3")}, 1000, 3000},
		"granted, and more is in force":    {[]func(*corev1.Pod){status("2", "3")}, 2000, 3000},
		"more is in force, none granted":   {[]func(*corev1.Pod){status("", "3")}, 2000, 3000},
		"of a sidecar":                     {[]func(*corev1.Pod){sidecar("3")}, 5000, 5000},
		"of a sidecar, as asked":           {[]func(*corev1.Pod){sidecar("1")}, 3000, 3000},
	} {
		pod := aPod("a", 0, append([]func(*corev1.Pod){asks("cpu", "2")}, row.changes...)...)
		before := pod.DeepCopy()
		c := newCandidate(nodeWith(t, configuration()), &pod)
		if c.asks.milliCPU != row.asks || c.holds.milliCPU != row.holds {
			t.Errorf("%s: it asks for %d and holds %d, want %d and %d", name, c.asks.milliCPU, c.holds.milliCPU, row.asks, row.holds)
		}
		if !equal(before.Spec.Containers[0].Resources.Requests, pod.Spec.Containers[0].Resources.Requests) {
			t.Errorf("%s: the pod itself was changed", name)
		}
	}
}

// Of exclusive resources a pod of class Guaranteed gets what its containers ask for, whole CPUs and any memory.
func TestExclusive(t *testing.T) {
	always, once := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	pod := aPod("a", 0, guaranteed("2", "1Gi"), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests["hugepages-2Mi"] = quantities([]string{"hugepages-2Mi", "4Mi"})["hugepages-2Mi"]
		part := corev1.Container{Name: "part", Resources: corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "1500m", "memory", "1", "example.com/gpu", "1"})}}
		for _, policy := range []*corev1.ContainerRestartPolicy{nil, &once, &always} {
			first := *part.DeepCopy()
			first.RestartPolicy = policy
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, first)
		}
	})
	c := newCandidate(nodeWith(t, configuration()), &pod)
	var ends []bool
	for _, of := range c.containers {
		ends = append(ends, of.ends)
	}
	last := c.containers[len(c.containers)-1]
	if !slices.Equal(ends, []bool{true, true, false, false}) || c.containers[0].cpus != 0 || len(c.containers[0].memory) != 1 || last.cpus != 2 || last.memory["memory"] != 1<<30 || last.memory["hugepages-2Mi"] != 4<<20 {
		t.Errorf("%+v", c.containers)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "9"})}
	if c := newCandidate(nodeWith(t, configuration()), &pod); len(c.containers) > 0 {
		t.Errorf("with resources of the whole pod: %+v", c.containers)
	}
}

// Devices are those of the node; other extended resources are the cluster's.
func TestDevicesOfTheNode(t *testing.T) {
	node := nodeWith(t, configuration())
	node.Status.Allocatable["example.com/gpu"] = quantities([]string{"gpu", "1"})["gpu"]
	for range 20 { // in any order
		pod := aPod("a", 0, asks("example.com/gpu", "1", "example.com/license", "1", "example.com/seat", "1"))
		if c := newCandidate(node, &pod); !c.devices || len(c.asks.scalars) > 0 {
			t.Fatalf("%+v", c)
		}
	}
	pod := aPod("a", 0, asks("example.com/license", "1"))
	if c := newCandidate(node, &pod); c.devices {
		t.Errorf("%+v", c)
	}
}

// A machine of one CPU has one, whatever the Node shows.
func TestOneCPU(t *testing.T) {
	if got := capacityOf(nodeWith(t, configuration()), Host{CPUs: cpus(1, 1, 1)}); got.milliCPU != 1000 {
		t.Errorf("%+v", got)
	}
}

func TestDecodeConfiguration(t *testing.T) {
	if c, err := DecodeConfiguration([]byte(`{"maxPods":7,"other":1}`)); err != nil || *c.MaxPods != 7 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"", "[]", `{"maxPods":"7"}`} {
		if c, err := DecodeConfiguration([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, c)
		}
	}
}
