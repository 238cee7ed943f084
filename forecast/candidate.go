package forecast

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

const (
	// SourceAnnotation says where the kubelet has a pod from: api, file or http.
	SourceAnnotation = "kubernetes.io/config.source"

	mirrorAnnotation = "kubernetes.io/config.mirror" // of the object that stands for a static pod in the API

	linux = "linux" // the operating system of each kubelet that is supervised

	systemCritical = 2000000000 // the lowest priority of a critical pod
)

// A candidate is a pod as the kubelet's admission sees it, with all that does not depend on the configuration.
type candidate struct {
	pod      *corev1.Pod
	static   bool
	critical bool
	runs     bool // now, and is not about to end: it can be lost

	asks       amounts     // of its admission
	holds      amounts     // once it is admitted
	devices    bool        // asks for what a device plugin gives
	containers []container // of a Guaranteed pod

	otherOS    bool // its label names another operating system
	misplaced  bool // its node selector or required affinity does not match the Node
	untolerant bool // a NoExecute taint is not tolerated
	perhaps    bool // … or is by a gate that is not on everywhere

	ports          []hostPort
	sysctls        []string
	features       []string // of the node that it needs
	memoryPressure bool     // is tolerated
}

func candidates(node *corev1.Node, pods []corev1.Pod) []*candidate {
	var list []*candidate
	for i := range pods {
		pod := &pods[i]
		if ended(pod.Status.Phase) {
			continue
		}
		list = append(list, newCandidate(node, pod))
	}
	return list
}

// ended pods are not admitted again.
func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func newCandidate(node *corev1.Node, pod *corev1.Pod) *candidate {
	c := &candidate{pod: pod, static: isStatic(pod), runs: Runs(pod, nil)}
	c.critical = c.static || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
	allocated := withAllocated(pod)
	c.asks = amountsOf(resource.PodRequests(allocated, resource.PodResourcesOptions{}))
	c.holds = c.asks
	if allocated != pod {
		c.holds = amountsOf(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
	}
	for name := range c.asks.scalars {
		if isHugePages(name) {
			continue
		}
		delete(c.asks.scalars, name)
		_, known := node.Status.Allocatable[name]
		c.devices = c.devices || known // else it is of the cluster, not of the node: the kubelet does not look at it
	}
	c.ports = hostPorts(pod)
	c.exclusive(allocated)
	c.features = featuresOf(node, pod)
	os, labelled := pod.Labels[corev1.LabelOSStable]
	c.otherOS = labelled && os != linux
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	c.misplaced = err != nil || !matches
	c.memoryPressure = tolerates(pod.Spec.Tolerations, &memoryPressureTaint, false)
	if pod.Spec.SecurityContext != nil {
		for _, sysctl := range pod.Spec.SecurityContext.Sysctls {
			c.sysctls = append(c.sysctls, dotted(sysctl.Name))
		}
	}
	if !c.static {
		c.untolerant, c.perhaps = untolerated(node.Spec.Taints, pod.Spec.Tolerations)
	}
	return c
}

// Runs reports whether a pod of the API runs and is not about to end: its status shows it, or its uid is one of a ready sandbox.
func Runs(pod *corev1.Pod, ready map[types.UID]bool) bool {
	return pod.DeletionTimestamp == nil && (showsRunning(pod) || ready[pod.UID])
}

// showsRunning reads the status. The phase alone is not enough: it is Pending while one container runs and the image
// of another one is absent.
func showsRunning(pod *corev1.Pod) bool {
	runs := func(s corev1.ContainerStatus) bool { return s.State.Running != nil || s.Started != nil && *s.Started }
	return pod.Status.Phase == corev1.PodRunning || slices.ContainsFunc(pod.Status.ContainerStatuses, runs) || slices.ContainsFunc(pod.Status.InitContainerStatuses, runs)
}

func isStatic(pod *corev1.Pod) bool {
	source, told := pod.Annotations[SourceAnnotation]
	_, mirror := pod.Annotations[mirrorAnnotation]
	return mirror || told && source != "api"
}

// withAllocated is the pod with the requests that the kubelet has granted, which differ from its own while it is
// resized. The pod itself, for the work of a copy, where nothing differs.
func withAllocated(pod *corev1.Pod) *corev1.Pod {
	if !resized(pod.Spec.Containers, pod.Status.ContainerStatuses) && !resized(pod.Spec.InitContainers, pod.Status.InitContainerStatuses) {
		return pod
	}
	granted := map[string]corev1.ResourceList{}
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if status.AllocatedResources != nil {
			granted[status.Name] = status.AllocatedResources
		}
	}
	with := *pod
	with.Spec.Containers = withRequests(pod.Spec.Containers, granted)
	with.Spec.InitContainers = withRequests(pod.Spec.InitContainers, granted)
	return &with
}

// resized reports whether something else is granted, or in force, than is asked for.
func resized(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		status := &statuses[i]
		named := indexOf(containers, status.Name)
		if named < 0 {
			continue
		}
		asked := containers[named].Resources.Requests
		if status.AllocatedResources != nil && !equal(asked, status.AllocatedResources) || status.Resources != nil && !equal(asked, status.Resources.Requests) {
			return true
		}
	}
	return false
}

func indexOf(containers []corev1.Container, name string) int {
	for i := range containers { // by index: a container is a large value
		if containers[i].Name == name {
			return i
		}
	}
	return -1
}

func equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y apiresource.Quantity) bool { return x.Cmp(y) == 0 })
}

func withRequests(containers []corev1.Container, granted map[string]corev1.ResourceList) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		if requests, is := granted[containers[i].Name]; is {
			containers[i].Resources.Requests = requests
		}
	}
	return containers
}

// A container of a Guaranteed pod gets from the managers of resources what it asks for, alone.
type container struct {
	name   string
	ends   bool // before the next one starts: what it had is used again
	cpus   int
	memory map[corev1.ResourceName]uint64 // huge pages, too
}

// exclusive notes what a static CPU manager and a static memory manager would give the pod's containers alone.
func (c *candidate) exclusive(pod *corev1.Pod) {
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed || resource.IsPodLevelResourcesSet(pod) {
		return
	}
	for i := range pod.Spec.InitContainers {
		first := newContainer(&pod.Spec.InitContainers[i])
		policy := pod.Spec.InitContainers[i].RestartPolicy
		first.ends = policy == nil || *policy != corev1.ContainerRestartPolicyAlways
		c.containers = append(c.containers, first)
	}
	for i := range pod.Spec.Containers {
		c.containers = append(c.containers, newContainer(&pod.Spec.Containers[i]))
	}
}

func newContainer(of *corev1.Container) container {
	c := container{name: of.Name, memory: map[corev1.ResourceName]uint64{}}
	for name, quantity := range of.Resources.Requests {
		switch {
		case name == corev1.ResourceCPU && quantity.MilliValue()%1000 == 0:
			c.cpus = int(quantity.Value())
		case name == corev1.ResourceMemory || isHugePages(name):
			c.memory[name] = uint64(max(quantity.Value(), 0))
		}
	}
	return c
}

// alone is how many CPUs these containers have together: those of one that ends are used again.
func alone(containers []container) int {
	initial, lasting := 0, 0
	for _, alone := range containers {
		if alone.ends {
			initial = max(initial, lasting+alone.cpus)
		} else {
			lasting += alone.cpus
		}
	}
	return max(initial, lasting)
}

// untolerated looks at the taints that a kubelet looks at. Whether tolerations that compare numbers count is a matter of a gate.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) (is, perhaps bool) {
	certain := false
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectNoExecute || tolerates(tolerations, &taints[i], false) {
			continue
		}
		is = true
		certain = certain || !tolerates(tolerations, &taints[i], true)
	}
	return is, !certain
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint, compare bool) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, compare) })
}
