//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

var reserved = forecast.Enforced{Cgroup: "/a", Memory: 27<<20 + 5, PIDs: 5, MilliCPU: 1000, Pages: map[int64]int64{2 << 20: 5 << 20}}

// What a kubelet sets is known in the kernel's own words, in both versions of cgroups.
func TestLimits(t *testing.T) {
	none := []string{"28311552", "28311557"}
	for name, row := range map[string]struct {
		files map[string]string
		of    forecast.Enforced
		named []string
		want  []Limit
	}{
		"version 2": {
			map[string]string{"cgroup.controllers": "memory", "a/memory.max": "max\n", "a/memory.min": "0\n", "a/cpu.weight": "100\n", "a/pids.max": "max\n", "a/pids.current": "3\n",
				"a/hugetlb.2MB.max": "max\n", "a/hugetlb.1GB.rsvd.max": "max\n", "a/hugetlb.2MB.current": "0\n", "b/memory.max": "500\n"},
			reserved, []string{"a/pids.max", "b/memory.max", "gone/memory.max", "../escapes"},
			[]Limit{{File: "a/cpu.weight", Value: "100", Sets: []string{"39", "100"}}, {File: "a/hugetlb.1GB.rsvd.max", Value: "max", Sets: []string{"0"}}, {File: "a/hugetlb.2MB.max", Value: "max", Sets: []string{"4194304"}},
				{File: "a/memory.max", Value: "max", Sets: none}, {File: "a/pids.max", Value: "max", Sets: []string{"5"}}, {File: "b/memory.max", Value: "500"}, {File: "gone/memory.max", Gone: true}},
		},
		"version 1": {
			map[string]string{"memory/a/memory.limit_in_bytes": "9223372036854771712\n", "cpu/a/cpu.shares": "1024\n", "pids/a/pids.max": "max\n", "hugetlb/a/hugetlb.2MB.limit_in_bytes": "9223372036852678656\n"},
			reserved, nil,
			[]Limit{{File: "cpu/a/cpu.shares", Value: "1024", Sets: []string{"1024"}}, {File: "hugetlb/a/hugetlb.2MB.limit_in_bytes", Value: "9223372036852678656", Sets: []string{"4194304"}},
				{File: "memory/a/memory.limit_in_bytes", Value: "9223372036854771712", Sets: none}, {File: "pids/a/pids.max", Value: "max", Sets: []string{"5"}}},
		},
		"a slice, guaranteed memory, little CPU, no processes": {
			map[string]string{"cgroup.controllers": "memory", "a.slice/a-b.slice/memory.min": "0\n", "a.slice/a-b.slice/cpu.weight": "100\n", "a.slice/a-b.slice/pids.max": "max\n"},
			forecast.Enforced{Cgroup: "/a-b.slice", Memory: 4096, PIDs: 0, MilliCPU: 0, MemoryMin: true}, nil,
			[]Limit{{File: "a.slice/a-b.slice/cpu.weight", Value: "100", Sets: []string{"1"}}, {File: "a.slice/a-b.slice/memory.min", Value: "0", Sets: []string{"4096"}},
				{File: "a.slice/a-b.slice/pids.max", Value: "max", Sets: []string{"0", "1", "max"}}},
		},
		"no cgroups": {map[string]string{"x": ""}, reserved, nil, nil},
	} {
		mount := aMachine(t, map[string]string{})
		for file, content := range row.files {
			path := filepath.Join(mount, "fs/cgroup", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := limits(machine{sys: mount}.cgroups(), filepath.Join(mount, "fs/cgroup"), []forecast.Enforced{row.of}, row.named)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", name, diff)
		}
	}
}

func TestCgroupPaths(t *testing.T) {
	for name, want := range map[string]string{
		"/": "/", "x": "/x /x.slice", "/system.slice": "/system.slice", "/a/b": "/a/b /b.slice", "a-b-c.slice": "/a-b-c.slice /a.slice/a-b.slice/a-b-c.slice", "/a.slice/a-b.slice": "/a.slice/a-b.slice",
	} {
		if got := strings.Join(CgroupPaths(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The units of systemd have the same limits in words of their own.
func TestUnitLimits(t *testing.T) {
	want := map[string][]string{"MemoryMax": {"28311552", "28311557"}, "MemoryLimit": {"28311552", "28311557"}, "CPUWeight": {"39", "100"}, "CPUShares": {"1024"}, "TasksMax": {"5"}}
	if diff := cmp.Diff(want, UnitLimits(reserved)); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	if got := UnitLimits(forecast.Enforced{PIDs: -1, MilliCPU: -1, Memory: 8192, MemoryMin: true}); len(got) != 3 || got["MemoryMin"][0] != "8192" {
		t.Errorf("memory alone: %v", got)
	}
}

// A cgroup that is not there takes nothing; one that cannot be read is not known.
func TestCgroupUses(t *testing.T) {
	root := aMachine(t, map[string]string{"fs/cgroup/cgroup.controllers": "memory", "fs/cgroup/a.slice/memory.stat": "inactive_file 100\n", "fs/cgroup/a.slice/memory.current": "400\n", "fs/cgroup/a.slice/pids.current": "7\n",
		"fs/cgroup/b/memory.stat": "inactive_file 100\n", "fs/cgroup/b/memory.current": "?\n"})
	uses, err := machine{sys: root}.cgroups().uses([]string{"/a", "/none"})
	if want := map[string]forecast.CgroupUse{"/a": {Memory: 300, PIDs: 7}}; err != nil || !cmp.Equal(uses, want) {
		t.Errorf("%v, %v", uses, err)
	}
	if uses, err := (machine{sys: root}).cgroups().uses([]string{"/b"}); err == nil || len(uses) > 0 || !strings.Contains(err.Error(), "cgroup /b take: ") {
		t.Errorf("%v, %v", uses, err)
	}
	if _, err := (cgroups{}).uses([]string{"/a"}); err == nil {
		t.Error("without cgroups everything is known")
	}
}

// The kernel shows a limit that is written as is expected of it, and takes back what it has shown before.
func TestLimitsOfTheKernel(t *testing.T) {
	c := machine{sys: "/sys"}.cgroups()
	for _, mount := range []struct {
		cgroups
		folder      string
		controllers []string
	}{
		{c, CgroupMount, []string{"memory", "cpu", "pids"}},
		{cgroups{version: 2}, filepath.Join(CgroupMount, "unified"), nil},
	} {
		name := "kubelet-supervisor-test-limits"
		folders := []string{filepath.Join(mount.folder, name)}
		if mount.version == 1 {
			folders = nil
			for _, controller := range mount.controllers {
				folders = append(folders, filepath.Join(mount.folder, controller, name))
			}
		}
		if !madeCgroups(t, folders) {
			t.Logf("no cgroup of version %d can be made below %s", mount.version, mount.folder)
			continue
		}
		found := limits(mount.cgroups, mount.folder, []forecast.Enforced{{Cgroup: name, Memory: 27<<20 + 5, PIDs: 5, MilliCPU: 100}}, nil)
		if len(found) == 0 {
			t.Logf("version %d has no controllers here", mount.version)
		}
		for _, l := range found {
			path := filepath.Join(mount.folder, l.File)
			for _, value := range []string{l.Sets[len(l.Sets)-1], l.Value} {
				if err := os.WriteFile(path, []byte(value), 0); err != nil {
					t.Errorf("%s: %v", l.File, err)
				}
				now := limits(mount.cgroups, mount.folder, nil, []string{l.File})
				if want := map[bool]string{true: l.Value, false: l.Sets[0]}[value == l.Value]; len(now) != 1 || now[0].Value != want && now[0].Value != value {
					t.Errorf("%s: %+v, want %s", l.File, now, want)
				}
			}
			t.Logf("%s: %s, then one of %v, and back", l.File, l.Value, l.Sets)
		}
	}
}

// madeCgroups makes scratch cgroups, and enables the controllers that the kernel offers there.
func madeCgroups(t *testing.T, folders []string) bool {
	for _, folder := range folders {
		parent := filepath.Dir(folder)
		if controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers")); err == nil && os.Geteuid() == 0 {
			before, _ := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
			for _, controller := range strings.Fields(string(controllers)) {
				if !strings.Contains(string(before), controller) && os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0) == nil {
					t.Cleanup(func() { _ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("-"+controller), 0) })
				}
			}
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return false
		}
		t.Cleanup(func() { _ = os.Remove(folder) })
	}
	return true
}
