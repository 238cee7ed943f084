//go:build systemd

package systemd

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What make test-systemd gives: the roots by name, and the folder that machines see as /shared. It holds old/ and new/ with the
// packages of two versions, and the kubelets fake and real.
var (
	roots  = strings.Fields(os.Getenv("KUBELET_SUPERVISOR_TEST_ROOTS"))
	shared = os.Getenv("KUBELET_SUPERVISOR_TEST_SHARED")
)

const (
	oldVersion = "v0.1.0"
	newVersion = "v0.2.0"
)

func TestMain(m *testing.M) {
	if len(roots) == 0 || shared == "" || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests boot machines: run make test-systemd, as root")
		os.Exit(1)
	}
	// Ctrl-C switches the machines off, for it closes their standard input.
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(interrupted, func() { os.Exit(1) })
	os.Exit(m.Run())
}

// onEachSystemd runs a test on a machine of each kind; in short mode on one of them, by the test's name, so that each kind has its share.
func onEachSystemd(t *testing.T, test func(t *testing.T, m *machine)) {
	roots := roots
	if testing.Short() {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(t.Name()))
		one := int(hash.Sum32() % uint32(len(roots)))
		roots = roots[one : one+1]
	}
	for _, root := range roots {
		name := strings.Split(filepath.Base(root), "-")[1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, boot(t, root))
		})
	}
}

const pollInterval = 30 * time.Millisecond

var patience = 2 * time.Minute // for what takes a second on an idle machine

// await polls until seen returns nil; its error says what is there instead.
func await(t *testing.T, what string, seen func() error) {
	t.Helper()
	begin := time.Now()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var before error
	for {
		err := seen()
		if err == nil {
			t.Logf("%s: after %.2f s; before: %v", what, time.Since(begin).Seconds(), before)
			return
		}
		before = err
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s; last seen: %v", what, patience, err)
		}
	}
}
