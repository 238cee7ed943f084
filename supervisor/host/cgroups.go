//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// Cgroups are the machine's, of one version.
type cgroups struct {
	version int    // 1 or 2; 0: none found
	folder  string // of the hierarchy that counts memory
}

func (m machine) cgroups() cgroups {
	mount := filepath.Join(m.sys, "fs/cgroup")
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
		return cgroups{version: 2, folder: mount}
	}
	if _, err := os.Stat(filepath.Join(mount, "memory")); err == nil {
		return cgroups{version: 1, folder: filepath.Join(mount, "memory")}
	}
	return cgroups{}
}

// workingSet is what cadvisor calls so: the memory in use, without pages of files that were not used lately.
func (c cgroups) workingSet(name string) (*int64, error) {
	if c.version == 0 {
		return nil, fmt.Errorf("no cgroups were found, so the memory in use by %s is not known", name)
	}
	folder := filepath.Join(c.folder, name)
	stat, err := numbers(filepath.Join(folder, "memory.stat"))
	if err != nil {
		return nil, err
	}
	var usage, inactive int64
	switch {
	case c.version == 1:
		usage, err = number(filepath.Join(folder, "memory.usage_in_bytes"))
		inactive = stat["total_inactive_file"]
	case filepath.Clean(name) == "/": // has no memory.current
		usage, inactive = stat["anon"]+stat["file"], stat["inactive_file"]
	default:
		usage, err = number(filepath.Join(folder, "memory.current"))
		inactive = stat["inactive_file"]
	}
	if err != nil {
		return nil, err
	}
	used := max(usage-inactive, 0)
	return &used, nil
}

// CgroupUses measures what the processes in these cgroups take, by the names that a configuration gives them. One that
// is not there has no use, and a kubelet that is to limit it ends at its start.
func CgroupUses(names []string) (map[string]forecast.CgroupUse, error) {
	return machine{sys: "/sys"}.cgroups().uses(names)
}

func (c cgroups) uses(names []string) (map[string]forecast.CgroupUse, error) {
	uses := map[string]forecast.CgroupUse{}
	var errs []error
	for _, name := range names {
		for _, path := range CgroupPaths(name) {
			use, err := c.use(path)
			if err == nil {
				uses[name] = use
			} else if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("what the processes in cgroup %s take: %w", name, err))
			}
		}
	}
	return uses, errors.Join(errs...)
}

// use is what the processes in a cgroup and below it take.
func (c cgroups) use(name string) (use forecast.CgroupUse, err error) {
	memory, err := c.workingSet(name)
	if err != nil {
		return use, err
	}
	use.Memory = *memory
	pids := filepath.Join(c.folder, name, "pids.current")
	if c.version == 1 {
		pids = filepath.Join(filepath.Dir(c.folder), "pids", name, "pids.current")
	}
	use.PIDs, err = number(pids)
	return use, err
}

// podsCgroup is the one of all pods, below the kubelet's root. The systemd driver makes slices of it, whose names have those of all above.
func podsCgroup(root, driver string) string {
	name := filepath.Join("/", root, "kubepods")
	if driver != "systemd" {
		return name
	}
	path, slice := "/", ""
	for _, part := range strings.Split(strings.TrimPrefix(name, "/"), "/") {
		part = strings.ReplaceAll(part, "-", "_")
		if slice != "" {
			part = slice + "-" + part
		}
		slice = part
		path = filepath.Join(path, slice+".slice")
	}
	return path
}
