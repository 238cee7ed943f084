//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// From one dynamic configuration to another a kubelet waits at the lock of the one that runs. In these tests that takes long: either the
// next one is slow on its way to the lock, or the running one is slow to end. Whatever happens meanwhile, there is one kubelet past the
// lock, and in the end none is left behind.

const (
	slowEnd  = "mode: ok, stopAfter: 2s"
	slowLock = "mode: slowToLock, after: 1500ms"
)

// waitingLife is a life in the middle of a change from base to next.
type waitingLife struct {
	*life
	t                *testing.T
	p                *supervisorProcess
	running, waiting int // pids
}

func TestWhatHappensWhileAKubeletWaits(t *testing.T) {
	const next, base = "InTrial assigned=next@1 active=next@1 lkg=base@1", "Active assigned=base@1 active=base@1 lkg=base@1"
	kill := func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
	for name, row := range map[string]struct {
		base, next string // behaviours
		do         func(l *waitingLife)
		after      string         // what the Node shows in the end; empty: the supervisor ends
		starts     map[string]int // past the lock, at most
		waits      bool           // the one that waits is not to go past the lock
	}{
		"nothing": {base: slowEnd, do: func(*waitingLife) {}, after: next, starts: map[string]int{"base": 1, "next": 1}},
		"the running one is killed": {base: slowEnd, do: func(l *waitingLife) { kill(l.running) }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"the running one is killed, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { kill(l.running) }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"the waiting one is killed": {base: slowEnd, do: func(l *waitingLife) { kill(l.waiting) }, after: next, waits: true,
			starts: map[string]int{"base": 1, "next": 1}},
		"the next one is killed before its lock": {next: slowLock, do: func(l *waitingLife) { kill(l.waiting) }, after: next, waits: true,
			starts: map[string]int{"base": 1, "next": 1}},
		"the supervisor is killed": {base: slowEnd, do: func(l *waitingLife) { l.killSupervisor() }, after: next,
			starts: map[string]int{"base": 1, "next": 2}},
		"the supervisor is killed, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.killSupervisor() }, after: next, waits: true,
			starts: map[string]int{"base": 1, "next": 1}},
		"the supervisor and the running one are killed": {base: slowEnd, do: func(l *waitingLife) { kill(l.running); l.killSupervisor() }, after: next,
			starts: map[string]int{"base": 1, "next": 2}},
		"the lock file is removed": {base: slowEnd, do: func(l *waitingLife) { l.remove("state/kubelet.lock") }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"the lock file is removed before the next one comes to it": {next: slowLock, do: func(l *waitingLife) { l.remove("state/kubelet.lock") }, after: next,
			starts: map[string]int{"base": 1, "next": 1}, waits: true},
		"STATE_DIR is removed": {base: slowEnd, do: func(l *waitingLife) { l.remove("state") }, after: "", starts: map[string]int{"base": 1, "next": 1}},
		"RUN_DIR is removed":   {base: slowEnd, do: func(l *waitingLife) { l.remove("run") }, after: next, starts: map[string]int{"base": 1, "next": 1}},
		"a newer assignment, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) {
			l.api.put("newer", fakenode.Configuration("mode: ok, words: newer"))
			l.api.assign("newer")
		}, after: "InTrial assigned=newer@1 active=newer@1 lkg=base@1", starts: map[string]int{"base": 1, "newer": 1}, waits: true},
		"a newer assignment": {base: slowEnd, do: func(l *waitingLife) {
			l.api.put("newer", fakenode.Configuration("mode: ok, words: newer"))
			l.api.assign("newer")
		}, after: "InTrial assigned=newer@1 active=newer@1 lkg=base@1", starts: map[string]int{"base": 1, "next": 1, "newer": 1}},
		"back to what runs": {next: slowLock, do: func(l *waitingLife) { l.api.assign("base") }, after: base, starts: map[string]int{"base": 1}, waits: true},
		"a removal, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.api.assign("") },
			after: "Local assigned=local active=local lkg=local", starts: map[string]int{"base": 1, "local": 1}, waits: true},
		"a removal": {base: slowEnd, do: func(l *waitingLife) { l.api.assign("") },
			after: "Local assigned=local active=local lkg=local", starts: map[string]int{"base": 1, "next": 1, "local": 1}},
		"a stop": {base: slowEnd, do: func(l *waitingLife) { l.terminate() }, starts: map[string]int{"base": 1}, waits: true},
		"a stop, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.terminate() }, starts: map[string]int{"base": 1}, waits: true},
		"a reload, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.reload() }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"a reload": {base: slowEnd, do: func(l *waitingLife) { l.reload() }, after: next, starts: map[string]int{"base": 1, "next": 1}},
		"an edited drop-in": {base: slowEnd, do: func(l *waitingLife) { l.dropIn("20.conf", "maxPods: 60\n") }, after: next,
			starts: map[string]int{"base": 1, "next": 2}},
		"an edited drop-in, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.dropIn("20.conf", "maxPods: 60\n") }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"the kubelet's program is replaced": {base: slowEnd, do: func(l *waitingLife) { l.replaceKubelet() }, after: next,
			starts: map[string]int{"base": 1, "next": 2}},
		"the kubelet's program is replaced, and the next is not at its lock yet": {next: slowLock, do: func(l *waitingLife) { l.replaceKubelet() }, after: next,
			starts: map[string]int{"base": 1, "next": 1}},
		"it ends before its lock": {next: "mode: refuseLater, words: no", do: func(*waitingLife) {}, after: "RolledBack assigned=next@1 active=base@1 lkg=base@1",
			starts: map[string]int{"base": 2}, waits: true},
		"it is deadly": {next: "mode: crash, after: 20ms, words: no", do: func(*waitingLife) {}, after: "RolledBack assigned=next@1 active=base@1 lkg=base@1",
			starts: map[string]int{"base": 2, "next": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newWaitingLife(t, row.base, row.next)
			row.do(l)
			if row.after == "" {
				l.endSupervisor()
			} else {
				l.await(row.after)
				l.terminate()
				l.endSupervisor()
			}
			starts := l.started()
			for name, count := range starts {
				if count > row.starts[name] {
					t.Errorf("%s was past its lock %d times, at most %d allowed: %v", name, count, row.starts[name], starts)
				}
			}
			if row.waits && slices.Contains(l.past(), l.waiting) {
				t.Errorf("the kubelet that waited went past its lock: %v", starts)
			}
			l.wantNoKubelet(t)
		})
	}
}

func newWaitingLife(t *testing.T, base, next string) *waitingLife {
	t.Helper()
	if base == "" {
		base = "mode: ok"
	}
	if next == "" {
		next = "mode: ok, words: next"
	}
	l := &waitingLife{t: t, life: newLife(t, scenario{base: true, dropIns: true, ownKubelet: true, baseBehaviour: base, flags: []string{"--disruption=allow"}})}
	l.p = l.start("")
	if l.untilOver(l.p, l.before(), func() bool { return l.shows(l.p, l.before()) }) {
		t.Fatal("it died")
	}
	l.running = l.pids("start")[0]
	l.api.put("next", fakenode.Configuration(next))
	l.api.assign("next")
	fakenode.Await(t, "a kubelet that waits", func() bool { return len(l.pids("wait")) > 1 })
	l.waiting = l.pids("wait")[1]
	if base == slowEnd {
		fakenode.Await(t, "the running one to be asked to end", func() bool { return len(l.pids("term")) > 0 })
	}
	return l
}

// Where the next kubelet might meet a state file of another policy, or one with other reservations, it is not let through by the end of the
// one before: that would leave no time to set the file aside (rule 17).
func TestNothingWaitsWhereAStateFileMayBeInTheWay(t *testing.T) {
	const reserved = static + "reservedSystemCPUs: \"0\"\n"
	for name, row := range map[string]struct {
		wrote, base, next string
		waits             bool
	}{
		"none, as before":                 {wrote: "none", waits: true},
		"static, as before":               {wrote: "static", base: static, next: static, waits: true},
		"none to static":                  {wrote: "none", next: static},
		"static to none":                  {wrote: "static", base: static},
		"static, with other reservations": {wrote: "static", base: static, next: reserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &waitingLife{t: t, life: newLife(t, scenario{base: true, baseBehaviour: "mode: ok, stopAfter: 200ms", baseFields: row.base, wrote: row.wrote,
				flags: []string{"--disruption=allow"}})}
			l.p = l.start("")
			l.await(l.before())
			l.api.put("next", fakenode.Configuration("mode: ok, words: next")+row.next)
			l.api.assign("next")
			l.await("InTrial assigned=next@1 active=next@1 lkg=base@1")
			first, second := l.pids("start")[0], l.pids("start")[1]
			came, ended := slices.Index(l.events(), fakeEvent{"wait", second}), slices.Index(l.events(), fakeEvent{"exit", first})
			if waited := came < ended; waited != row.waits {
				t.Errorf("it waited: %t; it came to its lock with event %d, and with %d the one before ended", waited, came, ended)
			}
			l.endSupervisor()
			if starts := l.started(); starts["base"] != 1 || starts["next"] != 1 {
				t.Errorf("past the lock: %v", starts)
			}
		})
	}
}

// fakeEvent is a line of the fake kubelets' record.
type fakeEvent struct {
	Event string
	PID   int
}

func (l *waitingLife) events() (events []fakeEvent) {
	data, _ := os.ReadFile(l.record)
	for line := range strings.Lines(string(data)) {
		var e fakeEvent
		if json.Unmarshal([]byte(line), &e) == nil {
			events = append(events, e)
		}
	}
	return events
}

// pids are those of the fake kubelets that had an event.
func (l *waitingLife) pids(kind string) (pids []int) {
	for _, e := range l.events() {
		if e.Event == kind {
			pids = append(pids, e.PID)
		}
	}
	return pids
}

func (l *waitingLife) past() []int { return append(l.pids("start"), l.pids("beside")...) }

func (l *waitingLife) await(after string) {
	l.t.Helper()
	if l.untilOver(l.p, after, func() bool { return l.shows(l.p, after, strings.Replace(after, "RolledBack", "Rejected", 1)) }) {
		l.t.Fatalf("it died: %s", l.p.ProcessState)
	}
}

func (l *waitingLife) killSupervisor() {
	_ = l.p.Process.Kill()
	l.p.end()
	l.p = l.start("")
}

func (l *waitingLife) terminate() {
	l.t.Helper()
	if err := l.p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.t.Fatal(err)
	}
}

func (l *waitingLife) endSupervisor() {
	l.t.Helper()
	l.terminate()
	if code := l.p.end(); code != exitOK {
		l.t.Errorf("it ended with code %d", code)
	}
}

func (l *waitingLife) remove(name string) {
	l.t.Helper()
	fakenode.Await(l.t, "the folder to be gone, in which something may be written meanwhile", func() bool { return os.RemoveAll(l.path(name)) == nil })
}

// wantNoKubelet checks that of all kubelets that ever came to a lock none is left.
func (l *waitingLife) wantNoKubelet(t *testing.T) {
	t.Helper()
	for _, pid := range append(l.past(), l.pids("wait")...) {
		stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("pid %d is left: %s", pid, stat)
		}
	}
}
