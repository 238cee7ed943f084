//go:build crashpoints

package store

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Only test binaries have this file. They count the points of a process, write them to the file CRASH_POINTS, and at CRASH_AT, a number
// or a point by its words, the process kills itself as kill -9 would.
var crash struct {
	turn  sync.Mutex
	count int
}

// CrashPoint is a point in the life of the process at which it may be killed: before the action is done.
func CrashPoint(action, what string) {
	crash.turn.Lock()
	defer crash.turn.Unlock()
	crash.count++
	if path := os.Getenv("CRASH_POINTS"); path != "" {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(file, "%s %s\n", action, what)
		_ = file.Close()
	}
	if at := os.Getenv("CRASH_AT"); at == strconv.Itoa(crash.count) || at == action+" "+what {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing more is done, by nobody
	}
}

// crashPoint counts what a process that is killed would leave otherwise: a removal only of what is there.
func crashPoint(action, path string) {
	if _, err := os.Lstat(path); action == "remove" && err != nil {
		return
	}
	CrashPoint("store: "+action, path)
}
