//go:build linux

package host

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// CgroupMount is where the hierarchies of cgroups are mounted.
const CgroupMount = "/sys/fs/cgroup"

// A Limit is a limit of a cgroup as it is now.
type Limit struct {
	File  string // below [CgroupMount]
	Value string
	Gone  bool     // the file no longer exists
	Sets  []string // what a kubelet makes of it, as the kernel may show that; nil: it leaves it alone
}

// Limits reads the limits that a kubelet with these reservations writes, and the files that are named. What cannot be read is left out.
func Limits(enforced []forecast.Enforced, files []string) []Limit {
	return limits(machine{sys: "/sys"}.cgroups(), CgroupMount, enforced, files)
}

func limits(c cgroups, mount string, enforced []forecast.Enforced, files []string) (found []Limit) {
	sets := map[string][]string{}
	for _, file := range files {
		if filepath.IsLocal(file) {
			sets[file] = nil
		}
	}
	for _, e := range enforced {
		for _, name := range CgroupPaths(e.Cgroup) {
			maps.Copy(sets, c.controls(mount, name, e))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(sets)) {
		value, err := os.ReadFile(filepath.Join(mount, file))
		gone := errors.Is(err, fs.ErrNotExist)
		if err == nil || gone {
			found = append(found, Limit{File: file, Value: c.shown(string(value)), Gone: gone, Sets: sets[file]})
		}
	}
	return found
}

// shown is what a file holds. Version 2 has a word for no limit, and its huge pages show a large number until that was written once.
func (c cgroups) shown(content string) string {
	value := strings.TrimSpace(content)
	if number, err := strconv.ParseUint(value, 10, 64); c.version == 2 && err == nil && number >= 1<<62 {
		return "max"
	}
	return value
}

// CgroupPaths are where the cgroup of a configuration's name may be: as it is written, and where the kubelet's systemd
// driver finds it, which takes the last part of the name for that of a slice.
func CgroupPaths(name string) []string {
	written := path.Join("/", name)
	last := strings.TrimSuffix(path.Base(written), ".slice")
	slices := "/"
	for i, r := range last + "-" {
		if r == '-' && i > 0 {
			slices = path.Join(slices, last[:i]+".slice")
		}
	}
	if slices == written || written == "/" {
		return []string{written}
	}
	return []string{written, slices}
}

// controls are the files of a cgroup that a kubelet writes for a reservation, and what it makes of them.
func (c cgroups) controls(mount, name string, e forecast.Enforced) map[string][]string {
	files := map[string][]string{}
	add := func(controller, control string, values []string) {
		if c.version == 2 {
			controller = ""
		}
		file := filepath.Join(controller, strings.TrimPrefix(name, "/"), control)
		if _, err := os.Stat(filepath.Join(mount, file)); err == nil && len(values) > 0 {
			files[file] = values
		}
	}
	switch c.version {
	case 1:
		add("memory", "memory.limit_in_bytes", bytesWritten(e.Memory))
		add("cpu", "cpu.shares", sharesWritten(e.MilliCPU))
	case 2:
		add("", "memory.max", bytesWritten(e.Memory))
		if e.MemoryMin {
			add("", "memory.min", bytesWritten(e.Memory))
		}
		add("", "cpu.weight", weightWritten(e.MilliCPU))
	}
	add("pids", "pids.max", processesWritten(e.PIDs))
	for _, control := range c.pageControls(mount, name) {
		add("hugetlb", control, pagesWritten(e.Pages, pageSize(control)))
	}
	return files
}

// pageControls are the limits of huge pages of every size.
func (c cgroups) pageControls(mount, name string) (controls []string) {
	folder, ending := filepath.Join(mount, name), ".max"
	if c.version == 1 {
		folder, ending = filepath.Join(mount, "hugetlb", name), ".limit_in_bytes"
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "hugetlb.") && strings.HasSuffix(entry.Name(), ending) {
			controls = append(controls, entry.Name())
		}
	}
	return controls
}

// pageSize is that of hugetlb.2MB.max, in bytes.
func pageSize(control string) int64 {
	_, text, _ := strings.Cut(control, ".")
	text, _, _ = strings.Cut(text, ".")
	for i, unit := range []string{"KB", "MB", "GB"} {
		if number, is := strings.CutSuffix(text, unit); is {
			count, _ := strconv.ParseInt(number, 10, 64)
			return count << (10 * (i + 1))
		}
	}
	return 0
}

// processesWritten: of 0, kubelets make the least limit that there is, or none.
func processesWritten(amount int64) []string {
	switch {
	case amount < 0:
		return nil
	case amount == 0:
		return []string{"0", "1", "max"}
	}
	return []string{strconv.FormatInt(amount, 10)}
}

// pagesWritten: of a size that no reservation names, none may be used.
func pagesWritten(reserved map[int64]int64, size int64) []string {
	amount := reserved[size]
	if size > 0 {
		amount = amount / size * size
	}
	return []string{strconv.FormatInt(amount, 10)}
}

// bytesWritten: the kernel counts whole pages, and systemd shows the amount as it was given.
func bytesWritten(amount int64) []string {
	if amount <= 0 {
		return nil // none is written
	}
	page := int64(os.Getpagesize())
	return distinct(strconv.FormatInt(amount/page*page, 10), strconv.FormatInt(amount, 10))
}

const mostShares = 1 << 18 // the kernel's

// sharesOf is how a kubelet counts CPU; negative: it writes none.
func sharesOf(milliCPU int64) int64 {
	if milliCPU < 0 {
		return -1
	}
	return min(max(min(milliCPU, 1000*mostShares)*1024/1000, 2), mostShares)
}

func sharesWritten(milliCPU int64) []string {
	if shares := sharesOf(milliCPU); shares >= 0 {
		return []string{strconv.FormatInt(shares, 10)}
	}
	return nil
}

// weightWritten has both ways in which kubelets make a weight of shares: along a line, and newer ones so that 1024
// shares are the kernel's own 100.
func weightWritten(milliCPU int64) []string {
	shares := sharesOf(milliCPU)
	if shares < 0 {
		return nil
	}
	line := 1 + (shares-2)*9999/(mostShares-2)
	log := math.Log2(float64(shares))
	curve := int64(math.Ceil(math.Pow(10, (log*log+125*log)/612-7.0/34)))
	return distinct(strconv.FormatInt(line, 10), strconv.FormatInt(min(max(curve, 1), 10000), 10))
}

func distinct(a, b string) []string {
	if a == b {
		return []string{a}
	}
	return []string{a, b}
}

// UnitLimits are what the properties of a unit come to when a kubelet of systemd's driver writes a reservation.
func UnitLimits(e forecast.Enforced) map[string][]string {
	values := map[string][]string{
		"MemoryMax": bytesWritten(e.Memory), "MemoryLimit": bytesWritten(e.Memory),
		"CPUWeight": weightWritten(e.MilliCPU), "CPUShares": sharesWritten(e.MilliCPU),
	}
	if e.MemoryMin {
		values["MemoryMin"] = bytesWritten(e.Memory)
	}
	if limits := processesWritten(e.PIDs); len(limits) > 0 {
		values["TasksMax"] = limits
	}
	maps.DeleteFunc(values, func(_ string, of []string) bool { return len(of) == 0 })
	return values
}
