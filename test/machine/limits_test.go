//go:build machine

package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// What a configuration says of memory becomes memory.max of cgroup v2, for all pods together; a pod that runs keeps its own, and runs on.
func TestMemoryMax(t *testing.T) {
	const megabyte = 1 << 20
	n := runningNode(t)
	n.must("ctr --namespace k8s.io images import /usr/share/pause.tar")
	before := n.pod("limited", 64*megabyte)
	limits := strings.Fields(n.must("for pid in $(pgrep -x pause); do cat /sys/fs/cgroup$(cut -d: -f3 /proc/$pid/cgroup)/memory.max; done"))
	if !slices.Contains(limits, strconv.Itoa(64*megabyte)) {
		t.Errorf("the containers of a pod that is limited to 64 MiB have memory.max %q", limits)
	}
	all := n.bytes("/sys/fs/cgroup/kubepods.slice/memory.max")

	assignment := n.configMap(t, "memory", withPods(56, "kubeReserved: {memory: 300Mi}"))
	n.assign(t, assignment)
	n.says(t, assignment, "Active")
	n.runs(56)
	if now := n.bytes("/sys/fs/cgroup/kubepods.slice/memory.max"); now != all-300*megabyte {
		t.Errorf("memory.max of all pods was %d and is %d", all, now)
	}
	if after := n.container("limited"); after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Errorf("the container was %+v and is %+v", before, after)
	}
}

func (n *node) bytes(file string) int {
	n.machine.Helper()
	number, err := strconv.Atoi(n.must("cat %s", file))
	if err != nil {
		n.Fatal(err)
	}
	return number
}

// pod runs one with so many bytes of memory, and gives its only container. It is gone with the Node.
func (n *node) pod(name string, memory int64) corev1.ContainerStatus {
	n.machine.Helper()
	grace := int64(0)
	limits := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: cluster.NodeName, HostNetwork: true, TerminationGracePeriodSeconds: &grace,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // a boot may take longer than a Node may be away
		Containers: []corev1.Container{{Name: "c", Image: cluster.PauseImage, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Limits: limits}}},
	}}
	if _, err := n.client.CoreV1().Pods("default").Create(n.Context(), made, metav1.CreateOptions{}); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		_ = n.client.CoreV1().Pods("default").Delete(n.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	})
	var c corev1.ContainerStatus
	await(n.T, "a running pod", func() error {
		if c = n.container(name); !c.Ready {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return c
}

func (n *node) container(name string) (c corev1.ContainerStatus) {
	n.machine.Helper()
	pod, err := n.client.CoreV1().Pods("default").Get(n.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	if len(pod.Status.ContainerStatuses) == 1 {
		c = pod.Status.ContainerStatuses[0]
	}
	return c
}

// Two NUMA nodes, and a policy that only counts where there are some.
func TestNUMANodes(t *testing.T) {
	n := runningNode(t, "-object", "memory-backend-ram,id=m0,size=768M", "-object", "memory-backend-ram,id=m1,size=768M",
		"-numa", "node,nodeid=0,cpus=0,memdev=m0", "-numa", "node,nodeid=1,cpus=1,memdev=m1")
	if online := n.must("cat /sys/devices/system/node/online"); online != "0-1" {
		t.Fatalf("the NUMA nodes are %s", online)
	}
	assignment := n.configMap(t, "numa", withPods(57, "topologyManagerPolicy: single-numa-node", "topologyManagerScope: pod",
		"topologyManagerPolicyOptions: {prefer-closest-numa-nodes: \"true\"}"))
	n.assign(t, assignment)
	n.says(t, assignment, "Active")
	n.runs(57)
	config, err := n.Configz(t.Context())
	if err != nil || config["topologyManagerPolicy"] != "single-numa-node" {
		t.Errorf("topologyManagerPolicy is %v (%v)", config["topologyManagerPolicy"], err)
	}
}
