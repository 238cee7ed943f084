//go:build linux

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// EnoughInotify is how many inotify instances some ten clusters take beside a desktop. All programs of root share them, and a kubelet
// that finds none ends.
const EnoughInotify = 1024

// sysctls are those that a kubelet sets at its start (setupKernelTunables in its container manager), and the one that is raised for the
// clusters.
var sysctls = []string{"fs/inotify/max_user_instances", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

// fixedFolders are those that kubelet and containerd make in places that no configuration moves, children first.
var fixedFolders = []string{"/var/lib/kubelet/device-plugins", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/run/containerd/s", "/run/containerd"}

// A host is what the clusters of a machine share and change.
type host struct {
	Sysctls map[string]string `json:"sysctls"`
	Absent  []string          `json:"absent"` // of fixedFolders
}

func savedHost() string { return filepath.Join(registry, "host") }

// saveHost writes down how the machine is, unless a cluster is or was up since; the registry is locked.
func saveHost() error {
	if _, err := os.Stat(savedHost()); err == nil {
		return nil
	}
	saved := host{Sysctls: map[string]string{}}
	for _, name := range sysctls {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			saved.Sysctls[name] = strings.TrimSpace(string(value))
		}
	}
	for _, folder := range fixedFolders {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			saved.Absent = append(saved.Absent, folder)
		}
	}
	content, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return os.WriteFile(savedHost(), content, 0o600)
}

// AllowInotify raises the machine's limit of inotify instances to so many, where it is lower. The last cluster that goes down puts it back.
func AllowInotify(instances int) error {
	const file = "/proc/sys/fs/inotify/max_user_instances"
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	has, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if has >= instances {
		return nil
	}
	return os.WriteFile(file, []byte(strconv.Itoa(instances)), 0)
}

// restoreHost makes the machine what saveHost saw; the registry is locked and no cluster is up.
func restoreHost() error {
	content, err := os.ReadFile(savedHost())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var saved host
	if err == nil {
		err = json.Unmarshal(content, &saved)
	}
	for name, value := range saved.Sysctls {
		err = errors.Join(err, os.WriteFile("/proc/sys/"+name, []byte(value), 0))
	}
	if err != nil {
		return fmt.Errorf("restoring the sysctls saved in %s: %w", savedHost(), err)
	}
	for _, folder := range saved.Absent {
		for _, file := range []string{"kubelet.sock", "kubelet_internal_checkpoint"} { // the device manager's
			_ = os.Remove(filepath.Join(folder, file))
		}
		_ = os.Remove(folder) // stays where somebody else uses it by now
	}
	return os.Remove(savedHost())
}
