//go:build linux

package supervisor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// A program does not take over while the disk hangs: execve(2) would wait for the thread that waits for it, and nobody for the kubelet.
// Whoever asked is told so.
func TestNoProgramTakesOverWhileTheDiskHangs(t *testing.T) {
	folder := t.TempDir()
	(&node{t: t, folder: folder}).write("successor", "#!/bin/sh\necho yes\n")
	program := filepath.Join(folder, "successor")
	l := wire(Options{StateDir: folder, Successor: &Successor{Path: program, Check: []string{program}, Answer: "yes"}})
	l.payloads.saves.most = 200 * time.Millisecond
	l.reload.checks = make(chan successorCheck, 1)
	check := func() error {
		l.checkSuccessor(t.Context())
		return (<-l.reload.checks).err
	}
	if err := check(); err != nil {
		t.Errorf("with a disk that answers: %v", err)
	}
	l.payloads.saves.turn <- struct{}{} // a write that was given up
	if err := check(); !errors.Is(err, errDiskHangs) {
		t.Errorf("with a disk that hangs: %v", err)
	}
	<-l.payloads.saves.turn
	if err := check(); err != nil {
		t.Errorf("with a disk that goes on: %v", err)
	}
	l.tasks.Wait()
}

func TestTheCheckOfASuccessor(t *testing.T) {
	folder := t.TempDir()
	for name, row := range map[string]struct{ content, want string }{
		"good":       {"#!/bin/sh\n[ \"$1\" = asked ] && [ -z \"$NOTIFY_SOCKET$WATCHDOG_USEC\" ] && echo yes\n", ""},
		"another":    {"#!/bin/sh\n", "is not this program"},
		"it objects": {"#!/bin/sh\necho first; echo kubelet-supervisor: it is too old >&2; exit 2\n", "exit status 2: it is too old"},
		"chatty":     {"#!/bin/sh\nhead -c 100000000 /dev/zero; exit 3\n", "exit status 3"},
		"no program": {"", "cannot take over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NOTIFY_SOCKET", "/nowhere")
			t.Setenv("WATCHDOG_USEC", "1")
			path := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
			(&node{t: t, folder: folder}).write(filepath.Base(path), row.content)
			identity, err := (&Successor{Path: path, Check: []string{path, "asked"}, Answer: "yes"}).check(t.Context())
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v", err)
			}
			if err != nil && len(err.Error()) > 2*successorWordsLimit {
				t.Errorf("%d bytes of it would stand in state.json", len(err.Error()))
			}
			if now, err := identityOf(path); err != nil || now != identity {
				t.Errorf("checked %+v, and it is %+v, %v", identity, now, err)
			}
		})
	}
	if _, err := (&Successor{Path: filepath.Join(folder, "absent")}).check(t.Context()); err == nil {
		t.Error("what is not there can take over")
	}
}

// A question that was given up is waited for: execve(2) would end what it has under way. Its end is an event, so that nobody waits for another.
func TestNoProgramTakesOverWhileAQuestionEnds(t *testing.T) {
	l := wire(Options{StateDir: t.TempDir(), Successor: &Successor{Path: "absent"}})
	l.reload = reload{checks: make(chan successorCheck, 1), pending: true, checked: &successorCheck{}}
	life, end := lifetimes{t.Context(), t.Context()}, make(chan struct{})
	l.runner.answerQuestion(life, core.Foresee{}, func(ctx context.Context) core.Event {
		<-ctx.Done()
		<-end
		return core.Foreseen{}
	})
	l.runner.giveUpQuestion()
	if l.continueReload(t.Context()); l.reload.checked == nil {
		t.Error("the program was to take over while a question was under way")
	}
	close(end)
	select {
	case event := <-l.events:
		if _, is := event.(core.Ticked); !is {
			t.Errorf("the end of the question is %+v", event)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody hears of the end of the question")
	}
	if l.continueReload(t.Context()); l.reload.checked != nil {
		t.Error("nothing is under way, and the program was not looked at")
	}
	l.tasks.Wait()
}
