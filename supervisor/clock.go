package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is a clock that neither jumps nor stops while the machine sleeps.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // cannot happen on a kernel that runs Go
	}
	return time.Duration(now.Nano())
}
