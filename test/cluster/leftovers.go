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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const removeTimeout = 20 * time.Second

// remove removes all that a cluster leaves on the machine, whether or not its processes still run. It does not need to know
// them: they are those in the network namespace and in the cgroups.
func remove(name, folder string) error {
	inode := namespaceInode(folder)
	sockets := shimSockets(inode)
	steps := []func() error{
		func() error { return killAll(inode, cgroupName(name)) },
		func() error { return removeCgroups(cgroupName(name)) },
		func() error { return unmountBelow(folder) },
	}
	for _, step := range steps {
		if err := retry(step); err != nil {
			return err
		}
	}
	for _, socket := range sockets {
		_ = os.Remove(socket)
	}
	removeLogLinks(folder)
	return os.RemoveAll(folder)
}

// retry repeats a step until it succeeds: what the kernel takes apart needs a moment.
func retry(step func() error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	deadline := time.Now().Add(removeTimeout)
	for {
		err := step()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-ticker.C
	}
}

// killAll kills every process in the namespace and in the cgroups, and fails as long as there was one.
func killAll(inode uint64, cgroup string) error {
	processes, err := cgroupProcesses(cgroup)
	if err != nil {
		return err
	}
	processes = append(processes, namespaceProcesses(inode)...)
	for _, id := range processes {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	if len(processes) > 0 {
		return fmt.Errorf("processes %v do not end", processes)
	}
	return nil
}

// namespaceInode tells which network namespace is mounted in the folder; 0 when none is.
func namespaceInode(folder string) uint64 {
	var filesystem unix.Statfs_t
	if err := unix.Statfs(namespaceFile(folder), &filesystem); err != nil || filesystem.Type != unix.NSFS_MAGIC {
		return 0
	}
	return inodeOf(namespaceFile(folder))
}

func inodeOf(file string) uint64 {
	var status unix.Stat_t
	if err := unix.Stat(file, &status); err != nil {
		return 0
	}
	return status.Ino
}

func namespaceProcesses(inode uint64) []int {
	if inode == 0 {
		return nil
	}
	namespaces, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	var processes []int
	for _, file := range namespaces {
		id, err := strconv.Atoi(strings.Split(file, "/")[2])
		// This process is never among them, though a thread of it may be there for the length of a Dial.
		if err == nil && id != os.Getpid() && inodeOf(file) == inode {
			processes = append(processes, id)
		}
	}
	return processes
}

// shimSockets are the sockets of containerd's shims, whose place no configuration moves and which a killed shim leaves.
func shimSockets(inode uint64) []string {
	processes := namespaceProcesses(inode)
	if len(processes) == 0 {
		return nil
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/net/unix", processes[0])) // those of its namespace alone
	if err != nil {
		return nil
	}
	defer file.Close()
	var sockets []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if path := fields[len(fields)-1]; strings.HasPrefix(path, "/run/containerd/s/") && !slices.Contains(sockets, path) {
			sockets = append(sockets, path)
		}
	}
	return sockets
}

// removeLogLinks removes the kubelet's links to the logs of this cluster's containers; their place is fixed in the kubelet.
func removeLogLinks(folder string) {
	links, _ := filepath.Glob("/var/log/containers/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, folder+"/") {
			_ = os.Remove(link)
		}
	}
}

type mount struct{ point, filesystem string }

// readMounts reads /proc/self/mountinfo, oldest mount first; see proc_pid_mountinfo(5).
func readMounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var mounts []mount
	for line := range strings.Lines(string(content)) {
		before, after, found := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !found || len(fields) < 5 {
			continue
		}
		filesystem, _, _ := strings.Cut(after, " ")
		mounts = append(mounts, mount{point: strings.NewReplacer(`\040`, " ", `\134`, `\`).Replace(fields[4]), filesystem: filesystem})
	}
	return mounts, nil
}

// unmountBelow unmounts whatever is mounted in the folder, the newest first, and fails as long as there was something.
func unmountBelow(folder string) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	var failed error
	for _, m := range slices.Backward(mounts) {
		if !strings.HasPrefix(m.point, folder+"/") {
			continue
		}
		if err := unix.Unmount(m.point, 0); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
			failed = errors.Join(failed, fmt.Errorf("unmounting %s: %w", m.point, err))
		}
	}
	return failed
}
