//go:build !kubernetes134

package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

// Calls whose arguments differ from version to version.

func newCPUs(c *configuration, info *cadvisor.MachineInfo, reservation v1.ResourceList, folder string, topology topologymanager.Manager) (cpumanager.Manager, error) {
	return cpumanager.NewManager(logr.Discard(), c.CPUManagerPolicy, c.CPUManagerPolicyOptions, never, info, c.cpus, reservation, folder, topology)
}

func newMemory(c *configuration, info *cadvisor.MachineInfo, reservation v1.ResourceList, folder string, topology topologymanager.Manager) (memorymanager.Manager, error) {
	return memorymanager.NewManager(logr.Discard(), c.MemoryManagerPolicy, info, reservation, c.ReservedMemory, folder, topology)
}

func addHints(topology topologymanager.Manager, from topologymanager.HintProvider) {
	topology.AddHintProvider(logr.Discard(), from)
}

func (k *kubelet) startCPUs() error {
	return k.cpus.Start(context.Background(), k.active, k, k, k, containermap.NewContainerMap())
}

func (k *kubelet) addContainer(pod *v1.Pod, c *v1.Container, id string) {
	k.cpus.AddContainer(logr.Discard(), pod, c, id)
	k.memory.AddContainer(logr.Discard(), pod, c, id)
}

func predicates(node *v1.Node, preempt lifecycle.AdmissionFailureHandler) lifecycle.PodAdmitHandler {
	return lifecycle.NewPredicateAdmitHandler(func(context.Context, bool) (*v1.Node, error) { return node, nil }, preempt,
		func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil })
}

func watch(manager eviction.Manager, asked *measure) {
	manager.Start(context.Background(), asked, func() []*v1.Pod { return nil }, func(*v1.Pod) bool { return true }, time.Microsecond)
}
