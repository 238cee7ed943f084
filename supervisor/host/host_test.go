//go:build linux

package host

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// aMachine has these files below its root.
func aMachine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var common = map[string]string{
	"proc/meminfo":                "MemTotal:     1000 kB\nMemFree:      10 kB\n",
	"proc/loadavg":                "0.10 0.20 0.30 2/345 6789\n",
	"proc/sys/kernel/pid_max":     "4194304\n",
	"proc/sys/kernel/threads-max": "10345\n",
	"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":              "2\n",
	"sys/devices/system/node/node0/meminfo":                                 "Node 0 MemTotal:        600 kB\nNode 0 MemFree:      10 kB\n",
	"sys/devices/system/node/node0/cpu0/x":                                  "",
	"sys/devices/system/node/node0/cpu2/x":                                  "",
	"sys/devices/system/node/node1/cpu1/x":                                  "",
	"sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
	"sys/devices/system/cpu/cpu0/topology/physical_package_id":              "0\n",
	"sys/devices/system/cpu/cpu0/topology/core_id":                          "4\n",
	"sys/devices/system/cpu/cpu1/topology/physical_package_id":              "1\n",
	"sys/devices/system/cpu/cpu1/topology/core_id":                          "4\n",
	"sys/devices/system/cpu/cpu2/topology/physical_package_id":              "0\n",
	"sys/devices/system/cpu/cpu2/topology/core_id":                          "4\n",
	"sys/devices/system/cpu/cpu2/online":                                    "1\n",
	"sys/devices/system/cpu/cpu3/online":                                    "0\n",
	"sys/devices/system/cpu/cpu3/topology/physical_package_id":              "0\n",
	"sys/devices/system/cpu/cpu3/topology/core_id":                          "5\n",
	"sys/devices/system/cpu/cpufreq/x":                                      "",
	"root/memory_manager_state":                                             `{"policyName":"None","machineState":{}}`,
	"root/cpu_manager_state":                                                `{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"1"}}}`,
}

func with(files map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{common, files} {
		for name, content := range m {
			all[name] = content
		}
	}
	return all
}

func TestLook(t *testing.T) {
	pods := int64(300)
	for name, m := range map[string]struct {
		files   map[string]string
		kubelet Kubelet
		version int
	}{
		"v2": {map[string]string{
			"sys/fs/cgroup/cgroup.controllers":            "memory",
			"sys/fs/cgroup/memory.stat":                   "anon 100000\nfile 300000\ninactive_file 200000\n",
			"sys/fs/cgroup/kubepods.slice/memory.stat":    "inactive_file 100\n",
			"sys/fs/cgroup/kubepods.slice/memory.current": "400\n",
		}, Kubelet{CgroupDriver: "systemd"}, 2},
		"v1": {map[string]string{
			"sys/fs/cgroup/memory/memory.stat":                        "inactive_file 1\ntotal_inactive_file 200000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":              "400000\n",
			"sys/fs/cgroup/memory/a-b/kubepods/memory.stat":           "total_inactive_file 100\n",
			"sys/fs/cgroup/memory/a-b/kubepods/memory.usage_in_bytes": "400\n",
		}, Kubelet{CgroupRoot: "/a-b", CgroupDriver: "cgroupfs"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := aMachine(t, with(m.files))
			m.kubelet.RootDir = filepath.Join(root, "root")
			m.kubelet.RuntimeEndpoint = "unix://" + filepath.Join(root, "none.sock")
			got, err := look(t.Context(), root, m.kubelet)
			if err == nil || !strings.Contains(err.Error(), "asking the container runtime") || strings.Count(err.Error(), "\n") != 1 {
				t.Errorf("the error is %v, want that the runtime was not reached, twice", err)
			}
			if got.NodeFS == nil || got.NodeFS.Bytes.Capacity <= 0 || got.NodeFS.Bytes.Available > got.NodeFS.Bytes.Capacity {
				t.Errorf("the file system is %+v", got.NodeFS)
			}
			if got.Storage != got.NodeFS.Bytes.Capacity {
				t.Errorf("the file system has %d bytes, and %d as storage", got.NodeFS.Bytes.Capacity, got.Storage)
			}
			got.NodeFS, got.Storage = nil, 0
			want := forecast.Host{MemoryTotal: 1024000, HugePages: map[corev1.ResourceName]int64{"hugepages-1Gi": 2 << 30}, Memory: &forecast.Amount{Available: 1024000 - 200000, Capacity: 1024000}, PIDs: &forecast.Amount{Available: 10000, Capacity: 10345},
				PodsMemory: &pods, CgroupVersion: m.version,
				CPUs:        []forecast.CPU{{ID: 0}, {ID: 1, Core: 1, Socket: 1, Node: 1}, {ID: 2}},
				NUMANodes:   []forecast.NUMANode{{Memory: 600 << 10}, {ID: 1, HugePages: map[corev1.ResourceName]int64{"hugepages-2Mi": 6 << 20}}},
				MemoryState: &forecast.MemoryState{Policy: "None", Nodes: map[int]map[string]forecast.MemoryAmounts{}, Entries: map[string]map[string]bool{}},
				CPUState:    &forecast.CPUState{Policy: "static", Shared: []int{0}, Entries: map[string]map[string][]int{"u": {"c": {1}}}}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		})
	}
}

// A machine that tells nothing gives no facts, and many errors.
func TestLookAtNothing(t *testing.T) {
	root := t.TempDir()
	got, err := look(t.Context(), root, Kubelet{RootDir: filepath.Join(root, "none"), RuntimeEndpoint: filepath.Join(root, "none.sock")})
	if want := (forecast.Host{CPUState: &forecast.CPUState{}, MemoryState: &forecast.MemoryState{}}); !reflect.DeepEqual(got, want) || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
	broken := aMachine(t, map[string]string{"proc/meminfo": "", "proc/loadavg": "", "proc/sys/kernel/pid_max": "1", "k/cpu_manager_state": "x", "k/memory_manager_state": "x"})
	if got, err := look(t.Context(), broken, Kubelet{RootDir: filepath.Join(broken, "k")}); got.Memory != nil || got.PIDs != nil || got.CPUState != nil || got.MemoryState != nil || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// A kernel that tells of no NUMA nodes has one for each socket.
func TestCPUsWithoutNodes(t *testing.T) {
	m := machine{sys: aMachine(t, map[string]string{
		"devices/system/cpu/cpu0/topology/physical_package_id": "0", "devices/system/cpu/cpu0/topology/core_id": "0",
		"devices/system/cpu/cpu1/topology/physical_package_id": "7", "devices/system/cpu/cpu1/topology/core_id": "0",
		"devices/system/cpu/cpu2/x": "", "devices/system/cpu/cpu3/topology/physical_package_id": "7",
	})}
	cpus := m.cpus()
	if want := []forecast.CPU{{}, {ID: 1, Core: 1, Socket: 7, Node: 7}}; !reflect.DeepEqual(cpus, want) {
		t.Errorf("CPUs are %+v, want %+v", cpus, want)
	}
	if nodes := m.numaNodes(cpus); !reflect.DeepEqual(nodes, []forecast.NUMANode{{}, {ID: 7}}) {
		t.Errorf("nodes are %+v", nodes)
	}
}

// What this very machine tells can be believed.
func TestLookAtThisMachine(t *testing.T) {
	m := machine{"/proc", "/sys"}
	if memory, err := m.memory(); err != nil || memory.Available <= 0 || memory.Available >= memory.Capacity {
		t.Skipf("memory is %+v, %v", memory, err) // a container has no root cgroup
	}
	if pids, err := m.processes(); err != nil || pids.Available <= 0 || pids.Available >= pids.Capacity {
		t.Errorf("processes are %+v, %v", pids, err)
	}
}

func TestPodsCgroup(t *testing.T) {
	for want, of := range map[string][2]string{
		"/kubepods":       {"", "cgroupfs"},
		"/a-b/kubepods":   {"/a-b", "cgroupfs"},
		"/kubepods.slice": {"/", "systemd"},
		"/a_b.slice/a_b-c.slice/a_b-c-kubepods.slice": {"a-b/c", "systemd"},
	} {
		if got := podsCgroup(of[0], of[1]); got != want {
			t.Errorf("%q: %s, want %s", of, got, want)
		}
	}
}

// A link is what it leads to.
func TestSame(t *testing.T) {
	folder := aMachine(t, map[string]string{"a": "", "b": ""})
	if err := os.Symlink("a", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "link": true, "b": false, "none": false} {
		if got := Same(filepath.Join(folder, "a"), filepath.Join(folder, name)); got != want {
			t.Errorf("a and %s are the same: %t", name, got)
		}
	}
	if Same(filepath.Join(folder, "none"), filepath.Join(folder, "none")) {
		t.Error("what is not there is the same")
	}
}

// What the processes in a cgroup take is what its limit would be held against.
func TestCgroupUse(t *testing.T) {
	v2 := aMachine(t, map[string]string{"fs/cgroup/cgroup.controllers": "memory", "fs/cgroup/a/memory.stat": "inactive_file 100\n", "fs/cgroup/a/memory.current": "400\n", "fs/cgroup/a/pids.current": "7\n"})
	v1 := aMachine(t, map[string]string{"fs/cgroup/memory/a/memory.stat": "total_inactive_file 100\n", "fs/cgroup/memory/a/memory.usage_in_bytes": "400\n", "fs/cgroup/pids/a/pids.current": "7\n"})
	for _, root := range []string{v1, v2} {
		cgroups := machine{sys: root}.cgroups()
		if use, err := cgroups.use("/a"); err != nil || use != (forecast.CgroupUse{Memory: 300, PIDs: 7}) {
			t.Errorf("version %d: %+v, %v", cgroups.version, use, err)
		}
		if use, err := cgroups.use("/none"); err == nil {
			t.Errorf("version %d: %+v of a cgroup that is not there", cgroups.version, use)
		}
	}
}
