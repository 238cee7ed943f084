//go:build linux

package supervisor

import (
	"runtime/debug"
	"time"
)

// idleAfter is longer than the pauses within a change, and than those between the looks at the Lease in a trial.
const idleAfter = 15 * time.Second

// idle is what the loop does once when nothing has happened for a while: it gives memory back to the system. A change leaves garbage, and a
// program that is idle allocates nothing, so that Go would collect it minutes later and keep the room for it: 0.5 of 5.9 MiB.
type idle struct {
	after    time.Duration
	giveBack func()
}

func newIdle() idle { return idle{idleAfter, debug.FreeOSMemory} }
