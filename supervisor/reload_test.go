package supervisor

import (
	"path/filepath"
	"strings"
	"testing"
)

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
