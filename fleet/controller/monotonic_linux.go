package controller

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock of this machine that never jumps. It also counts while the machine sleeps, because the Lease expires for other processes
// during that time.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // cannot happen on a kernel that runs Go
	}
	return time.Duration(now.Nano())
}
