//go:build linux

package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupMount = "/sys/fs/cgroup"

func cgroupName(cluster string) string { return "kubelet-supervisor-" + cluster }

// cgroupHierarchies gives the roots of the machine's cgroup hierarchies and their kind: "v2", "v1", or "v1 hybrid" where a v2
// hierarchy is mounted beside those of v1.
func cgroupHierarchies() (roots []string, kind string, err error) {
	var filesystem unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &filesystem); err != nil {
		return nil, "", fmt.Errorf("looking at %s: %w", cgroupMount, err)
	}
	if filesystem.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupMount}, "v2", nil
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, "", err
	}
	kind = "v1"
	for _, m := range mounts {
		if !strings.HasPrefix(m.point, cgroupMount+"/") || slices.Contains(roots, m.point) {
			continue
		}
		switch m.filesystem {
		case "cgroup2":
			kind = "v1 hybrid"
			roots = append(roots, m.point)
		case "cgroup":
			roots = append(roots, m.point)
		}
	}
	if len(roots) == 0 {
		return nil, "", fmt.Errorf("no cgroup hierarchy is mounted below %s: a kubelet needs one", cgroupMount)
	}
	return roots, kind, nil
}

// makeCgroups makes the cgroup that is the kubelet's cgroupRoot, in every hierarchy, with every controller it asks for, and
// returns the kind of cgroups the machine has.
func makeCgroups(name string) (string, error) {
	roots, kind, err := cgroupHierarchies()
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		folder := filepath.Join(root, name)
		if kind == "v2" {
			if err := enableControllers(root); err != nil {
				return "", err
			}
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", fmt.Errorf("making a cgroup: %w", err)
		}
		if kind == "v2" {
			// Also below ours, so that systemd, which owns the root, cannot take a controller back while we use it.
			if err := enableControllers(folder); err != nil {
				return "", err
			}
		} else if err := copyCPUSets(root, folder); err != nil {
			return "", err
		}
	}
	return kind, nil
}

// enableControllers hands the controllers that a kubelet needs on to the children of a v2 cgroup.
func enableControllers(folder string) error {
	available, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		if !slices.Contains([]string{"cpu", "cpuset", "memory", "pids", "hugetlb", "io"}, controller) {
			continue
		}
		err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("enabling cgroup controller %s below %s: processes are in that very cgroup, as in a container; use a machine or a virtual machine: %w", controller, folder, err)
		}
		if err != nil {
			return fmt.Errorf("enabling cgroup controller %s below %s: %w", controller, folder, err)
		}
	}
	return nil
}

// copyCPUSets gives a v1 cpuset cgroup its parent's processors and memory nodes: it starts with none, and then takes no process.
func copyCPUSets(root, folder string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, file), value, 0); err != nil {
			return fmt.Errorf("setting up a cpuset cgroup: %w", err)
		}
	}
	return nil
}

// cgroupFolders are the cluster's cgroups, parents before children.
func cgroupFolders(name string) ([]string, error) {
	roots, _, err := cgroupHierarchies()
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, root := range roots {
		_ = filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return nil // what vanishes meanwhile needs no removal
		})
	}
	return folders, nil
}

func cgroupProcesses(name string) ([]int, error) {
	folders, err := cgroupFolders(name)
	if err != nil {
		return nil, err
	}
	var processes []int
	for _, folder := range folders {
		file, err := os.Open(filepath.Join(folder, "cgroup.procs"))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if id, err := strconv.Atoi(lines.Text()); err == nil && id > 0 {
				processes = append(processes, id)
			}
		}
		_ = file.Close()
	}
	return processes, nil
}

// removeCgroups removes the cluster's cgroups, in which no process is any more.
func removeCgroups(name string) error {
	folders, err := cgroupFolders(name)
	if err != nil {
		return err
	}
	var failed error
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
