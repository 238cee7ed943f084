package controller

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is this machine's clock that never jumps. It goes on while the machine sleeps, for so does everybody else's patience with our
// Lease.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // cannot happen on a kernel that runs Go
	}
	return time.Duration(now.Nano())
}
