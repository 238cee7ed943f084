//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// parkingLot is a launcher whose kubelets hold a lock.
type parkingLot struct {
	*Launcher
	t *testing.T
}

func newParkingLot(t *testing.T) *parkingLot {
	t.Helper()
	folder, err := os.MkdirTemp("", "park-") // t.TempDir is too long for the notify socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	output, err := os.Create(filepath.Join(folder, "output"))
	if err != nil {
		t.Fatal(err)
	}
	l := NewLauncher(Settings{Path: fakeKubelet, RunDir: folder, Output: output, Logger: zap.NewNop(), LockFile: filepath.Join(folder, "kubelet.lock"), StartTimeout: time.Minute,
		Arguments: []string{fmt.Sprintf("--healthz-port=%d", fakenode.FreePort(t))}})
	t.Cleanup(func() { l.Close(); output.Close() })
	return &parkingLot{Launcher: l, t: t}
}

func (p *parkingLot) spec(name, behaviour string, lock bool) Spec {
	path := filepath.Join(p.RunDir, name)
	write(p.t, path, fake(behaviour))
	return Spec{File: path, Lock: lock}
}

// attended is a child whose end is awaited, at the latest at the end of the test.
func (p *parkingLot) attended(child *Child) (over chan struct{}) {
	p.t.Helper()
	over = make(chan struct{})
	go func() {
		defer close(over)
		child.Attend(context.Background(), func(Event) {})
	}()
	p.t.Cleanup(func() { child.Kill(); <-over })
	return over
}

func (p *parkingLot) started(behaviour string, lock bool) *Child {
	p.t.Helper()
	child, err := p.Start(p.spec("first.yaml", behaviour, lock))
	if err != nil {
		p.t.Fatal(err)
	}
	p.attended(child)
	if lock {
		fakenode.Await(p.t, "the lock", func() bool { _, holds := lockOf(child.Process().PID, "kubelet.lock"); return holds })
	}
	return child
}

func (p *parkingLot) parked(running *Child, behaviour string) *Child {
	p.t.Helper()
	child, err := p.Park(p.t.Context(), p.spec("next.yaml", behaviour, true), running)
	if err != nil {
		p.t.Fatal(err)
	}
	return child
}

func TestAParkedKubeletIsLetThroughByTheEndOfTheOtherOne(t *testing.T) {
	p := newParkingLot(t)
	first := p.started("mode: ok", true)
	next := p.parked(first, "mode: ok")
	fakenode.Await(t, "it waits", func() bool { // the kernel's table may leave a lock out while others come and go
		held, _ := lockOf(first.Process().PID, "kubelet.lock")
		return held.hasWaiter(next.Process().PID)
	})
	if p.notify.notes(next.Process().PID).Ready {
		t.Error("it is ready, and waits")
	}
	next.logFrom++ // both have written nothing yet
	if began := p.output.began.Load(); began != first.logFrom {
		t.Errorf("the last words are those from %d on, want the part of the one that runs, from %d", began, first.logFrom)
	}
	p.notify.hear(next.Process().PID, "WATCHDOG=1\nWATCHDOG=1") // from 1.35 on a kubelet pings before it does anything else, and not while it waits
	first.Stop(time.Minute)
	if !next.Passed() {
		t.Fatal("it did not go past the lock")
	}
	if began := p.output.began.Load(); began != next.logFrom {
		t.Errorf("the last words are those from %d on, want its own, from %d", began, next.logFrom)
	}
	if pings := p.notify.notes(next.Process().PID).Pings; pings != 0 {
		t.Errorf("%d pings of before its start count, so that it would soon be taken for hung", pings)
	}
	p.attended(next)
	fakenode.Await(t, "READY=1", func() bool { return p.notify.notes(next.Process().PID).Ready })
	if !next.Locked() || len(p.notify.kubelets) != 1 {
		t.Errorf("locked %t; heard are %d", next.Locked(), len(p.notify.kubelets))
	}
}

func TestWhatIsNotParked(t *testing.T) {
	for name, test := range map[string]struct {
		lock            bool
		behaviour, want string
		before          func(p *parkingLot, running *Child)
	}{
		"the one that runs has no lock": {behaviour: "mode: ok", want: "does not hold the lock file"},
		"the lock file was removed": {lock: true, behaviour: "mode: ok", want: "does not hold the lock file",
			before: func(p *parkingLot, _ *Child) { _ = os.Remove(p.LockFile) }},
		"another lock file took its place": {lock: true, behaviour: "mode: ok", want: "does not hold the lock file",
			before: func(p *parkingLot, _ *Child) { _ = os.Remove(p.LockFile); write(p.t, p.LockFile, "") }},
		"the disk of the lock file hangs": {lock: true, behaviour: "mode: ok", want: "its disk does not answer",
			before: func(p *parkingLot, _ *Child) { p.lock.waits.Store(true) }},
		"it cannot be started": {lock: true, behaviour: "mode: ok", want: "starting the kubelet: ",
			before: func(p *parkingLot, _ *Child) { p.Path += "-absent" }},
		"it refuses its configuration": {lock: true, behaviour: "mode: refuse, words: no", want: ErrEndedBeforeLock.Error()},
		"it does not come to the lock": {lock: true, behaviour: "mode: slowToLock, after: 1h", want: "did not come to its lock"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParkingLot(t)
			running := p.started("mode: ok", test.lock)
			if test.before != nil {
				test.before(p, running)
			}
			child, err := p.Park(t.Context(), p.spec("next.yaml", test.behaviour, true), running)
			if child != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if !running.Process().Alive() {
				t.Error("the one that runs has ended")
			}
			if leftover, _ := os.ReadFile("/proc/locks"); strings.Contains(string(leftover), "-> FLOCK  ADVISORY  WRITE "+fmt.Sprint(os.Getpid())) {
				t.Errorf("we wait ourselves: %s", leftover)
			}
		})
	}
}

// The file is another one between our look and the kubelet's: it is seen past a lock beside the one that runs, and killed.
func TestOneThatGoesPastItsLockBesideAnotherIsKilled(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	t.Setenv("FAKE_KUBELET_RECORD", record)
	p := newParkingLot(t)
	running := p.started("mode: ok", true)
	failed := make(chan error)
	go func() {
		child, err := p.Park(t.Context(), p.spec("next.yaml", "mode: slowToLock, after: 500ms", true), running)
		if child != nil {
			child.Discard()
		}
		failed <- err
	}()
	fakenode.Await(t, "the next one, which is slow to its lock", func() bool {
		events, _ := os.ReadFile(record)
		return strings.Count(string(events), `"event":"wait"`) == 2
	})
	_ = os.Remove(p.LockFile)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "went past its lock while another one runs") {
		t.Errorf("got %v", err)
	}
}

func TestAParkedKubeletThatIsKilledDidNotStart(t *testing.T) {
	p := newParkingLot(t)
	first := p.started("mode: ok", true)
	next := p.parked(first, "mode: ok")
	_ = syscall.Kill(next.Process().PID, syscall.SIGKILL)
	<-next.waits
	first.Stop(time.Minute)
	if next.Passed() {
		t.Error("it is taken for one that went past the lock")
	}
	if !next.collected || p.notify.notes(next.Process().PID).PID != 0 {
		t.Error("something is left of it")
	}
}

func TestDiscard(t *testing.T) {
	p := newParkingLot(t)
	first := p.started("mode: ok", true)
	next := p.parked(first, "mode: ok")
	next.Discard()
	if next.Process().Alive() || !first.Process().Alive() {
		t.Error("what waited is to end, and what runs is not")
	}
	if !next.collected || p.notify.notes(next.Process().PID).PID != 0 {
		t.Error("something is left of it")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := p.Park(ctx, p.spec("next.yaml", "mode: ok", true), first); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop: %v", err)
	}
}

// One that is past its lock has gone on beside the one that runs, or was let through by its end.
func TestAwaitLockPastTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.lock")
	c := childOf(t, NewLauncher(Settings{LockFile: path}), nil, "/bin/sh", "-c", "exec 9>"+path+"; flock 9; exec sleep 1000")
	c.waits = make(chan struct{})
	fakenode.Await(t, "its lock", func() bool { _, holds := lockOf(c.command.Process.Pid, "kubelet.lock"); return holds })
	if err := c.awaitLock(t.Context(), heldLock{}, Process{}); err != nil {
		t.Errorf("the other one has ended: %v", err)
	}
	if err := c.awaitLock(t.Context(), heldLock{}, ProcessOf(os.Getpid())); err == nil || !strings.Contains(err.Error(), "went past its lock") {
		t.Errorf("the other one runs: %v", err)
	}
}

// A lock that somebody holds whom we do not know keeps no kubelet from being started.
func TestAKubeletIsStartedWithoutALockThatIsHeld(t *testing.T) {
	p := newParkingLot(t)
	stranger, err := os.Create(p.LockFile)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := syscall.Flock(int(stranger.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if child := p.started("mode: ok", false); child.Locked() {
		t.Error("locked")
	}
	child, err := p.Start(p.spec("second.yaml", "mode: ok", true))
	if err != nil {
		t.Fatal(err)
	}
	p.attended(child)
	if child.Locked() {
		t.Error("it waits for a stranger")
	}
}

func TestLockable(t *testing.T) {
	script := written(t, "kubelet", "#!/bin/sh\n")
	for name, test := range map[string]struct {
		l    Settings
		want bool
	}{
		"a kubelet":                  {Settings{Path: fakeKubelet, LockFile: filepath.Join(t.TempDir(), "lock")}, true},
		"no lock file":               {Settings{Path: fakeKubelet}, false},
		"no executable":              {Settings{Path: fakeKubelet + ".absent", LockFile: filepath.Join(t.TempDir(), "lock")}, false},
		"a script":                   {Settings{Path: script, LockFile: filepath.Join(t.TempDir(), "lock")}, false},
		"a folder that is not there": {Settings{Path: fakeKubelet, LockFile: filepath.Join(t.TempDir(), "absent", "lock")}, false},
		"a folder in its place":      {Settings{Path: fakeKubelet, LockFile: t.TempDir()}, false},
	} {
		if got := NewLauncher(test.l).lockable(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A look at a lock file whose disk hangs ends without an answer, and no other one waits for that disk meanwhile.
func TestALockFileWhoseDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looker lockLooker
		goesOn := make(chan struct{})
		begin := time.Now()
		if looker.look(func() bool { <-goesOn; return true }) || time.Since(begin) != time.Second {
			t.Errorf("an answer after %s", time.Since(begin))
		}
		if looker.look(func() bool { t.Error("another thread hangs"); return true }) || time.Since(begin) != time.Second {
			t.Errorf("an answer of the second after %s", time.Since(begin))
		}
		close(goesOn)
		synctest.Wait()
		if !looker.look(func() bool { return true }) {
			t.Error("no answer after the disk has gone on")
		}
	})
}

// One that waits is killed before the one that it waits for is asked to end.
func TestALeftOverThatWaitsIsEndedFirst(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	t.Setenv("FAKE_KUBELET_RECORD", record)
	p := newParkingLot(t)
	first := p.started("mode: ok, stopAfter: 100ms", true)
	next := p.parked(first, "mode: ok")
	waited, err := p.StopLeftOvers(nil, time.Minute)
	if err != nil || !waited {
		t.Errorf("waited %t, %v", waited, err)
	}
	next.Discard()
	if first.Process().Alive() || next.Process().Alive() {
		t.Error("one is left")
	}
	events, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if starts := strings.Count(string(events), `"event":"start"`); starts != 1 {
		t.Errorf("%d kubelets were past the lock", starts)
	}
	if waited, err := p.StopLeftOvers(nil, time.Minute); err != nil || waited {
		t.Errorf("with none left: waited %t, %v", waited, err)
	}
}

// A host's policy that keeps kubelets from the file costs one start, and not the node its kubelet.
func TestAKubeletThatMayNotHaveTheLockFile(t *testing.T) {
	for _, test := range []struct {
		log              string
		asked            bool // to end
		lockable, denied bool
	}{
		{`E1122 11:00:00.000000       1 run.go:72] "command failed" err="failed to run Kubelet: no such cgroup"`, false, true, false},
		{`E1122 11:00:00.000000       1 run.go:72] "command failed" err="failed to run Kubelet: unable to acquire file lock on \"/lock\": permission denied"`, false, false, true},
		{"", false, false, false},
		{"", true, true, false},
	} {
		l := NewLauncher(Settings{Path: fakeKubelet, LockFile: filepath.Join(t.TempDir(), "lock")})
		child := &Child{launcher: l, locked: true, command: exec.Command("false")}
		_ = child.command.Run()
		child.asked.Store(test.asked)
		exited := child.exited(child.command.ProcessState, nil, []byte(test.log))
		if lockable := l.lockable(); lockable != test.lockable || exited.LockDenied != test.denied {
			t.Errorf("lockable %t, denied %t after %q", lockable, exited.LockDenied, test.log)
		}
	}
}
