//go:build linux

package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// steadyTime is a clock that does not jump, and stands while the machine sleeps: time asleep is no running time (rule 7).
func steadyTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // cannot happen on a kernel that runs Go
	}
	return time.Duration(now.Nano())
}
