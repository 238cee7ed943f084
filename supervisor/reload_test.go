package supervisor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program does not take over while the disk hangs: execve(2) would wait for the thread that waits for it, and nobody for the kubelet.
// Whoever asked is told so.
func TestNoProgramTakesOverWhileTheDiskHangs(t *testing.T) {
	folder := t.TempDir()
	(&node{t: t, folder: folder}).write("successor", "#!/bin/sh\necho yes\n")
	program := filepath.Join(folder, "successor")
	l := &loop{saves: newSaves(), Options: Options{StateDir: folder, Successor: &Successor{Path: program, Check: []string{program}, Answer: "yes"}}}
	l.saves.most = 200 * time.Millisecond
	l.reload.checks = make(chan successorCheck, 1)
	check := func() error {
		l.checkSuccessor(t.Context())
		return (<-l.reload.checks).err
	}
	if err := check(); err != nil {
		t.Errorf("with a disk that answers: %v", err)
	}
	l.saves.turn <- struct{}{} // a write that was given up
	if err := check(); !errors.Is(err, errDiskHangs) {
		t.Errorf("with a disk that hangs: %v", err)
	}
	<-l.saves.turn
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
