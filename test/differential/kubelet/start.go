package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
	"k8s.io/utils/clock"
)

// A kubelet is what admits pods.
type kubelet struct {
	node      *v1.Node
	cpus      cpumanager.Manager
	memory    memorymanager.Manager
	handlers  lifecycle.PodAdmitHandlers
	preempted func(*v1.Pod)

	lock         sync.Mutex // the managers ask from goroutines of their own
	pods         []*v1.Pod
	sourcesReady bool
	looked       chan struct{} // the CPU manager has looked once whether it has to forget somebody
}

func start(c *configuration, m Machine, meta *v1.Node, folder string) (*kubelet, error) {
	if err := c.setGates(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	node, err := m.node(c, meta)
	if err != nil {
		return nil, err
	}
	k := &kubelet{node: node, preempted: func(*v1.Pod) {}, looked: make(chan struct{})}
	admitters := lifecycle.PodAdmitHandlers{}
	evictionAdmitter := k.startEviction(c, m)
	admitters.AddPodAdmitHandler(evictionAdmitter)
	allowed, err := sysctl.NewAllowlist(append(sysctl.SafeSysctlAllowlist(context.Background()), c.AllowedUnsafeSysctls...))
	if err != nil {
		return nil, err
	}
	admitters.AddPodAdmitHandler(allowed)
	topology, err := k.startManagers(c, m, folder)
	if err != nil {
		return nil, err
	}
	admitters.AddPodAdmitHandler(topology)
	preempt := preemption.NewCriticalPodAdmissionHandler(k.active, func(pod *v1.Pod, _ bool, _ *int64, _ func(*v1.PodStatus)) error {
		k.remove(pod)
		k.preempted(pod)
		return nil
	}, &record.FakeRecorder{})
	admitters.AddPodAdmitHandler(predicates(node, preempt))
	admitters.AddPodAdmitHandler(lifecycle.NewPodFeaturesAdmitHandler())
	if declared := declaredFeatures(node); declared != nil {
		admitters.AddPodAdmitHandler(declared)
	}
	k.handlers = admitters
	return k, nil
}

// A stateFault is a kubelet's that ends over the file of a manager.
type stateFault struct {
	file string
	error
}

const never = 1000 * time.Hour

// startManagers begins as the container manager does.
func (k *kubelet) startManagers(c *configuration, m Machine, folder string) (topologymanager.Manager, error) {
	info, reservation := m.info(), c.reservation(k.node.Status.Capacity)
	topology, err := topologymanager.NewManager(info.Topology, c.TopologyManagerPolicy, c.TopologyManagerScope, c.TopologyManagerPolicyOptions)
	if err != nil {
		return nil, err
	}
	if k.cpus, err = newCPUs(c, info, reservation, folder, topology); err != nil {
		return nil, err
	}
	addHints(topology, k.cpus)
	if k.memory, err = newMemory(c, info, reservation, folder, topology); err != nil {
		return nil, err
	}
	addHints(topology, k.memory)
	looked := k.looked
	if err := k.startCPUs(); err != nil {
		return nil, stateFault{cpuState, err}
	}
	if c.CPUManagerPolicy == "static" {
		<-looked
	}
	if err := k.memory.Start(context.Background(), k.active, k, k, k, containermap.NewContainerMap()); err != nil {
		return nil, stateFault{memoryState, err}
	}
	return topology, nil
}

// startEviction waits until the eviction manager has looked once, as it has before a kubelet hears of the API's pods.
func (k *kubelet) startEviction(c *configuration, m Machine) lifecycle.PodAdmitHandler {
	capacity, reserved := k.node.Status.Capacity.Memory().Value(), c.system.Memory().Value()+c.kube.Memory().Value()
	asked := &measure{Machine: m, podLimit: capacity - reserved, first: make(chan struct{})}
	manager, admitter := eviction.NewManager(asked, eviction.Config{PressureTransitionPeriod: c.EvictionPressureTransitionPeriod.Duration, Thresholds: c.thresholds},
		func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { return nil }, k, k, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, c.LocalStorageCapacityIsolation)
	if len(c.thresholds) == 0 && !c.LocalStorageCapacityIsolation {
		return admitter
	}
	watch(manager, asked)
	<-asked.first
	return admitter
}

func (k *kubelet) active() []*v1.Pod {
	k.lock.Lock()
	defer k.lock.Unlock()
	return slices.Clone(k.pods)
}

func (k *kubelet) add(pod *v1.Pod) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.pods = append(k.pods, pod)
}

func (k *kubelet) remove(pod *v1.Pod) {
	k.deleted(func(other *v1.Pod) bool { return other.UID == pod.UID })
}

func (k *kubelet) deleted(gone func(*v1.Pod) bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.pods = slices.DeleteFunc(k.pods, gone)
}

// admit asks the handlers in the kubelet's order, and tells why the pod is refused.
func (k *kubelet) admit(pod *v1.Pod) string {
	others := slices.DeleteFunc(k.active(), func(other *v1.Pod) bool { return other.UID == pod.UID })
	attributes := &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others}
	for _, handler := range k.handlers {
		if result := handler.Admit(attributes); !result.Admit {
			return result.Reason + ": " + result.Message
		}
	}
	return ""
}

// run starts the containers of a pod, one after the other.
func (k *kubelet) run(pod *v1.Pod) {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			k.addContainer(pod, &list[i], string(pod.UID)+"/"+list[i].Name)
		}
	}
}

// forgetGone is what the managers do at the next pod: they forget those that are gone.
func (k *kubelet) forgetGone() {
	nobody := &v1.Pod{}
	k.cpus.GetTopologyHints(nobody, &v1.Container{})
	k.memory.GetTopologyHints(nobody, &v1.Container{})
}

// What the managers ask of a kubelet, and what does not matter for an admission.

func (k *kubelet) AddSource(string) {}

func (k *kubelet) AllReady() bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.looked != nil {
		close(k.looked)
		k.looked = nil
	}
	return k.sourcesReady
}

func (k *kubelet) ready() {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.sourcesReady = true
}

func (k *kubelet) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

func (k *kubelet) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

func (k *kubelet) DeleteUnusedImages(context.Context) error { return nil }

func (k *kubelet) DeleteAllUnusedContainers(context.Context) error { return nil }
