//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"
)

const (
	lockLook = 2 * time.Millisecond // between two looks at the kernel's table of locks
	parkTime = 3 * time.Second      // from the start of a kubelet until it waits
	passTime = 5 * time.Second      // from the end of the one before until it is past the lock
)

// ErrEndedBeforeLock says that a kubelet did not come as far as its lock: it has not accepted its configuration.
var ErrEndedBeforeLock = errors.New("the kubelet ended before it came to its lock")

// Park starts the next kubelet while another one runs, and returns it once it waits at the lock which that one holds. It has accepted its
// configuration then, and touched nothing. If it is not seen to wait there, it is killed. The end of the running one lets it through;
// Passed has to be called for it after that, or Discard at any time.
func (l *Launcher) Park(ctx context.Context, s Spec, running *Child) (*Child, error) {
	held, holds := lockOf(running.command.Process.Pid, filepath.Base(l.LockFile))
	if !holds || !held.isAt(l.LockFile) {
		return nil, errors.New("the kubelet that runs does not hold the lock file")
	}
	if !l.lock.look(func() bool { return canOpen(l.LockFile) }) {
		return nil, errors.New("the lock file cannot be opened, or its disk does not answer")
	}
	child, err := l.start(s, true)
	l.output.began.Store(running.logFrom)
	if err != nil {
		return nil, err
	}
	child.waits = make(chan struct{})
	before := running.Process()
	l.tasks.Go(func() {
		awaitExit(child.command.Process.Pid)
		child.endedEarly = before.Alive()
		close(child.waits)
	})
	if err := child.awaitLock(ctx, held, before); err != nil {
		child.Discard()
		return nil, err
	}
	return child, nil
}

// awaitLock waits until the child waits for the lock.
func (c *Child) awaitLock(ctx context.Context, held heldLock, before Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, parkTime, fmt.Errorf("the kubelet did not come to its lock within %s", parkTime))
	defer cancel()
	pid := c.command.Process.Pid
	ticker := time.NewTicker(lockLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.waits:
			return ErrEndedBeforeLock
		case <-ticker.C:
		}
		if held.hasWaiter(pid) {
			return nil
		}
		if _, past := lockOf(pid, filepath.Base(c.launcher.LockFile)); past {
			if before.Alive() {
				return errors.New("the kubelet went past its lock while another one runs, and was killed")
			}
			return nil // that one has ended in between
		}
	}
}

// Passed waits until a kubelet that was parked is past its lock, which is its start. It is false of one that ended before, or has to be: of
// that nothing is left.
func (c *Child) Passed() bool {
	deadline := time.NewTimer(passTime)
	defer deadline.Stop()
	ticker := time.NewTicker(lockLook / 2)
	defer ticker.Stop()
	for {
		if _, past := lockOf(c.command.Process.Pid, filepath.Base(c.launcher.LockFile)); past {
			break
		}
		select {
		case <-ticker.C:
			continue
		case <-c.waits:
			if c.endedEarly {
				c.Discard()
				return false
			}
		case <-deadline.C:
			c.Discard()
			return false
		}
		break
	}
	c.started = time.Now()
	c.launcher.output.began.Store(c.logFrom)
	c.notify.countAnew(c.command.Process.Pid)
	return true
}

// Discard ends a kubelet that was parked and returns when it has ended. It does not hear SIGTERM while it waits.
func (c *Child) Discard() {
	_ = c.command.Process.Signal(syscall.SIGKILL)
	<-c.waits
	_, _ = c.collect()
	c.notify.forget(c.command.Process.Pid)
}

// Kill begins what Discard ends. It may be called at any time.
func (c *Child) Kill() { _ = c.command.Process.Signal(syscall.SIGKILL) }
