package kubelet

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const goneInterval = 20 * time.Millisecond

// StopLeftOvers stops the kubelets that a supervisor of this run folder started and is not the parent of any more (rule 1), with the whole
// grace time for each. recorded is one that is known from elsewhere, nil = none; the search through /proc is always made. One that waits at
// its lock is killed before any other is touched, whose end would let it through; waited tells that there was one.
func (l *Launcher) StopLeftOvers(recorded *Process, grace time.Duration) (waited bool, err error) {
	found, err := (kubeletSearch{kubelet: l.Path, arguments: l.Arguments, runDir: l.RunDir, lockFile: l.LockFile}).leftOvers()
	var others []Process
	for _, kubelet := range found {
		if !comesBeforeItsLock(kubelet.PID, l.LockFile) {
			others = append(others, kubelet)
			continue
		}
		waited = true
		if err := l.stopLeftOver(kubelet, grace, syscall.SIGKILL); err != nil {
			return waited, err
		}
	}
	if recorded != nil {
		if err := l.stopLeftOver(*recorded, grace, syscall.SIGTERM, syscall.SIGKILL); err != nil {
			return waited, err
		}
	}
	if err != nil {
		return waited, err
	}
	for _, kubelet := range others {
		if err := l.stopLeftOver(kubelet, grace, syscall.SIGTERM, syscall.SIGKILL); err != nil {
			return waited, err
		}
	}
	return waited, nil
}

// stopLeftOver ends one kubelet. The process is held while it is looked at once more, so that no other one that got its pid is met.
func (l *Launcher) stopLeftOver(kubelet Process, grace time.Duration, signals ...syscall.Signal) error {
	held, err := os.FindProcess(kubelet.PID)
	if err != nil {
		return nil // gone
	}
	defer func() { _ = held.Release() }()
	if !kubelet.Alive() {
		return nil
	}
	l.Logger.Warn("stopping the kubelet that an earlier supervisor left behind", zap.Int("pid", kubelet.PID))
	for _, signal := range signals {
		_ = held.Signal(signal)
		if awaitGone(kubelet, grace) {
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
	for p.Alive() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			return !p.Alive()
		}
	}
	return true
}
