//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// silentBus is a system bus that takes connections, as the kernel does for a daemon that is frozen, and answers none until it is closed.
func silentBus(t *testing.T) (closed func()) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "bus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+listener.Addr().String())
	return func() { _ = listener.Close() }
}

// Always a kubelet, also where the limit that it is going to set is a property of a unit that nobody answers for.
func TestAStartBesideASilentBus(t *testing.T) {
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"systemReserved: {pid: \"77\"}\nsystemReservedCgroup: /kubelet-supervisor-test.slice\nenforceNodeAllocatable: [pods, system-reserved]\n")
	defer silentBus(t)()
	r := n.run()
	if record := r.awaitHealthy(); record.Runs == nil {
		t.Errorf("recorded %+v", record)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// However many units the record names, nobody waits for the second where the first had no answer.
func TestASilentBusIsAskedOnce(t *testing.T) {
	defer silentBus(t)()
	var recorded []core.KeptLimit
	for i := range 20 {
		limit := core.Limit{Unit: fmt.Sprintf("kubelet-supervisor-test%d.slice", i), Property: "TasksMax"}
		recorded = append(recorded, core.KeptLimit{Limit: limit, Before: "900", Wrote: []string{"77"}})
	}
	begun := time.Now()
	if seen := seeLimits(t.Context(), nil, recorded); len(seen) > 0 {
		t.Errorf("seen %+v", seen)
	}
	if err := writeBack(t.Context(), recorded); err == nil || strings.Count(err.Error(), "no answer") != 1 {
		t.Errorf("written back: %v", err)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

// The kill switch always gives a kubelet.
func TestStandAsideBesideASilentBus(t *testing.T) {
	n := newNode(t)
	limit := core.KeptLimit{Limit: core.Limit{Unit: "kubelet-supervisor-test.slice", Property: "TasksMax"}, Before: "900", Wrote: []string{"77"}, BootID: kubelet.BootID()}
	n.store(func(s *store.Store) error {
		return s.SaveDocument(trialDocument, "Trial", TrialFile{Account: core.Account{Limits: []core.KeptLimit{limit}}})
	})
	defer silentBus(t)()
	done := make(chan error, 1)
	go func() {
		done <- StandAside(Options{StateDir: n.options.StateDir, Kubelet: n.options.Kubelet, StopTimeout: n.options.StopTimeout, Logger: zap.NewNop()}, "a test", n.options.RunDir)
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(fakenode.Patience):
		t.Error("it does not end, and no kubelet is started")
	}
}

// The kubelet alone waits for no disk, whatever it is asked for.
func TestLimitsAreGivenBackWithinABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		released := make(chan struct{})
		begun := time.Now()
		giveLimitsBack(Options{Logger: zap.New(core)}, func(context.Context, string) ([]string, error) {
			<-released
			return nil, nil
		})
		if took := time.Since(begun); took != limitsBackWithin {
			t.Errorf("it took %s", took)
		}
		if said := logs.FilterLevelExact(zapcore.ErrorLevel).All(); len(said) != 1 || !strings.Contains(fmt.Sprint(said[0].ContextMap()), "a kubelet has to be started") {
			t.Errorf("said %+v", said)
		}
		close(released)
	})
}
