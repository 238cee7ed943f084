//go:build linux

package host

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

var (
	cpuFolder       = regexp.MustCompile(`^cpu([0-9]+)$`)
	nodeFolder      = regexp.MustCompile(`^node([0-9]+)$`)
	hugePagesFolder = regexp.MustCompile(`^hugepages-([0-9]+)kB$`)
)

// cpus returns the online CPUs, sorted; nil if the kernel does not list them. If it lists no NUMA nodes, each socket counts as one.
func (m machine) cpus() (cpus []forecast.CPU) {
	folder := filepath.Join(m.sys, "devices/system/cpu")
	nodes := m.nodesOfCPUs()
	type core struct{ socket, id int }
	lowest := map[core]int{}
	for id, name := range numbered(folder, cpuFolder) {
		if online, err := number(filepath.Join(folder, name, "online")); err == nil && online == 0 {
			continue
		}
		socket, err := number(filepath.Join(folder, name, "topology/physical_package_id"))
		if err != nil {
			continue // it is offline
		}
		coreID, err := number(filepath.Join(folder, name, "topology/core_id"))
		if err != nil {
			continue
		}
		node, is := nodes[id]
		if !is {
			node = int(socket)
		}
		of := core{int(socket), int(coreID)}
		if first, is := lowest[of]; !is || id < first {
			lowest[of] = id
		}
		cpus = append(cpus, forecast.CPU{ID: id, Core: int(coreID), Socket: int(socket), Node: node})
	}
	for i, c := range cpus {
		cpus[i].Core = lowest[core{c.Socket, c.Core}]
	}
	slices.SortFunc(cpus, func(a, b forecast.CPU) int { return a.ID - b.ID })
	return cpus
}

func (m machine) nodesOfCPUs() map[int]int {
	folder, nodes := filepath.Join(m.sys, "devices/system/node"), map[int]int{}
	for node, name := range numbered(folder, nodeFolder) {
		for cpu := range numbered(filepath.Join(folder, name), cpuFolder) {
			nodes[cpu] = node
		}
	}
	return nodes
}

// numaNodes returns those that the kernel lists, sorted; if it lists none, one for each socket.
func (m machine) numaNodes(cpus []forecast.CPU) (nodes []forecast.NUMANode) {
	folder := filepath.Join(m.sys, "devices/system/node")
	for id, name := range numbered(folder, nodeFolder) {
		nodes = append(nodes, forecast.NUMANode{
			ID: id, Memory: nodeMemory(filepath.Join(folder, name, "meminfo")), HugePages: hugePages(filepath.Join(folder, name, "hugepages")),
		})
	}
	if len(nodes) == 0 {
		for _, c := range cpus {
			if !slices.ContainsFunc(nodes, func(n forecast.NUMANode) bool { return n.ID == c.Node }) {
				nodes = append(nodes, forecast.NUMANode{ID: c.Node})
			}
		}
	}
	slices.SortFunc(nodes, func(a, b forecast.NUMANode) int { return a.ID - b.ID })
	return nodes
}

// nodeMemory reads lines as "Node 0 MemTotal: 1000 kB"; 0 without one.
func nodeMemory(file string) int64 {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[2] == "MemTotal:" {
			kilobytes, _ := strconv.ParseInt(fields[3], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}

// hugePages are the bytes of all pages of each size; nil where there is no such folder.
func hugePages(folder string) map[corev1.ResourceName]int64 {
	if _, err := os.Stat(folder); err != nil {
		return nil
	}
	all := map[corev1.ResourceName]int64{}
	for kilobytes, name := range numbered(folder, hugePagesFolder) {
		if count, err := number(filepath.Join(folder, name, "nr_hugepages")); err == nil {
			size := int64(kilobytes) * 1024
			all[corev1.ResourceName(corev1.ResourceHugePagesPrefix+resource.NewQuantity(size, resource.BinarySI).String())] = size * count
		}
	}
	return all
}

// numbered are the entries of a folder that have such a name, by the number in it.
func numbered(folder string, name *regexp.Regexp) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if parts := name.FindStringSubmatch(e.Name()); parts != nil {
			if n, err := strconv.Atoi(parts[1]); err == nil {
				found[n] = e.Name()
			}
		}
	}
	return found
}
