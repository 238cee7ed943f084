//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// A scratch is a cgroup of the kernel that nobody is in, and its limit of processes: the same file in both versions.
type scratch struct {
	t    *testing.T
	name string // as a configuration has it
	file string // below the mount of cgroups
}

func newScratch(t *testing.T) *scratch {
	t.Helper()
	s := &scratch{t: t, name: fmt.Sprintf("/kubelet-supervisor-test-%d", os.Getpid())}
	folder := "pids"
	if _, err := os.Stat(filepath.Join(host.CgroupMount, "cgroup.controllers")); err == nil {
		folder = ""
	}
	s.file = filepath.Join(folder, s.name[1:], "pids.max")
	if err := os.Mkdir(filepath.Dir(s.path()), 0o700); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Dir(s.path())) })
	if _, err := os.Stat(s.path()); err != nil {
		t.Skipf("the cgroup has no limit of processes: %v", err)
	}
	return s
}

func (s *scratch) path() string { return filepath.Join(host.CgroupMount, s.file) }

func (s *scratch) set(value string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(), []byte(value), 0); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scratch) want(value string) {
	s.t.Helper()
	if is, err := os.ReadFile(s.path()); err != nil || strings.TrimSpace(string(is)) != value {
		s.t.Errorf("%s is %s (%v), want %s", s.file, is, err, value)
	}
}

// enforcing is a configuration that limits it.
func (s *scratch) enforcing(pids string) string {
	return fakenode.Configuration("mode: ok") + fmt.Sprintf("systemReserved: {pid: %q}\nsystemReservedCgroup: %s\nenforceNodeAllocatable: [pods, system-reserved]\n", pids, s.name)
}

// recorded is what meta/trial has of it.
func (n *node) recorded() []core.KeptLimit {
	n.t.Helper()
	reader, err := store.Look(n.options.StateDir)
	if err != nil {
		n.t.Fatal(err)
	}
	trial, err := ReadTrial(reader)
	if err != nil {
		n.t.Fatal(err)
	}
	return trial.Limits
}

// What was there before the first start with a limit is recorded before that start, and written back before one without it.
func TestLimitsAreWrittenBack(t *testing.T) {
	s, n := newScratch(t), newNode(t)
	s.set("900")
	n.seed(store.Assigned, "a", s.enforcing("77"))
	r := n.run()
	r.awaitHealthy()
	want := []core.KeptLimit{{Limit: core.Limit{File: s.file}, Before: "900", Wrote: []string{"77"}, BootID: kubelet.BootID()}}
	if got := n.recorded(); !slices.EqualFunc(got, want, func(a, b core.KeptLimit) bool {
		return fmt.Sprint(a.File, a.Before, a.Wrote, a.BootID) == fmt.Sprint(b.File, b.Before, b.Wrote, b.BootID)
	}) {
		t.Errorf("recorded %+v, want %+v", got, want)
	}
	if starts := n.events("start"); starts != "start" {
		t.Errorf("the kubelets: %s", starts)
	}
	s.set("77") // as the kubelet does, which is a fake one here
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	s.want("77") // a stop is no end of a configuration

	n.store(func(s *store.Store) error { return s.SaveSource(store.Assigned, nil) })
	r = n.run()
	r.awaitHealthy()
	s.want("900")
	n.await("an empty record", func() bool { return len(n.recorded()) == 0 })
	if starts := n.events("start"); starts != "start start" {
		t.Errorf("the kubelets: %s", starts)
	}
}

// What ends the supervisor's work takes limits back as well: disable, and the kubelet alone. Twice is as good as once.
func TestWriteBackLimits(t *testing.T) {
	s, n := newScratch(t), newNode(t)
	s.set("900")
	n.seed(store.Assigned, "a", s.enforcing("77"))
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ value, want, says string }{
		{"900", "900", ""},
		{"500", "500", " is 500, which no kubelet has set: it is left as it is"},
		{"77", "900", " is 900, as it was before a kubelet set it"},
		{"900", "900", ""},
	} {
		s.set(row.value)
		said, err := WriteBackLimits(t.Context(), n.options.StateDir)
		if s.want(row.want); err != nil || strings.Join(said, "") != strings.TrimPrefix(s.file+row.says, map[bool]string{true: s.file}[row.says == ""]) {
			t.Errorf("%s: said %q, %v", row.value, said, err)
		}
	}
	s.set("77")
	if err := StandAside(Options{StateDir: n.options.StateDir, Kubelet: n.options.Kubelet, StopTimeout: n.options.StopTimeout, Logger: zap.NewNop()}, "a test", n.options.RunDir); err != nil {
		t.Fatal(err)
	}
	s.want("900")
	if said, err := WriteBackLimits(t.Context(), n.path("none")); err != nil || said != nil {
		t.Errorf("without a state folder: %q, %v", said, err)
	}
}

// A record is no leave to write anything anywhere.
func TestWhatIsNoLimitIsNotWritten(t *testing.T) {
	victim := written(t, t.TempDir(), "pids.max", "77")
	up := strings.Repeat("../", 20)
	for _, k := range []core.KeptLimit{
		{Limit: core.Limit{File: up + victim}, Before: "1"}, {Limit: core.Limit{File: victim}, Before: "1"},
		{Limit: core.Limit{File: "x/cgroup.procs"}, Before: "1"}, {Limit: core.Limit{File: "x/pids.max"}, Before: "root::0:0"}, {Limit: core.Limit{Unit: "x.slice", Property: "MemoryMax"}, Before: "max"},
		{Limit: core.Limit{Unit: "x.service", Property: "MemoryMax"}, Before: "1"}, {Limit: core.Limit{Unit: "x.slice", Property: "StartupCPUWeight"}, Before: "1"},
	} {
		k.Wrote = []string{"77"}
		if err := writeBack(t.Context(), []core.KeptLimit{k}); err == nil {
			t.Errorf("%+v is written", k.Limit)
		}
	}
	wantFiles(t, filepath.Dir(victim), map[string]string{"pids.max": "77"})
	if err := writeBack(t.Context(), []core.KeptLimit{{Limit: core.Limit{File: "kubelet-supervisor-gone/pids.max"}, Before: "1", Wrote: []string{"77"}}}); err != nil {
		t.Errorf("a cgroup that is gone: %v", err)
	}
}

// A kubelet does not wait at the lock where it, or the one that runs, sets other limits: between them they have to be looked at.
func TestNoKubeletWaitsWhereLimitsDiffer(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	whole := map[string]any{"cpuManagerPolicy": "none", "memoryManagerPolicy": "None"}
	l.prover.effectives.keep("runs", kubeletconfig.Identity{}, toldOf(t, whole), false)
	whole["enforceNodeAllocatable"], whole["systemReserved"], whole["systemReservedCgroup"] = []any{"pods", "system-reserved"}, map[string]any{"pid": "77"}, "/x"
	l.prover.effectives.keep("limits", kubeletconfig.Identity{}, toldOf(t, whole), false)
	for _, row := range []struct {
		now, then string
		want      error
	}{{"runs", "limits", errLimits}, {"limits", "runs", errLimits}, {"runs", "none", errStateFiles}} {
		do := core.Park{Version: &core.Version{Content: row.then}, Runs: &core.Version{Content: row.now}}
		if _, err := l.runner.waitingKubelet(t.Context(), do, nil); !errors.Is(err, row.want) {
			t.Errorf("%s, then %s: %v, want %v", row.now, row.then, err, row.want)
		}
	}
}

// No kubelet waits at the lock of one that sets other limits.
func TestLimitsStay(t *testing.T) {
	read := func(document string) kubeletconfig.Effective {
		return kubeletconfig.ReadEffective(nil, written(t, t.TempDir(), "kubelet.yaml", document))
	}
	s := &scratch{name: "/x"}
	none, some, other := read(fakenode.Configuration("mode: ok")), read(s.enforcing("77")), read(s.enforcing("78"))
	for _, row := range []struct {
		now, then kubeletconfig.Effective
		want      bool
	}{{none, none, true}, {some, some, true}, {some, other, false}, {some, none, false}, {none, some, false}} {
		if got := limitsStay(row.now, row.then); got != row.want {
			t.Errorf("%v, %v: %t", row.now, row.then, got)
		}
	}
}
