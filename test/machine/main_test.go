//go:build machine

package machine

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// What make test-machine gives: a kernel's folder, the image of a node's disk, and the folder that shared.sh filled.
var (
	kernel = os.Getenv("KUBELET_SUPERVISOR_TEST_KERNEL")
	root   = os.Getenv("KUBELET_SUPERVISOR_TEST_ROOT")
	shared = os.Getenv("KUBELET_SUPERVISOR_TEST_SHARED")
)

func TestMain(m *testing.M) {
	if kernel == "" || root == "" || shared == "" || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests boot virtual machines: run make test-machine, as root")
		os.Exit(1)
	}
	// Ctrl-C switches the machines off: they are in a process group of their own, and end with their disks' and agents' sockets.
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(interrupted, func() {
		running.killAll()
		_ = takeDown()
		os.Exit(1)
	})
	code := m.Run()
	if err := takeDown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	pollInterval = 100 * time.Millisecond
	patience     = 20 * time.Minute // a processor that is emulated, on a machine that is busy: a reboot took more than four minutes at a load of eleven
)

// await polls until seen returns nil; its error says what is there instead.
func await(t *testing.T, what string, seen func() error) {
	t.Helper()
	begin := time.Now()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			t.Logf("%s: after %.1f s", what, time.Since(begin).Seconds())
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s; last seen: %v", what, patience, err)
		}
	}
}
