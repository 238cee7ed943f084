//go:build linux

package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is 1 / USER_HZ, in which /proc counts: 100 on all of Linux' architectures that Go runs on.
const tick = 10 * time.Millisecond

// A Usage is what a process takes at a moment, from /proc/PID.
type Usage struct {
	Resident, Anonymous float64       // MiB
	Processor           time.Duration // of user and system, since its start
	Files, Threads      int
}

// UsageOf looks at a process.
func UsageOf(pid int) (u Usage, err error) {
	folder := fmt.Sprintf("/proc/%d/", pid)
	rollup, err := os.ReadFile(folder + "smaps_rollup")
	if err != nil {
		return u, err
	}
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		return u, err
	}
	files, err := os.ReadDir(folder + "fd")
	if err != nil {
		return u, err
	}
	u.Files = len(files)
	for line := range strings.Lines(string(rollup)) {
		name, rest, _ := strings.Cut(line, ":")
		kibibytes, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB\n")), 64)
		switch name {
		case "Rss":
			u.Resident = kibibytes / 1024
		case "Anonymous":
			u.Anonymous = kibibytes / 1024
		}
	}
	// What follows the name, which may hold anything, begins with field 3; utime is 14, stime 15, num_threads 20.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 18 {
		return u, fmt.Errorf("reading %sstat: %q is too short", folder, stat)
	}
	u.Processor = ticks(fields[14-3]) + ticks(fields[15-3])
	u.Threads, _ = strconv.Atoi(fields[20-3])
	return u, nil
}

func ticks(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * tick
}

// MachineTime is the processor time of the machine, and what of it was in use, of all processors together.
func MachineTime() (all, busy time.Duration, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	const idle, waiting, guest = 4, 5, 9 // fields of "cpu  user nice system idle iowait irq softirq steal guest …"; guest is in user
	for i, field := range strings.Fields(first) {
		if i == 0 || i >= guest {
			continue
		}
		all += ticks(field)
		if i != idle && i != waiting {
			busy += ticks(field)
		}
	}
	return all, busy, nil
}
