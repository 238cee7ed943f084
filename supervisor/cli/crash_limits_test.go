//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	machine "github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

const limitBefore = "900"

// makeCgroup gives the node a cgroup of its system, with a limit of processes.
func (l *life) makeCgroup() {
	l.t.Helper()
	l.api.cgroup = "/" + fmt.Sprintf("kubelet-supervisor-test-crash-%d-%d", os.Getpid(), lives.Add(1))
	if err := os.Mkdir(filepath.Dir(l.limitFile()), 0o700); err != nil {
		l.t.Skipf("no cgroup can be made: %v", err)
	}
	l.t.Cleanup(func() { _ = os.Remove(filepath.Dir(l.limitFile())) })
	if err := os.WriteFile(l.limitFile(), []byte(limitBefore), 0); err != nil {
		l.t.Skipf("the cgroup has no limit of processes: %v", err)
	}
}

func (l *life) limitFile() string {
	if _, err := os.Stat(filepath.Join(machine.CgroupMount, "cgroup.controllers")); err == nil {
		return filepath.Join(machine.CgroupMount, l.api.cgroup, "pids.max")
	}
	return filepath.Join(machine.CgroupMount, "pids", l.api.cgroup, "pids.max")
}

// limitedTo are the fields that limit it.
func (s *apiServer) limitedTo(pids string) string {
	return fmt.Sprintf("systemReserved: {pid: %q}\nsystemReservedCgroup: %s\nenforceNodeAllocatable: [pods, system-reserved]\n", pids, s.cgroup)
}

// awaitLimit waits until the limit is that of what runs, which comes a moment after its health. It gives what is to be recorded then.
func (l *life) awaitLimit() (wrote []string) {
	l.t.Helper()
	if !l.limits {
		return nil
	}
	want := limitBefore
	if l.after[0] != "Local assigned=local active=local lkg=local" {
		want, wrote = l.baseLimits, []string{l.baseLimits}
	}
	fakenode.Await(l.t, "the limit "+want, func() bool {
		is, err := os.ReadFile(l.limitFile())
		return err == nil && string(is) == want+"\n"
	})
	return wrote
}

// checkLimits wants a record of a limit that is not the one of before, and no other.
func (l *life) checkLimits(wrote []string) {
	l.t.Helper()
	var d core.Durable
	l.store(func(s *store.Store) error { return s.LoadDocument("trial", "Trial", &d) })
	if len(d.Limits) != len(wrote) || len(wrote) > 0 && (d.Limits[0].Before != limitBefore || !slices.Contains(d.Limits[0].Wrote, wrote[0])) {
		l.t.Errorf("recorded is %q, want what was before %q", d.Limits, wrote)
	}
}
