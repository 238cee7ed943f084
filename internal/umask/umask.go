//go:build linux

// Package umask makes files that have the right permissions from their first moment on. To change permissions
// afterwards is to change them by a name, which may lead elsewhere by then.
package umask

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrUnavailable says that do was not called, because a sandbox forbids what it takes.
var ErrUnavailable = errors.New("no thread can have a umask of its own here")

// With calls do with that umask. The umask belongs to one thread, which ends afterwards: what other goroutines create
// at that time, and processes that they start, do not get it. What do starts in goroutines does not get it either.
func With(mask int, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- fmt.Errorf("%w: %w", ErrUnavailable, err)
			return
		}
		unix.Umask(mask)
		done <- do()
	}()
	return <-done
}
