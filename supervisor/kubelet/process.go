//go:build linux

package kubelet

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process is known by pid and start time (clock ticks since boot), together with the boot.
type Process struct {
	PID        int    `json:"pid"`
	StartTime  uint64 `json:"startTime"`
	Executable string `json:"executable,omitempty"`
}

// BootID is the kernel's name for this boot; empty where it cannot be read.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(data))
}

// ProcessOf reads a process's identity; the start time is 0 when it is gone.
func ProcessOf(pid int) Process {
	p, _ := lookAt(pid)
	return p
}

// lookAt reads a process's identity and its parent.
func lookAt(pid int) (p Process, parent int) {
	p.PID = pid
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p, 0
	}
	p.StartTime, parent = identity(string(data))
	return p, parent
}

// identity is the start time and the parent of a process, by its file stat in /proc; 0 of one that has ended.
func identity(stat string) (started uint64, parent int) {
	// Field 2 is the command in parentheses and may hold anything; field 4 is the parent, 20 the threads, 22 the start time (proc(5)).
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const state, ppid, threads, startTime = 0, 1, 17, 19
	// The first thread may be a zombie while others are still at work, with all the files and locks of the process.
	if len(fields) <= startTime || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1") {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[ppid])
	started, _ = strconv.ParseUint(fields[startTime], 10, 64)
	return started, parent
}

// Alive reports whether it is still the same process.
func (p Process) Alive() bool {
	return p.StartTime > 0 && ProcessOf(p.PID).StartTime == p.StartTime
}

// IsNoRoom reports whether a process could not be started because of a limit of processes or of memory: the host's, or that of our cgroup.
func IsNoRoom(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}
