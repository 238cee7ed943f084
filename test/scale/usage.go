package scale

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is USER_HZ's, in which /proc counts: 100 on all of Linux' architectures that Go runs on.
const tick = 10 * time.Millisecond

// processorTime is a process's user and system time since its start.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// What follows the name, which may hold anything, begins with field 3; utime is 14 and stime 15.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading /proc/%d/stat: %q is too short", pid, stat)
	}
	return ticks(fields[11]) + ticks(fields[12]), nil
}

func ticks(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * tick
}

// machineTime gives this machine's processor time since its boot: all of it, and what was in use.
func machineTime() (all, busy time.Duration, err error) {
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

// memoryOf gives RSS and anonymous memory of a process, in MiB.
func memoryOf(pid int) (resident, anonymous float64, err error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(rollup)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kibibytes, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "Rss:":
			resident = kibibytes / 1024
		case "Anonymous:":
			anonymous = kibibytes / 1024
		}
	}
	return resident, anonymous, nil
}

func filesOf(pid int) (int, error) {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(files), err
}
