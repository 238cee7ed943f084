package forecast

import (
	"encoding/json"
	"fmt"
	"path"
)

// A Configuration is what decides over running pods in an effective configuration: flags, drop-in files and defaults merged. It has the
// names of KubeletConfiguration v1beta1, as the kubelet's configz tells them; other fields are passed over.
type Configuration struct {
	MaxPods     *int32 `json:"maxPods"` // nil: the defaults were not merged
	PodsPerCore int32  `json:"podsPerCore"`

	KubeReserved                  map[string]string `json:"kubeReserved"`
	SystemReserved                map[string]string `json:"systemReserved"`
	ReservedSystemCPUs            string            `json:"reservedSystemCPUs"`
	EvictionHard                  map[string]string `json:"evictionHard"`
	EvictionSoft                  map[string]string `json:"evictionSoft"`
	EnforceNodeAllocatable        []string          `json:"enforceNodeAllocatable"`
	LocalStorageCapacityIsolation *bool             `json:"localStorageCapacityIsolation"` // nil: true
	QOSReserved                   map[string]string `json:"qosReserved"`

	KubeReservedCgroup       string `json:"kubeReservedCgroup"`
	SystemReservedCgroup     string `json:"systemReservedCgroup"`
	CgroupRoot               string `json:"cgroupRoot"`
	CgroupsPerQOS            *bool  `json:"cgroupsPerQOS"` // nil: true
	CgroupDriver             string `json:"cgroupDriver"`
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`

	CPUManagerPolicy        string            `json:"cpuManagerPolicy"` // "": the defaults were not merged
	CPUManagerPolicyOptions map[string]string `json:"cpuManagerPolicyOptions"`
	MemoryManagerPolicy     string            `json:"memoryManagerPolicy"`
	ReservedMemory          []ReservedMemory  `json:"reservedMemory"`
	TopologyManagerPolicy   string            `json:"topologyManagerPolicy"`
	TopologyManagerScope    string            `json:"topologyManagerScope"`
	TopologyManagerOptions  map[string]string `json:"topologyManagerPolicyOptions"`

	StaticPodPath       string          `json:"staticPodPath"`
	StaticPodURL        string          `json:"staticPodURL"`
	AllowedUnsafeSysctl []string        `json:"allowedUnsafeSysctls"`
	UserNamespaces      *UserNamespaces `json:"userNamespaces"`
	FeatureGates        map[string]bool `json:"featureGates"`
}

// ReservedMemory is what the memory manager keeps from pods on one NUMA node.
type ReservedMemory struct {
	NUMANode int32             `json:"numaNode"`
	Limits   map[string]string `json:"limits"`
}

// UserNamespaces say how many IDs a pod with a user namespace has.
type UserNamespaces struct {
	IDsPerPod *int64 `json:"idsPerPod"`
}

// DecodeConfiguration reads an effective configuration from JSON.
func DecodeConfiguration(text []byte) (*Configuration, error) {
	var c Configuration
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("reading an effective configuration: %w", err)
	}
	return &c, nil
}

func isTrue(value *bool) bool { return value == nil || *value } // of fields that are true by default

func (c *Configuration) perQOS() bool       { return isTrue(c.CgroupsPerQOS) }
func (c *Configuration) localStorage() bool { return isTrue(c.LocalStorageCapacityIsolation) }

// root is the cgroup below which the kubelet makes kubepods.
func (c *Configuration) root() string {
	return path.Join("/", c.CgroupRoot) // as a kubelet reads it: x is /x
}

func (c *Configuration) idsPerPod() int64 {
	if c.UserNamespaces == nil || c.UserNamespaces.IDsPerPod == nil {
		return 65536
	}
	return *c.UserNamespaces.IDsPerPod
}
