package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const goneInterval = 20 * time.Millisecond

// bootID is the kernel's name for this boot; empty where it cannot be read.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(data))
}

// processOf reads a process's identity; the start time is 0 when it is gone.
func processOf(pid int) Process {
	p := Process{PID: pid}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p
	}
	// Field 2 is the command in parentheses and may hold anything; field 22 is the start time (proc(5)).
	_, rest, _ := strings.Cut(string(data[max(0, bytes.LastIndexByte(data, ')')):]), ") ")
	fields := strings.Fields(rest)
	const state, startTime = 0, 19
	if len(fields) > startTime && fields[state] != "Z" {
		p.StartTime, _ = strconv.ParseUint(fields[startTime], 10, 64)
	}
	return p
}

func (p Process) alive() bool {
	return p.PID > 0 && p.StartTime > 0 && processOf(p.PID).StartTime == p.StartTime
}

// stopLeftOver stops the kubelet that a supervisor left behind which was killed (rule 1). It gives the kubelet the whole grace time.
func stopLeftOver(path string, grace time.Duration, logger *zap.Logger) error {
	before, running, err := ReadRecord(filepath.Dir(path))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		logger.Warn("what an earlier supervisor left cannot be told", zap.Error(err))
		return nil
	case running && before.Supervisor.PID != os.Getpid():
		return fmt.Errorf("%w: another supervisor (pid %d) runs with this run folder %s: stop it, or give another folder with --run-dir", ErrUsage, before.Supervisor.PID, filepath.Dir(path))
	case before.Child == nil || before.BootID != bootID() || !before.Child.alive():
		return nil
	}
	child := *before.Child
	logger.Warn("stopping the kubelet that an earlier supervisor left behind", zap.Int("pid", child.PID))
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(child.PID, signal)
		if awaitGone(child, grace) {
			return nil
		}
	}
	return fmt.Errorf("the kubelet with pid %d that an earlier supervisor left behind does not end: stop it by hand", child.PID)
}

func awaitGone(p Process, wait time.Duration) bool {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	ticker := time.NewTicker(goneInterval)
	defer ticker.Stop()
	for p.alive() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			return !p.alive()
		}
	}
	return true
}

// holder names the supervisor that runs already.
func holder(runDir string) string {
	if r, running, err := ReadRecord(runDir); err == nil && running {
		return fmt.Sprintf(" (pid %d)", r.Supervisor.PID)
	}
	return ""
}
