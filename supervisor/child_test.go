package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
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
	n.write("etc/kubelet.yaml", configuration("mode: ignoreTerm"))
	n.options.StopTimeout = 200 * time.Millisecond
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
	n.write("etc/kubelet.yaml", configuration("mode: crash, code: 7, words: out of luck, counter: "+n.path("starts")+", crashTimes: 3"))
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
	for i, least := range []time.Duration{childBackoffFirst, 2 * childBackoffFirst} {
		if waited := record.Exits[i+1].Time.Sub(record.Exits[i].Time); waited < least {
			t.Errorf("start %d came %s after the exit before, not %s", i+2, waited, least)
		}
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

func TestRuntimeDown(t *testing.T) {
	folder := t.TempDir()
	up, down := "unix://"+filepath.Join(folder, "up"), "unix://"+filepath.Join(folder, "down")
	listen(t, "unix", filepath.Join(folder, "up"))
	for name, test := range map[string]struct {
		endpoint, fallback string
		want               bool
	}{
		"it answers":                            {up, up, false},
		"it does not answer":                    {down, down, true},
		"a path without scheme":                 {filepath.Join(folder, "down"), filepath.Join(folder, "down"), true},
		"the fallback would ask another":        {down, up, false},
		"nothing can be said of other schemes":  {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1", false},
		"nothing can be said of what is no URL": {"unix://%zz", "unix://%zz", false},
	} {
		t.Run(name, func(t *testing.T) {
			child := &process{endpoints: config.Endpoints{Runtime: test.endpoint}, runtime: test.fallback}
			if got := (&loop{}).runtimeDown(child); got != test.want {
				t.Errorf("down: %t", got)
			}
		})
	}
}

func TestAWaitThatIsOverIsNoRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "up")
	listen(t, "unix", path)
	if refusesConnections(path, time.Nanosecond) {
		t.Error("a socket that listens is taken for one that refuses")
	}
}

func TestBackoff(t *testing.T) {
	l := &loop{}
	l.kubelets = newLauncher(l)
	const asked = true
	for i, exit := range []struct {
		command string
		asked   bool
		healthy time.Duration
		want    time.Duration
	}{
		{"false", !asked, 0, 250 * time.Millisecond},
		{"false", !asked, time.Second, 500 * time.Millisecond},
		{"true", asked, 0, 0},
		{"false", asked, time.Second, 0},
		{"true", !asked, time.Second, 0},
		{"true", !asked, 0, time.Second}, // a command line that makes it exit at once
		{"false", !asked, 0, 2 * time.Second},
		{"false", !asked, 0, 4 * time.Second},
		{"false", !asked, 0, 8 * time.Second},
		{"false", !asked, 0, 10 * time.Second},
		{"false", !asked, time.Second, 10 * time.Second},
		{"false", !asked, childStableAfter, 250 * time.Millisecond},
		{"false", !asked, 0, 500 * time.Millisecond},
		{"true", asked, childStableAfter, 0},
		{"false", !asked, 0, 250 * time.Millisecond},
	} {
		child := &process{command: exec.Command(exit.command)}
		_ = child.command.Run()
		child.asked.Store(exit.asked)
		child.healthy.sum = exit.healthy
		if got := l.classify(child, child.command.ProcessState, nil, nil).Delay; got != exit.want {
			t.Errorf("exit %d waits %s, want %s", i, got, exit.want)
		}
	}
}

func TestAnExitStatusThatIsNotKnown(t *testing.T) {
	l := &loop{}
	l.kubelets = newLauncher(l)
	child := &process{}
	child.asked.Store(true)
	exited := l.classify(child, nil, errors.New("no child processes"), nil)
	if !exited.Asked || exited.Code != -1 || exited.Words != "its exit status is unavailable: no child processes" {
		t.Errorf("got %+v", exited)
	}
}
