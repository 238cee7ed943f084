//go:build linux && crashpoints

package store

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Only test binaries have this file. They write the points of a process to the file CRASH_POINTS, and at CRASH_AT, such as "2 before Save"
// for the second time that it is there, the process kills itself as kill -9 would.
var crash = struct {
	sync.Mutex
	passed map[string]int // how often, by the name of a point
}{passed: map[string]int{}}

// CrashPoint is a point in the life of the process at which it may be killed: before the action is done.
func CrashPoint(action, what string) {
	crash.Lock()
	defer crash.Unlock()
	point := action + " " + what
	crash.passed[point]++
	if path := os.Getenv("CRASH_POINTS"); path != "" {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintln(file, point)
		_ = file.Close()
	}
	if os.Getenv("CRASH_AT") == fmt.Sprintf("%d %s", crash.passed[point], point) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // no code does anything more
	}
}

// crashPoint counts what a process that is killed would leave otherwise: a removal only of what is there.
func crashPoint(action, path string) {
	if _, err := os.Lstat(path); action == "remove" && err != nil {
		return
	}
	CrashPoint("store: "+action, path)
}
