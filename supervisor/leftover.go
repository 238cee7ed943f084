package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const goneInterval = 20 * time.Millisecond

// stopLeftOvers stops the kubelet of a supervisor that was killed (rule 1), and gives it the whole grace time. state.json names it.
// That may be gone, unreadable or older than the kubelet, so the search through /proc is always made.
func (l *loop) stopLeftOvers() error {
	recorded, err := l.recordedLeftOver()
	if err != nil {
		return err
	}
	if recorded != nil {
		if err := l.stopLeftOver(*recorded); err != nil {
			return err
		}
	}
	found, err := (kubeletSearch{kubelet: l.Kubelet, arguments: l.Arguments, runDir: l.RunDir}).leftOvers()
	if err != nil {
		return err
	}
	for _, kubelet := range found {
		if err := l.stopLeftOver(kubelet); err != nil {
			return err
		}
	}
	return nil
}

// recordedLeftOver is the kubelet that state.json names, if it is alive. It fails while the supervisor that wrote it is.
func (l *loop) recordedLeftOver() (*Process, error) {
	before, running, err := ReadRecord(l.RunDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		l.Logger.Warn("what an earlier supervisor said of itself cannot be read; it is set aside as "+corruptRecordFile, zap.Error(err))
		setRecordAside(l.RunDir)
		return nil, nil
	case running && before.Supervisor.PID != os.Getpid():
		return nil, errHeldRunDir(before.Supervisor.PID, l.RunDir)
	case before.Child == nil || before.BootID != bootID() || !before.Child.alive():
		return nil, nil
	}
	return before.Child, nil
}

func errHeldRunDir(pid int, runDir string) error {
	return fmt.Errorf("%w: another supervisor (pid %d) runs with this run folder %s: stop it, or give another with --run-dir", ErrUsage, pid, runDir)
}

// setRecordAside makes room for a new state.json, whatever is there. One is kept, for people.
func setRecordAside(runDir string) {
	aside := filepath.Join(runDir, corruptRecordFile)
	_ = os.RemoveAll(aside)
	_ = os.Rename(filepath.Join(runDir, recordFile), aside)
}

// stopLeftOver ends one kubelet. The process is held while it is looked at once more, so that no other one that got its pid is met.
func (l *loop) stopLeftOver(kubelet Process) error {
	held, err := os.FindProcess(kubelet.PID)
	if err != nil {
		return nil // gone
	}
	defer func() { _ = held.Release() }()
	if !kubelet.alive() {
		return nil
	}
	l.Logger.Warn("stopping the kubelet that an earlier supervisor left behind", zap.Int("pid", kubelet.PID))
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = held.Signal(signal)
		if awaitGone(kubelet, l.StopTimeout) {
			return nil
		}
	}
	return fmt.Errorf("the kubelet with pid %d that an earlier supervisor left behind does not end: stop it by hand", kubelet.PID)
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
