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

// A machine is known by its /proc and /sys.
type machine struct{ proc, sys string }

// memory is what the eviction manager sees: all there is, without the working set of the root cgroup.
func (m machine) memory() (*forecast.Amount, error) {
	meminfo, err := numbers(filepath.Join(m.proc, "meminfo"))
	if err != nil {
		return nil, err
	}
	total := meminfo["MemTotal:"] * 1024
	if total == 0 {
		return nil, fmt.Errorf("%s tells of no memory", filepath.Join(m.proc, "meminfo"))
	}
	used, err := m.cgroups().workingSet("/")
	if err != nil {
		return nil, err
	}
	return &forecast.Amount{Available: total - *used, Capacity: total}, nil
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
		return nil, fmt.Errorf("%s tells of no limit of processes", filepath.Join(m.proc, "sys/kernel"))
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
	return nil, fmt.Errorf("%s does not tell how many processes there are", file)
}

// filesystem asks the one that has this folder.
func filesystem(folder string) (*forecast.Filesystem, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	block := s.Frsize
	return &forecast.Filesystem{
		Bytes:  forecast.Amount{Available: block * int64(s.Bavail), Capacity: block * int64(s.Blocks)},
		Inodes: forecast.Amount{Available: int64(s.Ffree), Capacity: int64(s.Files)},
	}, nil
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
