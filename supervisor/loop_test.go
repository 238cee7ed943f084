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
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestLocalIsTheAdministratorsCommandLine(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := n.events(); got != "start term exit" {
		t.Errorf("the kubelet saw %q", got)
	}
	if diff := cmp.Diff(n.options.Arguments, n.entries("start")[0].Argv); diff != "" {
		t.Errorf("its command line (-want +got):\n%s", diff)
	}
	if log := r.log.String(); !strings.Contains(log, `"Starting kubelet"`) {
		t.Errorf("its log is missing in:\n%s", log)
	}
}

func TestStartFromACheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	source := n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"staticPodPath: pods\nfutureField: 1\n")
	r := n.run()
	record := r.awaitHealthy()
	if got := n.events(); got != "preflight answer start" {
		t.Errorf("the kubelet saw %q", got)
	}
	effective := filepath.Join(n.options.RunDir, "effective", "kubelet.yaml")
	if diff := cmp.Diff(append(slices.Clone(n.options.Arguments), "--config="+effective), n.entries("start")[0].Argv); diff != "" {
		t.Errorf("its command line (-want +got):\n%s", diff)
	}
	data, err := os.ReadFile(effective)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(n.options.StateDir, "checkpoints", string(source.UID), source.ResourceVersion)
	for _, want := range []string{fmt.Sprintf(`"staticPodPath": %q`, filepath.Join(folder, "pods")), `"futureField": 1`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in the effective file:\n%s", want, data)
		}
	}
	if record.Runs == nil || record.Runs.Source != source || record.Condition.Reason != "InTrial" || record.Trial == nil {
		t.Errorf("recorded %+v", record)
	}
	if !strings.Contains(record.Condition.Message, "futureField") {
		t.Errorf("no warning of the field that is not known: %s", record.Condition.Message)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}

	again := n.run()
	again.awaitHealthy()
	if got := n.events("preflight", "start"); got != "preflight start start" {
		t.Errorf("the verdict was not kept: the kubelets saw %q", got)
	}
}

func TestPromotion(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.TrialPeriod = 200 * time.Millisecond
	source := n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	r := n.run()
	r.await("the end of the trial", func(record Record) bool { return record.Condition.Reason == "Active" && record.Trial == nil })
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	n.store(func(s *store.Store) error {
		good, err := s.LoadSource(store.LastKnownGood)
		if err == nil && (good == nil || *good != source) {
			return fmt.Errorf("last known good is %v", good)
		}
		return err
	})
}

func TestARefusedConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "bad", fakenode.Configuration("mode: refuse, words: maxPods must not be -1"))
	r := n.run()
	record := r.await("the verdict", func(record Record) bool { return record.Healthy && record.Condition.Reason == "Refused" })
	if record.Runs != nil || record.Config.Error != core.ValidateError || !strings.Contains(record.Condition.Message, "maxPods must not be -1") {
		t.Errorf("recorded %+v", record)
	}
	if got := n.events("start"); got != "start" {
		t.Errorf("the kubelets saw %q", got)
	}
}

func TestADeadlyConfigurationIsRolledBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "deadly", fakenode.Configuration("mode: crash, after: 50ms, healthyFirst: true, words: no such cgroup"))
	begun := time.Now()
	r := n.run()
	record := r.await("the rollback", func(record Record) bool { return record.Healthy && record.Condition.Reason == "RolledBack" })
	if record.Runs != nil || record.Config.Error != core.RunError {
		t.Errorf("recorded %+v", record)
	}
	for _, want := range []string{"using last-known-good (default)", "exited 3 times in its trial", "exit code 1", "no such cgroup"} {
		if !strings.Contains(record.Condition.Message, want) {
			t.Errorf("%q is not in the message %q", want, record.Condition.Message)
		}
	}
	t.Logf("rolled back %s after the start", time.Since(begun).Round(time.Millisecond))
	record = r.await("the verdict", func(record Record) bool { return record.Condition.Reason == "Rejected" })
	if len(record.Rejected) != 1 || len(record.Exits) != 3 {
		t.Errorf("recorded %+v", record)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := n.events("preflight", "start"); got != "preflight start start start start" {
		t.Errorf("the kubelets saw %q", got)
	}

	again := n.run()
	record = again.awaitHealthy()
	if record.Runs != nil || record.Condition.Reason != "Rejected" {
		t.Errorf("the verdict was not kept: %+v", record)
	}
	if got := n.entries("start"); len(got) != 5 || got[4].Config != n.local {
		t.Errorf("the kubelets were started with %+v", got)
	}
}

func TestAConfigurationThatHangsIsRolledBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.StartTimeout = 3 * time.Second
	n.seed(store.Assigned, "hangs", fakenode.Configuration("mode: hang"))
	r := n.run()
	record := r.await("the rollback", func(record Record) bool { return record.Healthy && record.Condition.Reason == "RolledBack" })
	if !strings.Contains(record.Condition.Message, "not healthy within 3s of its start") {
		t.Errorf("recorded %+v", record.Condition)
	}
	if len(record.Exits) != 1 || !record.Exits[0].Asked {
		t.Errorf("exits %+v", record.Exits)
	}
}

func TestASecondSupervisor(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	first := n.run()
	first.awaitHealthy()
	want := fmt.Sprintf("pid %d", os.Getpid())
	if err := n.run().wait(); !errors.Is(err, ErrUsage) || !errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if record := first.awaitHealthy(); record.Supervisor.PID != os.Getpid() || n.events("start") != "start" {
		t.Errorf("the first was disturbed: %+v", record)
	}
}

func TestAStateFolderThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, n *node){
		"a file is in its place": func(t *testing.T, n *node) { n.write("state", "") },
		"a link is in its place": func(t *testing.T, n *node) {
			if err := os.Symlink(n.folder, n.options.StateDir); err != nil {
				t.Fatal(err)
			}
		},
		"no folder can be made": func(t *testing.T, n *node) {
			n.write("file", "")
			n.options.StateDir = n.path("file/state")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			spoil(t, n)
			record := n.run().awaitHealthy()
			if record.Runs != nil || record.Condition.Reason != "InternalError" || !strings.Contains(record.Condition.Message, "state folder") {
				t.Errorf("recorded %+v", record)
			}
		})
	}
}

func TestAStateFolderThatCannotBeWritten(t *testing.T) {
	for name, test := range map[string]struct {
		promoted bool // before it became so
		runs     string
	}{
		"last known good runs":   {true, "a"},
		"nothing new is applied": {false, "local"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.options.TrialPeriod = time.Millisecond
			source := n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
			if test.promoted {
				before := n.run()
				before.await("the promotion", func(record Record) bool { return record.Condition.Reason == "Active" })
				if err := before.end(); err != nil {
					t.Fatal(err)
				}
			}
			makeReadOnly(t, n.options.StateDir)
			record := n.run().awaitHealthy()
			runs := "local"
			if record.Runs != nil && record.Runs.Source == source {
				runs = "a"
			}
			if runs != test.runs {
				t.Errorf("%s runs: %+v", runs, record)
			}
		})
	}
}

// makeReadOnly mounts the folder over itself, for root may write wherever modes forbid it.
func makeReadOnly(t *testing.T, folder string) {
	t.Helper()
	if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting needs more rights: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

func TestARunFolderThatCannotBeUsed(t *testing.T) {
	n := newNode(t)
	n.write("run", "")
	if err := n.run().wait(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--run-dir") {
		t.Errorf("got %v", err)
	}
}
