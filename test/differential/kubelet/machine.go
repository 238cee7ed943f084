package main

import (
	"cmp"
	"context"
	"maps"
	"slices"

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
)

// info is the machine as cadvisor tells of it.
func (m Machine) info() *cadvisor.MachineInfo {
	info := &cadvisor.MachineInfo{NumCores: len(m.CPUs)}
	pages, sockets := map[uint64]uint64{}, map[int]bool{}
	for _, n := range m.Nodes {
		node := cadvisor.Node{Id: n.ID, Memory: uint64(n.Memory), HugePages: []cadvisor.HugePagesInfo{}}
		for _, name := range slices.Sorted(maps.Keys(n.HugePages)) {
			size := resource.MustParse(name[len(v1.ResourceHugePagesPrefix):])
			count := uint64(n.HugePages[name] / size.Value())
			node.HugePages = append(node.HugePages, cadvisor.HugePagesInfo{PageSize: uint64(size.Value() / 1024), NumPages: count})
			pages[uint64(size.Value()/1024)] += count
		}
		for _, c := range m.CPUs {
			if c.Node != n.ID {
				continue
			}
			sockets[c.Socket] = true
			at := slices.IndexFunc(node.Cores, func(core cadvisor.Core) bool { return core.Id == c.Core })
			if at < 0 {
				at = len(node.Cores)
				node.Cores = append(node.Cores, cadvisor.Core{Id: c.Core, SocketID: c.Socket, UncoreCaches: []cadvisor.Cache{{Id: c.Cache, Level: 3}}})
			}
			node.Cores[at].Threads = append(node.Cores[at].Threads, c.ID)
		}
		for _, other := range m.Nodes {
			distance := uint64(20)
			if other.ID == n.ID {
				distance = 10
			}
			node.Distances = append(node.Distances, distance)
		}
		info.MemoryCapacity += uint64(n.Memory)
		info.Topology = append(info.Topology, node)
	}
	info.NumSockets = len(sockets)
	for _, size := range slices.Sorted(maps.Keys(pages)) {
		info.HugePages = append(info.HugePages, cadvisor.HugePagesInfo{PageSize: size, NumPages: pages[size]})
	}
	return info
}

// node is what the kubelet says of itself with this configuration, over what stands on its Node.
func (m Machine) node(c *configuration, meta *v1.Node) (*v1.Node, error) {
	node := meta.DeepCopy()
	node.Status.Capacity, node.Status.Allocatable = nil, nil
	storage := v1.ResourceList{v1.ResourceEphemeralStorage: *resource.NewQuantity(m.Storage, resource.BinarySI)}
	if !c.LocalStorageCapacityIsolation {
		storage = nil
	}
	reservation := func() v1.ResourceList { return c.reservation(node.Status.Capacity) }
	set := nodestatus.MachineInfo(node.Name, int(c.MaxPods), int(c.PodsPerCore), func() (*cadvisor.MachineInfo, error) { return m.info(), nil },
		func(bool) v1.ResourceList { return storage }, func() (v1.ResourceList, v1.ResourceList, []string) { return nil, nil, nil }, reservation,
		func(string, string, string) {}, c.LocalStorageCapacityIsolation)
	if err := set(context.Background(), node); err != nil {
		return nil, err
	}
	return node, c.refuses(node.Status.Capacity)
}

// A measure is asked for statistics by the eviction manager: once, and after that it never answers, for the manager never ends.
type measure struct {
	Machine
	podLimit int64
	asked    int
	first    chan struct{}
}

func (m *measure) Get(context.Context, bool) (*statsapi.Summary, error) {
	if m.asked++; m.asked > 1 {
		close(m.first)
		select {}
	}
	number := func(n int64) *uint64 { u := uint64(max(n, 0)); return &u }
	fs := func(free, all, inodesFree, inodes int64) *statsapi.FsStats {
		return &statsapi.FsStats{AvailableBytes: number(free), CapacityBytes: number(all), InodesFree: number(inodesFree), Inodes: number(inodes)}
	}
	f, all := m.Free, m.Capacity
	running := all.PIDs - f.PIDs
	return &statsapi.Summary{Node: statsapi.NodeStats{
		Memory:  &statsapi.MemoryStats{AvailableBytes: number(f.Memory), WorkingSetBytes: number(all.Memory - f.Memory)},
		Fs:      fs(f.NodeFS, all.NodeFS, f.NodeInodes, all.NodeInodes),
		Runtime: &statsapi.RuntimeStats{ImageFs: fs(f.ImageFS, all.ImageFS, f.ImageInodes, all.ImageInodes), ContainerFs: fs(f.ImageFS, all.ImageFS, f.ImageInodes, all.ImageInodes)},
		Rlimit:  &statsapi.RlimitStats{MaxPID: &all.PIDs, NumOfRunningProcesses: &running},
		SystemContainers: []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods,
			Memory: &statsapi.MemoryStats{AvailableBytes: number(m.podLimit - f.PodsMemory), WorkingSetBytes: number(f.PodsMemory)}}},
	}}, nil
}

func (m *measure) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return nil, nil
}

func (*measure) HasDedicatedImageFs(context.Context) (bool, error)     { return true, nil }
func (*measure) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }

func isStatic(pod *v1.Pod) bool {
	return cmp.Or(pod.Annotations["kubernetes.io/config.source"], "api") != "api"
}
