//go:build !linux

package controller

import "time"

var processStart = time.Now()

// monotonic does not count the time that this machine sleeps. The controller is released for Linux; elsewhere it is compiled and tested.
func monotonic() time.Duration { return time.Since(processStart) }
