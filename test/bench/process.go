//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	pollInterval = 5 * time.Millisecond
	patience     = 2 * time.Minute // for what takes a second on an idle machine
	stopPatience = time.Minute
)

// A process is a supervisor or a kubelet that runs in the node.
type process = cluster.Program

func (b *bench) log(name string) string { return filepath.Join(b.cluster.Folder, "log", name+".log") }

// kubeletOf gives the pid of the kubelet that a supervisor runs, from the process table; 0 when there is none. A pre-flight is told
// by its flags, and a fork that is not the kubelet yet by its program.
func kubeletOf(supervisor int, program string) int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	for _, file := range files {
		children, _ := os.ReadFile(file) // a thread may have ended, and so may a child
		for _, child := range strings.Fields(string(children)) {
			words, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.HasPrefix(string(words), program+"\x00") && !strings.Contains(string(words), "--exit-on-lock-contention") {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	return 0
}

// await polls until seen returns nil; its error says what is there instead.
func await(ctx context.Context, what string, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(context.Cause(ctx), err))
		}
	}
}

// settled waits, so that what was just done has no part in what is measured next.
func settled(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
