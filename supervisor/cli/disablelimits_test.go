//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	machine "github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// limitOf makes a cgroup of the kernel with a limit of processes that a kubelet has set, and the record of what it was before.
func limitOf(t *testing.T, stateDir, before, now string) (path string) {
	t.Helper()
	name := fmt.Sprintf("kubelet-supervisor-test-disable-%d/pids.max", os.Getpid())
	if _, err := os.Stat(filepath.Join(machine.CgroupMount, "cgroup.controllers")); err != nil {
		name = filepath.Join("pids", name)
	}
	path = filepath.Join(machine.CgroupMount, name)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Dir(path)) })
	if err := os.WriteFile(path, []byte(now), 0); err != nil {
		t.Skipf("the cgroup has no limit of processes: %v", err)
	}
	s, err := store.Open(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	kept := core.KeptLimit{Limit: core.Limit{File: name}, Before: before, Wrote: []string{now}, BootID: kubelet.BootID()}
	trial := supervisor.TrialFile{Account: core.Account{Limits: []core.KeptLimit{kept}}}
	if err := errors.Join(s.SaveDocument("trial", "Trial", trial), s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantLimit(t *testing.T, path, want string) {
	t.Helper()
	if is, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(is)) != want {
		t.Errorf("%s is %s (%v), want %s", path, is, err, want)
	}
}

// The kubelet that runs after disable does not know the assigned configuration, so nothing of its limits stays.
func TestDisableWritesLimitsBack(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	path := limitOf(t, h.folder+"/state", "900", "77")
	dry := h.installation
	dry.dryRun = true
	if err := dry.disable(t.Context()); err != nil || !strings.Contains(h.out.String(), "Would write back:") {
		t.Errorf("dry run: %v, %s", err, h.out.String())
	}
	wantLimit(t, path, "77")
	if err := h.disable(t.Context()); err != nil || !strings.Contains(h.out.String(), " is 900, as it was before a kubelet set it\n") {
		t.Errorf("%v, %s", err, h.out.String())
	}
	wantLimit(t, path, "900")

	// Without a drop-in, as after one that was killed, and where a package is removed.
	if err := os.WriteFile(path, []byte("77"), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLimit(t, path, "77") // of what the supervisor runs that the restart has brought
	if err := os.Remove(h.folder + "/run/state.json"); err != nil {
		t.Fatal(err)
	}
	h.out.Reset()
	if err := h.disable(t.Context()); err != nil || !strings.HasPrefix(h.out.String(), "Nothing to undo:") {
		t.Errorf("%v, %s", err, h.out.String())
	}
	wantLimit(t, path, "900")
}

// A unit of our own ends with its kubelet, and so do its limits.
func TestDisableOfOurOwnUnitWritesLimitsBack(t *testing.T) {
	h := newHost(t)
	own := written(t, filepath.Join(h.folder, "etc", ownUnit), ourMark+"\n")
	written(t, filepath.Join(h.folder, "units", ownUnit), "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nFragmentPath="+own+"\n")
	path := limitOf(t, h.folder+"/state", "900", "77")
	if err := h.disable(t.Context()); err != nil || !strings.Contains(h.changes(), "disable --now "+ownUnit) {
		t.Errorf("%v; did %s", err, h.changes())
	}
	wantLimit(t, path, "900")
}

// A record that cannot be read keeps no kubelet from its own unit.
func TestDisableWithARecordThatCannotBeRead(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	written(t, h.folder+"/state/meta/trial", "spoilt")
	if err := h.disable(t.Context()); err != nil || h.has(h.dropInPath()) || !strings.Contains(h.out.String(), "Limits that a kubelet has set on the host stay: ") {
		t.Errorf("%v, %s", err, h.out.String())
	}
}
