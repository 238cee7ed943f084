package forecast

import corev1 "k8s.io/api/core/v1"

// Facts are what a forecast is made from.
type Facts struct {
	Now  *Configuration // the one that runs, as the kubelet merged it; nil: not told
	Then *Configuration // the one that is to run, as its pre-flight tells it; nil: not told
	Node *corev1.Node   // nil: not known, as offline
	Pods []corev1.Pod   // all that are bound to the Node, as the API or the kubelet lists them (ReadPods); nil: not known
	Host Host

	// Sandboxes are those that are ready. nil: not known, as where the container runtime does not answer.
	Sandboxes []Sandbox
	// Manifests are the files of the folders of static pods, by their path without a slash at the end. A folder that
	// is absent here is not known.
	Manifests map[string][]Manifest

	SameRuntime     bool // both endpoints are one socket of this node, whatever they are called
	OtherPodHeaders bool // staticPodURLHeader differs, which a kubelet does not tell: its values are secrets
}

// A Host is what the kubelet will measure at its start. Each fact may be missing.
type Host struct {
	MemoryTotal int64                         // of the machine, bytes; 0: not known
	HugePages   map[corev1.ResourceName]int64 // bytes of all pages, by their size; nil: not known
	Storage     int64                         // size of the file system of the kubelet's root folder, bytes; 0: not known

	Memory  *Amount     // of the root cgroup: what is not its working set
	NodeFS  *Filesystem // that has the kubelet's root folder
	ImageFS *Filesystem // that has the runtime's images
	PIDs    *Amount

	PodsMemory    *int64               // working set of the cgroup of all pods, bytes
	Cgroups       map[string]CgroupUse // of those that the configuration that is to run limits, as it names them; absent: not known
	CgroupVersion int                  // 1 or 2; 0: not known
	CgroupDriver  string               // the runtime's own answer; "": not known, or it gives none

	CPUs        []CPU        // that are online; nil: not known
	NUMANodes   []NUMANode   // nil: not known
	CPUState    *CPUState    // nil: not known
	MemoryState *MemoryState // nil: not known
}

// A CgroupUse is what processes in a cgroup take.
type CgroupUse struct{ Memory, PIDs int64 }

// An Amount is how much there is of something, and how much of it is free.
type Amount struct{ Available, Capacity int64 }

// A Filesystem is the result of statfs.
type Filesystem struct {
	Bytes  Amount
	Inodes Amount
}
