//go:build linux

package kubelet

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const goneInterval = 20 * time.Millisecond

// StopLeftOvers stops the kubelets that a supervisor of this run folder started and is no longer the parent of (rule
// 1), in parallel within one grace time. recorded is one that is known from elsewhere, nil = none; the search through
// /proc is always made. Those that wait at their lock are killed before any other is touched, whose end would let them
// through; waited reports that there was one.
func (l *Launcher) StopLeftOvers(recorded *Process, grace time.Duration) (waited bool, err error) {
	secret := l.secret
	if secret == "" {
		secret = readSecret(l.RunDir)
	}
	found, err := (kubeletSearch{kubelet: l.Path, arguments: l.Arguments, runDir: l.RunDir, lockFile: l.LockFile, secret: secret}).leftOvers()
	var waiting, others []Process
	if recorded != nil {
		others = append(others, *recorded)
	}
	for _, kubelet := range found {
		switch {
		case comesBeforeItsLock(kubelet.PID, l.LockFile):
			waiting = append(waiting, kubelet)
		case recorded == nil || kubelet.PID != recorded.PID:
			others = append(others, kubelet)
		}
	}
	waited = len(waiting) > 0
	if stopErr := l.stopSideBySide(waiting, grace, syscall.SIGKILL); stopErr != nil {
		return waited, stopErr
	}
	if stopErr := l.stopSideBySide(others, grace, syscall.SIGTERM, syscall.SIGKILL); stopErr != nil {
		return waited, stopErr
	}
	return waited, err
}

func (l *Launcher) stopSideBySide(kubelets []Process, grace time.Duration, signals ...syscall.Signal) error {
	errs := make([]error, len(kubelets))
	var stops sync.WaitGroup
	for i, kubelet := range kubelets {
		stops.Go(func() { errs[i] = l.stopLeftOver(kubelet, grace, signals...) })
	}
	stops.Wait()
	return errors.Join(errs...)
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
