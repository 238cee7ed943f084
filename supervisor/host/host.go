//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Bounds of what others give.
const (
	runtimePatience = 5 * time.Second // for both questions
	mostState       = 4 << 20         // bytes of a manager's file
)

// A Kubelet is where one keeps things; of its effective configuration and its command line.
type Kubelet struct {
	RootDir         string // its own files
	RuntimeEndpoint string // containerRuntimeEndpoint
	CgroupRoot      string
	CgroupDriver    string // of its configuration: for a runtime that names none
}

// ErrSilent says that the container runtime has not answered. Any other error is that something cannot be measured here.
var ErrSilent = errors.New("the container runtime has not answered")

// Look measures. What is missing from its answer is in the error. A container runtime that does not answer holds it up
// for 5 s, and is ErrSilent.
func Look(ctx context.Context, k Kubelet) (forecast.Host, error) { return look(ctx, "/", k) }

// look measures the machine whose /proc and /sys are below root.
func look(ctx context.Context, root string, k Kubelet) (forecast.Host, error) {
	m := machine{proc: filepath.Join(root, "proc"), sys: filepath.Join(root, "sys")}
	var h forecast.Host
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	h.Memory, err = m.memory()
	note(err)
	h.PIDs, err = m.processes()
	note(err)
	h.MemoryTotal, err = m.memoryTotal()
	note(err)
	h.HugePages = hugePages(filepath.Join(m.sys, "kernel/mm/hugepages"))
	h.NodeFS, h.Storage, err = filesystem(k.RootDir)
	note(err)
	h.CPUState, err = stateFile(filepath.Join(k.RootDir, "cpu_manager_state"), forecast.DecodeCPUState)
	note(err)
	h.MemoryState, err = stateFile(filepath.Join(k.RootDir, "memory_manager_state"), forecast.DecodeMemoryState)
	note(err)
	h.CPUs = m.cpus()
	h.NUMANodes = m.numaNodes(h.CPUs)

	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	runtime := newRuntime(k.RuntimeEndpoint)
	defer runtime.close()
	images, err := runtime.imageFolder(ctx)
	note(err)
	if err == nil {
		h.ImageFS, _, err = filesystem(images)
		note(err)
	}
	h.CgroupDriver, err = runtime.cgroupDriver(ctx)
	note(err)

	cgroups := m.cgroups()
	h.CgroupVersion = cgroups.version
	driver := h.CgroupDriver
	if driver == "" {
		driver = k.CgroupDriver
	}
	h.PodsMemory, err = cgroups.workingSet(podsCgroup(k.CgroupRoot, driver))
	note(err)
	return h, errors.Join(errs...)
}

// Same reports whether two paths are one file, socket or folder, by links too. What is not there is not.
func Same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// stateFile reads the file of a manager. A kubelet that has none starts with nothing given away.
func stateFile[state any](path string, decode func([]byte) (*state, error)) (*state, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(state), nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := bounded.Read(file, mostState)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file.Name(), err)
	}
	return decode(content)
}
