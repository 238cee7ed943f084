//go:build linux

package kubelet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The kernel's two files that count processes it killed for lack of memory (cgroup v2). The kubelet is in our own cgroup.
const (
	ownCgroupFile = "/proc/self/cgroup"
	cgroupFolder  = "/sys/fs/cgroup"
)

// outOfMemoryKills counts the processes of our own cgroup that the kernel has killed for lack of memory; -1 if that is unknown.
func outOfMemoryKills(ownCgroup, cgroups string) int {
	own, err := os.ReadFile(ownCgroup)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(own)) {
		path, is := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !is {
			continue
		}
		events, err := os.ReadFile(filepath.Join(cgroups, path, "memory.events"))
		if err != nil {
			return -1
		}
		for event := range strings.Lines(string(events)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(event), " "); name == "oom_kill" {
				if kills, err := strconv.Atoi(value); err == nil {
					return kills
				}
			}
		}
	}
	return -1
}
