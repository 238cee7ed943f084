package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	gi = int64(1) << 30
	mi = int64(1) << 20

	ordersTried = 3
)

// A maker makes cases by chance. The same seed gives the same case.
type maker struct {
	*rand.Rand
	gates []map[string]bool // that a kubelet of this version knows
	theme
}

// A theme makes cases tight in one way: what is rare by chance alone is not.
type theme int

const (
	anything theme = iota
	ofRoom
	ofCPUs
	ofNodes // of memory
	ofPreemption
	ofDrift // of the machine
	themes
)

// Make gives the case of a seed.
func Make(seed uint64, kubeletVersion string) Case {
	m := maker{Rand: rand.New(rand.NewPCG(seed, 0)), gates: []map[string]bool{{}}}
	if kubeletVersion >= "v1.36" {
		m.gates = append(m.gates, map[string]bool{restartAll: false}, map[string]bool{restartAll: true}, map[string]bool{podLevel: false, podLevelResize: false})
	}
	m.theme = theme(m.IntN(int(themes)))
	c := Case{Machine: m.machine(), Stale: m.one(2)}
	c.Later = c.Machine
	if m.theme == ofDrift || m.one(8) {
		c.Later = m.changed(c.Machine)
	}
	now := m.configuration(c.Machine)
	then := maps.Clone(now)
	m.change(then, c.Machine)
	c.Now, c.Then = document(now), document(then)
	c.Node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd"}}}
	c.Node.Status.NodeInfo.KubeletVersion = kubeletVersion
	if m.one(12) {
		c.Node.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
	}
	for i := range 3 + m.IntN(14) {
		c.Pods = append(c.Pods, m.pod(i, c.Machine))
		if m.one(6) {
			c.Deleted = append(c.Deleted, c.Pods[i].Name)
		}
	}
	for range ordersTried {
		var order []string
		for _, i := range m.Perm(len(c.Pods)) {
			order = append(order, c.Pods[i].Name)
		}
		c.Orders = append(c.Orders, order)
	}
	if m.one(40) && then["memoryManagerPolicy"] != "Static" { // a threshold of memory that is certainly met is rare by chance
		then["evictionHard"] = map[string]string{"memory.available": fmt.Sprint(80+m.IntN(20), "%")}
		c.Then = document(then)
	}
	return c
}

func (m maker) one(of int) bool { return m.IntN(of) == 0 }

func pick[T any](m maker, list ...T) T { return list[m.IntN(len(list))] }

func document(fields map[string]any) json.RawMessage {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it is ours
	}
	return text
}

func (m maker) machine() Machine {
	threads, nodes := pick(m, 1, 1, 2), pick(m, 1, 1, 1, 2)
	if m.theme == ofNodes {
		nodes = 2
	}
	cores := nodes * (1 + m.IntN(4))
	if cores*threads < 2 {
		cores = 2
	}
	beside, sockets := m.one(2), pick(m, nodes, nodes, nodes, 1, 2)
	if cores%sockets != 0 || sockets > nodes && cores/nodes%(sockets/nodes) != 0 {
		sockets = nodes
	}
	var machine Machine
	for core := range cores {
		for thread := range threads {
			id, first := core+thread*cores, core
			if beside {
				id, first = core*threads+thread, core*threads
			}
			machine.CPUs = append(machine.CPUs, CPU{ID: id, Core: first, Socket: core * sockets / cores, Node: core * nodes / cores, Cache: core / 2})
		}
	}
	for id := range nodes {
		node := Node{ID: id, Memory: int64(2+m.IntN(7)) * gi, HugePages: map[string]int64{"hugepages-2Mi": 0}}
		if m.one(4) {
			node.HugePages["hugepages-2Mi"] = int64(m.IntN(8)) * 64 * mi
		}
		if m.one(8) {
			node.HugePages["hugepages-1Gi"] = int64(m.IntN(2)) * gi
		}
		machine.Nodes = append(machine.Nodes, node)
	}
	for i := range machine.Nodes { // each size is there on all nodes
		for name := range machine.Nodes[(i+1)%nodes].HugePages {
			machine.Nodes[i].HugePages[name] += 0
		}
	}
	machine.Storage = int64(20+m.IntN(100)) * gi
	return m.used(machine)
}

// used tells how much of the machine is free.
func (m maker) used(machine Machine) Machine {
	var memory int64
	for _, n := range machine.Nodes {
		memory += n.Memory
	}
	machine.Capacity = Free{Memory: memory, NodeFS: machine.Storage, NodeInodes: 1e6, ImageFS: machine.Storage, ImageInodes: 1e6, PIDs: 32768}
	share := func(of int64) int64 { return of / 100 * int64(40+m.IntN(60)) }
	a := machine.Capacity
	machine.Free = Free{Memory: share(a.Memory), NodeFS: share(a.NodeFS), NodeInodes: share(a.NodeInodes), ImageFS: share(a.ImageFS), ImageInodes: share(a.ImageInodes),
		PIDs: share(a.PIDs), PodsMemory: int64(m.IntN(200)) * mi}
	return machine
}

// changed is the same machine after something happened to it.
func (m maker) changed(machine Machine) Machine {
	machine.CPUs, machine.Nodes = slices.Clone(machine.CPUs), slices.Clone(machine.Nodes)
	for i := range machine.Nodes {
		machine.Nodes[i].HugePages = maps.Clone(machine.Nodes[i].HugePages)
	}
	switch node := &machine.Nodes[m.IntN(len(machine.Nodes))]; m.IntN(4) {
	case 0:
		node.HugePages["hugepages-2Mi"] = int64(m.IntN(20)) * 64 * mi
	case 1:
		node.Memory = max(node.Memory+int64(m.IntN(5)-3)*gi, gi)
	case 2:
		if len(machine.CPUs) > 2 {
			last := machine.CPUs[len(machine.CPUs)-1]
			if last.Core != last.ID { // a thread
				machine.CPUs = machine.CPUs[:len(machine.CPUs)-1]
			}
		}
	case 3:
		machine.Storage -= int64(m.IntN(20)) * gi
	}
	return m.used(machine)
}

// configuration is one that a kubelet may run with.
func (m maker) configuration(machine Machine) map[string]any {
	c := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": false, "maxPods": 6 + m.IntN(20)}
	for range m.IntN(4) {
		m.change(c, machine)
	}
	if m.theme == ofCPUs || m.theme == ofNodes && m.one(2) {
		m.cpuManager(c, machine)
		m.settle(c, machine)
	}
	if m.theme != anything || m.one(2) { // else few pods come to the node
		c["maxPods"], c["podsPerCore"] = 30, 0
	}
	return c
}

// change sets some fields anew.
func (m maker) change(c map[string]any, machine Machine) {
	for range 1 + m.IntN(4) {
		list := m.changes()
		if tight := m.tight(); len(tight) > 0 && !m.one(4) {
			list = tight
		}
		list[m.IntN(len(list))](c, machine)
	}
	m.settle(c, machine)
}

// tight are the changes of the theme.
func (m maker) tight() []func(map[string]any, Machine) {
	reserve := func(c map[string]any, _ Machine) { c["systemReserved"] = m.reserved() }
	few := func(c map[string]any, _ Machine) { c["maxPods"] = 1 + m.IntN(6) }
	switch m.theme {
	case ofRoom:
		return []func(map[string]any, Machine){reserve, few, func(c map[string]any, _ Machine) { c["podsPerCore"] = 1 + m.IntN(3) }}
	case ofCPUs:
		return []func(map[string]any, Machine){m.cpuManager, m.reservedCPUs, reserve}
	case ofNodes:
		return []func(map[string]any, Machine){m.topologyManager, m.topologyManager, m.cpuManager, m.memoryManager, m.reservedCPUs, reserve}
	case ofPreemption:
		return []func(map[string]any, Machine){few, few, reserve}
	}
	return nil
}

func (m maker) topologyManager(c map[string]any, _ Machine) {
	c["topologyManagerPolicy"] = pick(m, "none", "best-effort", "restricted", "single-numa-node")
	c["topologyManagerScope"] = pick(m, "container", "pod")
}

func (m maker) memoryManager(c map[string]any, _ Machine) {
	c["memoryManagerPolicy"] = pick(m, "None", "Static", "Static")
}

func (m maker) changes() []func(map[string]any, Machine) {
	return []func(map[string]any, Machine){
		func(c map[string]any, _ Machine) { c["maxPods"] = 1 + m.IntN(10) },
		func(c map[string]any, _ Machine) { c["podsPerCore"] = m.IntN(5) },
		func(c map[string]any, _ Machine) { c["kubeReserved"] = m.reserved() },
		func(c map[string]any, _ Machine) { c["systemReserved"] = m.reserved() },
		func(c map[string]any, _ Machine) { c["evictionHard"] = m.thresholds() },
		func(c map[string]any, _ Machine) {
			c["evictionSoft"], c["evictionSoftGracePeriod"] = map[string]string{}, map[string]string{}
			for signal, text := range m.thresholds() {
				c["evictionSoft"].(map[string]string)[signal], c["evictionSoftGracePeriod"].(map[string]string)[signal] = text, "1h"
			}
		},
		m.cpuManager, m.cpuManager, m.cpuManager,
		m.reservedCPUs, m.reservedCPUs,
		m.memoryManager, m.topologyManager,
		func(c map[string]any, _ Machine) {
			c["allowedUnsafeSysctls"] = pick(m, []string{}, []string{"net.core.somaxconn"}, []string{"kernel.msg*"}, []string{"net.*", "kernel.*"})
		},
		func(c map[string]any, _ Machine) {
			c["featureGates"] = pick(m, m.gates...)
		},
	}
}

const (
	restartAll = "RestartAllContainersOnContainerExits"
	podLevel   = "PodLevelResources"

	podLevelResize = "InPlacePodLevelResourcesVerticalScaling" // needs podLevel
)

func (m maker) reserved() map[string]string {
	r := map[string]string{"cpu": pick(m, "100m", "500m", "1", "1100m", "2", "3")}
	if m.one(2) {
		r["memory"] = fmt.Sprint(m.IntN(3000), "Mi")
	}
	if m.one(4) {
		r["ephemeral-storage"] = fmt.Sprint(m.IntN(20), "Gi")
	}
	return r
}

func (m maker) thresholds() map[string]string {
	t := map[string]string{}
	for _, signal := range []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"} {
		if !m.one(5) {
			continue
		}
		t[signal] = fmt.Sprint(m.IntN(70), "%")
		if signal == "memory.available" && m.one(2) {
			t[signal] = fmt.Sprint(1+m.IntN(1500), "Mi")
		}
	}
	return t
}

func (m maker) cpuManager(c map[string]any, _ Machine) {
	c["cpuManagerPolicy"] = pick(m, "none", "static", "static", "static")
	options := map[string]string{}
	for _, name := range []string{"full-pcpus-only", "full-pcpus-only", "strict-cpu-reservation", "distribute-cpus-across-numa", "distribute-cpus-across-cores",
		"align-by-socket", "prefer-align-cpus-by-uncorecache"} {
		if m.one(4) {
			options[name] = pick(m, "true", "true", "false")
		}
	}
	for _, pair := range [][2]string{{"full-pcpus-only", "distribute-cpus-across-cores"}, {"distribute-cpus-across-numa", "distribute-cpus-across-cores"},
		{"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"}, {"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"}} {
		if options[pair[0]] == "true" && options[pair[1]] == "true" { // no kubelet starts with both
			delete(options, pair[m.IntN(2)])
		}
	}
	c["cpuManagerPolicyOptions"] = options
}

func (m maker) reservedCPUs(c map[string]any, machine Machine) {
	delete(c, "reservedSystemCPUs")
	if m.one(3) {
		return
	}
	var list []string
	for _, i := range m.Perm(len(machine.CPUs))[:1+m.IntN(min(3, len(machine.CPUs)-1))] {
		list = append(list, fmt.Sprint(machine.CPUs[i].ID))
	}
	c["reservedSystemCPUs"] = strings.Join(list, ",")
}

// settle makes fields fit each other, because else no kubelet starts.
func (m maker) settle(c map[string]any, machine Machine) {
	options, _ := c["cpuManagerPolicyOptions"].(map[string]string)
	if c["cpuManagerPolicy"] != "static" {
		delete(c, "cpuManagerPolicyOptions")
	} else if kube, _ := c["kubeReserved"].(map[string]string); kube == nil {
		c["kubeReserved"] = map[string]string{"cpu": "500m"}
	}
	if options["align-by-socket"] == "true" && c["topologyManagerPolicy"] == "single-numa-node" {
		delete(options, "align-by-socket")
	}
	gates, _ := c["featureGates"].(map[string]bool)
	gates = maps.Clone(gates)
	delete(gates, "CPUManagerPolicyAlphaOptions")
	if options["align-by-socket"] != "" || options["distribute-cpus-across-cores"] != "" {
		if gates == nil {
			gates = map[string]bool{}
		}
		gates["CPUManagerPolicyAlphaOptions"] = true
	}
	c["featureGates"] = gates
	delete(c, "reservedMemory")
	if c["memoryManagerPolicy"] == "Static" {
		m.reserveMemory(c, machine)
	}
}

// reserveMemory keeps on the nodes what is reserved of the machine.
func (m maker) reserveMemory(c map[string]any, machine Machine) {
	var all int64
	for _, field := range []string{"kubeReserved", "systemReserved"} {
		list, _ := c[field].(map[string]string)
		if text := list["memory"]; text != "" {
			quantity := resource.MustParse(text)
			all += quantity.Value()
		}
	}
	hard := map[string]string{"memory.available": "100Mi"}
	if own, is := c["evictionHard"].(map[string]string); is {
		hard = maps.Clone(own)
		if strings.HasSuffix(hard["memory.available"], "%") {
			hard["memory.available"] = "200Mi"
		}
	}
	c["evictionHard"] = hard
	if text := hard["memory.available"]; text != "" {
		quantity := resource.MustParse(text)
		all += quantity.Value()
	}
	if all == 0 {
		c["memoryManagerPolicy"] = "None"
		return
	}
	var list []map[string]any
	for i, node := range machine.Nodes {
		share := all / int64(len(machine.Nodes))
		if i == 0 {
			share = all - share*int64(len(machine.Nodes)-1)
		}
		if share > 0 {
			list = append(list, map[string]any{"numaNode": node.ID, "limits": map[string]string{"memory": fmt.Sprint(share)}})
		}
	}
	c["reservedMemory"] = list
}

// pod is one that runs, most of the time.
func (m maker) pod(i int, machine Machine) corev1.Pod {
	name := fmt.Sprintf("p%d", i)
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1e9+int64(m.IntN(pick(m, 2, 6, 20))), 0)),
			Annotations: map[string]string{"kubernetes.io/config.source": "api"}},
		Spec:   corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: pick(m, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending)},
	}
	if m.one(12) {
		gone := metav1.Now()
		pod.DeletionTimestamp = &gone
	}
	if m.one(7) {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file", corev1.MirrorPodAnnotationKey: "hash-" + name}
	}
	pod.Status.QOSClass = pick(m, corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed, corev1.PodQOSGuaranteed)
	switch {
	case m.one(3):
	case m.theme == ofCPUs || m.theme == ofNodes:
		pod.Status.QOSClass = corev1.PodQOSGuaranteed
	case m.theme == ofPreemption:
		pod.Status.QOSClass = pick(m, corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
	}
	m.containers(&pod, machine)
	trait := m.IntN(14)
	if m.theme == ofPreemption && m.one(4) {
		trait = 0
	}
	switch trait {
	case 0, 1:
		highest := int32(2000000000)
		pod.Spec.Priority = &highest
	case 2:
		some := int32(1000)
		pod.Spec.Priority = &some
	case 3:
		pod.Spec.NodeSelector = map[string]string{"disk": pick(m, "ssd", "ssd", "hdd")}
	case 4:
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: pick(m, "net.core.somaxconn", "kernel.msgmax", "kernel.shm_rmid_forced"), Value: "1"}}}
	case 5:
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case 6:
		pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	return pod
}

func (m maker) containers(pod *corev1.Pod, machine Machine) {
	always := corev1.ContainerRestartPolicyAlways
	if m.one(4) {
		for i := range 1 + m.IntN(2) {
			first := m.container(fmt.Sprintf("first%d", i), pod.Status.QOSClass, machine)
			if m.one(3) {
				first.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, first)
		}
	}
	for i := range pick(m, 1, 1, 1, 2) {
		pod.Spec.Containers = append(pod.Spec.Containers, m.container(fmt.Sprintf("main%d", i), pod.Status.QOSClass, machine))
	}
}

func (m maker) container(name string, class corev1.PodQOSClass, machine Machine) corev1.Container {
	c := corev1.Container{Name: name}
	if class == corev1.PodQOSBestEffort {
		return c
	}
	memory := pick(m, 20, 100, 300, 700) + m.IntN(900)
	if m.theme == ofCPUs || m.theme == ofPreemption { // CPUs, and the number of pods, are what runs out
		memory = pick(m, 50, 50, 100)
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(m, "1", "1", "1", "2", "2", "3", "4", "50m", "100m", "100m", "500m")),
		corev1.ResourceMemory: *resource.NewQuantity(int64(memory)*mi, resource.BinarySI)}
	if m.one(8) {
		requests["hugepages-2Mi"] = *resource.NewQuantity(int64(1+m.IntN(3))*64*mi, resource.BinarySI)
	}
	if m.one(8) {
		requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(1+m.IntN(30))*gi, resource.BinarySI)
	}
	if class == corev1.PodQOSBurstable && m.one(2) {
		delete(requests, pick(m, corev1.ResourceCPU, corev1.ResourceMemory))
	}
	c.Resources.Requests = requests
	if class == corev1.PodQOSGuaranteed {
		c.Resources.Limits = requests.DeepCopy()
	}
	return c
}
