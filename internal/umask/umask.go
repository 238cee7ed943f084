// Package umask makes files that have the right permissions from their first moment on. To change permissions afterwards is to change them by a
// name, which may lead elsewhere by then.
package umask

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// With calls do with that umask. The umask belongs to one thread, which ends afterwards: what other goroutines make meanwhile, and processes that
// they start, do not get it. What do starts in goroutines does not get it either.
func With(mask int, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- fmt.Errorf("giving a thread a umask of its own: %w", err)
			return
		}
		unix.Umask(mask)
		done <- do()
	}()
	return <-done
}
