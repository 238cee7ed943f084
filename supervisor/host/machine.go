//go:build linux

package host

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

const zfsMagic = 0x2fc12fc1

// A machine is known by its /proc and /sys.
type machine struct{ proc, sys string }

// memory is what the eviction manager sees: all there is, without the working set of the root cgroup.
func (m machine) memory() (*forecast.Amount, error) {
	total, err := m.memoryTotal()
	if err != nil {
		return nil, err
	}
	used, err := m.cgroups().workingSet("/")
	if err != nil {
		return nil, err
	}
	return &forecast.Amount{Available: total - *used, Capacity: total}, nil
}

// memoryTotal is what a kubelet that starts now takes for the machine's memory.
func (m machine) memoryTotal() (int64, error) {
	meminfo, err := numbers(filepath.Join(m.proc, "meminfo"))
	if err != nil {
		return 0, err
	}
	total := meminfo["MemTotal:"] * 1024
	if total == 0 {
		return 0, fmt.Errorf("%s shows no memory", filepath.Join(m.proc, "meminfo"))
	}
	return total, nil
}

// processes are counted with their threads; the lower of two limits counts.
func (m machine) processes() (*forecast.Amount, error) {
	limit := int64(-1)
	for _, name := range []string{"pid_max", "threads-max"} {
		value, err := number(filepath.Join(m.proc, "sys/kernel", name))
		if err == nil && (limit < 0 || value < limit) {
			limit = value
		}
	}
	if limit < 0 {
		return nil, fmt.Errorf("%s shows no limit of processes", filepath.Join(m.proc, "sys/kernel"))
	}
	file := filepath.Join(m.proc, "loadavg")
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if fields := strings.Fields(string(content)); len(fields) > 3 {
		_, all, _ := strings.Cut(fields[3], "/")
		if count, err := strconv.ParseInt(all, 10, 64); err == nil {
			return &forecast.Amount{Available: limit - count, Capacity: limit}, nil
		}
	}
	return nil, fmt.Errorf("%s does not show how many processes there are", file)
}

// filesystem asks the one that has this folder. Its size as a kubelet counts it is 0 for ZFS, whose own numbers a kubelet adds up.
func filesystem(folder string) (found *forecast.Filesystem, size int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return nil, 0, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	block := int64(s.Frsize) //nolint:unconvert // uint32 on s390x, int32 on 32 bits
	if s.Type != zfsMagic {
		size = block * int64(s.Blocks)
	}
	return &forecast.Filesystem{
		Bytes:  forecast.Amount{Available: block * int64(s.Bavail), Capacity: block * int64(s.Blocks)},
		Inodes: forecast.Amount{Available: int64(s.Ffree), Capacity: int64(s.Files)},
	}, size, nil
}

func number(file string) (int64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
}

// numbers reads lines of a name and a number.
func numbers(file string) (map[string]int64, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	found := map[string]int64{}
	lines := bufio.NewScanner(opened)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 {
			if value, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				found[fields[0]] = value
			}
		}
	}
	return found, lines.Err()
}
