//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// The kubelet is executed without a script in between, to see what it really gets.
func TestTheChildGetsWhatTheSupervisorGot(t *testing.T) {
	n := newNode(t)
	n.options.Kubelet = fakeKubelet
	for name, value := range map[string]string{
		"FAKE_KUBELET_RECORD": n.path("record"), "FAKE_KUBELET_MARKER": "kept as it is", "NOTIFY_SOCKET": "/run/systemd/notify",
		"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1",
	} {
		t.Setenv(name, value)
	}
	r := n.run()
	r.awaitHealthy()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	limit, err := exec.Command("/bin/sh", "-c", "ulimit -S -n").Output() // a Go program raises its own limit, but not its children's
	if err != nil {
		t.Fatal(err)
	}
	want := entry{Event: "start", PPID: os.Getpid(), Argv: n.options.Arguments, Cwd: folder, Config: n.local, OpenFiles: strings.TrimSpace(string(limit)),
		Environment: map[string]string{"FAKE_KUBELET_MARKER": "kept as it is", "NOTIFY_SOCKET": filepath.Join(n.options.RunDir, "notify")}}
	got := n.entries("start")[0]
	got.PID = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the kubelet got (-want +got):\n%s", diff)
	}
}

func TestAKubeletThatIgnoresTermIsKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ignoreTerm"))
	n.options.StopTimeout = 2 * time.Second // long enough for it to note the signal, on a busy machine too
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := n.events(); got != "start term" { // and no exit: it had no chance
		t.Errorf("the kubelet saw %q", got)
	}
	record, _, err := ReadRecord(n.options.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	if exit := record.Exits[0]; !exit.Asked || exit.Words != "killed by SIGKILL" {
		t.Errorf("recorded %+v", exit)
	}
}

func TestACrashingKubeletIsRestartedWithBackoff(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: crash, code: 7, words: out of luck, counter: "+n.path("starts")+", crashTimes: 3"))
	r := n.run()
	record := r.awaitHealthy()
	if got := n.events(); got != "start exit start exit start exit start" {
		t.Errorf("the kubelet saw %q", got)
	}
	if len(record.Exits) != 3 {
		t.Fatalf("exits %+v", record.Exits)
	}
	for _, exit := range record.Exits {
		if exit.Asked || exit.Words != "exit code 7: out of luck" || exit.Ran != "the local configuration" {
			t.Errorf("recorded %+v", exit)
		}
	}
	for i, least := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond} {
		if waited := record.Exits[i+1].Time.Sub(record.Exits[i].Time); waited < least {
			t.Errorf("start %d came %s after the exit before, not %s", i+2, waited, least)
		}
	}
}

// Behind a script that does not hand on its arguments runs local: what was assigned is to blame for nothing, whatever port it names (rule 25).
func TestADeafScriptBlamesNothing(t *testing.T) {
	for name, other := range map[string]bool{"the same port": false, "another port": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			port := func(number int) string { return fmt.Sprintf("healthzPort: %d\n", number) }
			n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ok")+port(n.port))
			n.options.Arguments = slices.DeleteFunc(n.options.Arguments, func(word string) bool { return word == "--healthz-port" || word == strconv.Itoa(n.port) })
			n.write("bin/kubelet", fmt.Sprintf("#!/bin/sh\nFAKE_KUBELET_RECORD=%s exec %s %s\n", n.path("record"), fakeKubelet, strings.Join(n.options.Arguments, " ")))
			n.options.Preflight, n.options.StartTimeout = kubelet.PreflightNever, 3*time.Second
			assigned := port(n.port)
			if other {
				assigned = port(fakenode.FreePort(t))
			}
			n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+assigned)
			r := n.run()
			reasons := map[string]bool{}
			begun := time.Now()
			r.await("the end of the start timeout", func(record Record) bool {
				reasons[record.Condition.Reason] = true
				return time.Since(begun) > 2*n.options.StartTimeout
			})
			if !reasons["NotInUse"] || reasons["RolledBack"] || reasons["Rejected"] {
				t.Errorf("said: %v", slices.Sorted(maps.Keys(reasons)))
			}
		})
	}
}

func TestAnUnaskedExitWithCode0(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	first := r.awaitHealthy().Child.PID
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	record := r.awaitAnother(first)
	if exit := record.Exits[0]; exit.Asked || exit.Words != "exit code 0" {
		t.Errorf("recorded %+v", exit)
	}
}

func TestAKubeletKilledByASignal(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	first := r.awaitHealthy().Child.PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	record := r.awaitAnother(first)
	if exit := record.Exits[0]; exit.Asked || exit.Words != "killed by SIGKILL" {
		t.Errorf("recorded %+v", exit)
	}
}

func TestAKubeletThatVanishesIsAwaited(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	first := r.awaitHealthy().Child.PID
	if err := errors.Join(os.Remove(n.options.Kubelet), syscall.Kill(first, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	gone := r.await("a failed start", func(record Record) bool { return strings.Contains(record.Condition.Message, "no such file") })
	if gone.Condition.Reason != "EnvironmentFailing" {
		t.Errorf("condition %+v", gone.Condition)
	}
	n.installKubelet()
	if record := r.awaitHealthy(); record.Condition.Reason != "Local" {
		t.Errorf("condition %+v", record.Condition)
	}
}

func (r *running) awaitAnother(pid int) Record {
	r.n.t.Helper()
	return r.await("another kubelet", func(record Record) bool { return record.Healthy && record.Child != nil && record.Child.PID != pid })
}
