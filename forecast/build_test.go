package forecast

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gi = int64(1) << 30

// The node of most tests: 4 CPUs, 8 GiB, a disk of 100 GiB half of which is free, and the kubelet's defaults but for 20 pods.
func configuration(changes ...func(*Configuration)) *Configuration {
	pods := int32(20)
	c := &Configuration{MaxPods: &pods, CgroupDriver: "systemd", ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
		EvictionHard:           map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"},
		EnforceNodeAllocatable: []string{"pods"}, StaticPodPath: "/etc/kubernetes/manifests", CPUManagerPolicy: "none", MemoryManagerPolicy: "None", TopologyManagerPolicy: "none"}
	for _, change := range changes {
		change(c)
	}
	return c
}

func maxPods(pods int32) func(*Configuration) { return func(c *Configuration) { c.MaxPods = &pods } }

func machine() Host {
	disk := &Filesystem{Bytes: Amount{50 * gi, 100 * gi}, Inodes: Amount{5e6, 6e6}}
	pods := int64(200) << 20
	return Host{Memory: &Amount{4 * gi, 8 * gi}, NodeFS: disk, ImageFS: disk, PIDs: &Amount{30000, 32768}, PodsMemory: &pods,
		CgroupVersion: 2, CgroupDriver: "systemd", CPUs: cpus(4, 1, 1), NUMANodes: []NUMANode{{Memory: 8 * gi}}}
}

// cpus are those of a machine on which the first threads of all cores have the lowest numbers, as on most.
func cpus(count, threads, nodes int) (list []CPU) {
	cores := count / threads
	for id := range count {
		core := id % cores
		node := core * nodes / cores
		list = append(list, CPU{ID: id, Core: core, Socket: node, Node: node})
	}
	return list
}

// cpuCount makes the Node one of so many CPUs.
func cpuCount(count int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Capacity["cpu"] = *resource.NewQuantity(count, resource.DecimalSI)
		n.Status.Allocatable["cpu"] = *resource.NewQuantity(count-1, resource.DecimalSI)
	}
}

// built makes the machine another.
func built(count, threads, nodes int) func(*Host) {
	return func(h *Host) {
		h.CPUs, h.NUMANodes = cpus(count, threads, nodes), nil
		for id := range nodes {
			h.NUMANodes = append(h.NUMANodes, NUMANode{ID: id, Memory: 8 * gi / int64(nodes)})
		}
	}
}

// nodeWith is the Node as the kubelet with that configuration shows it.
func nodeWith(t testing.TB, c *Configuration) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd"}}}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "ephemeral-storage": resource.MustParse("100Gi"),
		"hugepages-2Mi": resource.MustParse("0"), "pods": *resource.NewQuantity(int64(*c.MaxPods), resource.DecimalSI)}
	r, err := roomOf(c, node, Host{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(r.milliCPU, resource.DecimalSI), "memory": *resource.NewQuantity(r.memory, resource.BinarySI),
		"ephemeral-storage": *resource.NewQuantity(r.storage, resource.BinarySI), "hugepages-2Mi": resource.MustParse("0"), "pods": *resource.NewQuantity(r.pods, resource.DecimalSI)}
	return node
}

// aPod runs, and was created so many seconds after the first.
func aPod(name string, second int, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1e9+int64(second), 0))},
		Spec:       corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func asks(list ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = quantities(list)
		pod.Status.QOSClass = corev1.PodQOSBurstable
	}
}

func guaranteed(cpu, memory string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		asks("cpu", cpu, "memory", memory)(pod)
		pod.Status.QOSClass = corev1.PodQOSGuaranteed
	}
}

func quantities(list []string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(list); i += 2 {
		all[corev1.ResourceName(list[i])] = resource.MustParse(list[i+1])
	}
	return all
}

func static(pod *corev1.Pod) {
	pod.Annotations = map[string]string{SourceAnnotation: "file", mirrorAnnotation: "0123"}
}

func ofOS(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{corev1.LabelOSStable: name} }
}

func hasPort(port int32, ip string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port, HostIP: ip, Protocol: corev1.ProtocolTCP}, {ContainerPort: 90}}
	}
}

func priority(value int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Priority = &value }
}

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

// runsContainer has one container that runs beside one whose image is absent.
func runsContainer(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "other", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
		{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

// controlledBy makes the pod one of such a controller.
func controlledBy(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		controller := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: &controller}}
	}
}

func terminating(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }

func never(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

func sysctl(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}
	}
}

// sevenPods are those of the real test: 4 BestEffort, 2 that ask for 1 GiB, 1 Guaranteed.
func sevenPods() []corev1.Pod {
	pods := []corev1.Pod{}
	for i := range 4 {
		pods = append(pods, aPod(fmt.Sprintf("be%d", i+1), i))
	}
	return append(pods, aPod("bu1", 4, asks("memory", "1Gi")), aPod("bu2", 5, asks("memory", "1Gi")), aPod("gu1", 6, guaranteed("1", "64Mi")))
}

// quoted is a text as a JSON string.
func quoted(text string) string {
	content, _ := json.Marshal(text)
	return string(content)
}
