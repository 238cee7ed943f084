//go:build linux

package kubelet

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// shortFolder is one whose notify socket's path is not too long.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "launch-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// A kubelet writes to the journal where there is one, else to the file, else to our own output; both what it says and its errors.
func TestWhereAKubeletWrites(t *testing.T) {
	journal := filepath.Join(shortFolder(t), "stdout")
	journald, err := net.Listen("unix", journal)
	if err != nil {
		t.Fatal(err)
	}
	defer journald.Close()
	for name, row := range map[string]struct {
		journal, want string
		prepare       func(runDir string) error
	}{
		"the journal":                            {journal: journal, want: "journal"},
		"no journald":                            {journal: journal + "2", want: "file"},
		"none is wanted":                         {want: "file"},
		"no journald, and a folder for its file": {journal: journal + "2", want: "own", prepare: func(runDir string) error { return os.Mkdir(filepath.Join(runDir, outputFile), 0o700) }},
	} {
		t.Run(name, func(t *testing.T) {
			runDir := shortFolder(t)
			if row.prepare != nil {
				if err := row.prepare(runDir); err != nil {
					t.Fatal(err)
				}
			}
			own, err := os.Create(filepath.Join(t.TempDir(), "own"))
			if err != nil {
				t.Fatal(err)
			}
			defer own.Close()
			l := NewLauncher(Settings{Path: executable(t, "echo out; echo err >&2"), RunDir: runDir, Journal: row.journal, Output: own, Logger: zap.NewNop()})
			defer l.Close()
			child, err := l.Start(Spec{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := child.collect(); err != nil || child.journaled != (row.want == "journal") {
				t.Errorf("journaled %t, %v", child.journaled, err)
			}
			wrote := map[string]string{}
			file, _ := os.ReadFile(filepath.Join(runDir, outputFile))
			wrote["file"] = string(file)
			ours, _ := os.ReadFile(own.Name())
			wrote["own"] = string(ours)
			if row.want == "journal" {
				connection, err := journald.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer connection.Close()
				_ = connection.SetReadDeadline(time.Now().Add(fakenode.Patience))
				all, err := io.ReadAll(connection) // until nobody has the stream any more
				if err != nil {
					t.Error(err)
				}
				wrote["journal"] = strings.TrimPrefix(string(all), streamHeader)
			}
			for place, text := range wrote {
				want := ""
				if place == row.want {
					want = "out\nerr\n"
				}
				if text != want {
					t.Errorf("%s has %q, want %q", place, text, want)
				}
			}
		})
	}
}

// Only a kubelet with a configuration of ours has a lock, and only where that is asked for.
func TestWhoHasALock(t *testing.T) {
	runDir := shortFolder(t)
	own := fakenode.NewOutput(t).Pipe
	file := written(t, "refused.yaml", fake("mode: refuse, words: no"))
	l := NewLauncher(Settings{Path: fakeKubelet, Arguments: []string{"--config=" + file}, RunDir: runDir, Output: own, Logger: zap.NewNop(), LockFile: filepath.Join(runDir, "kubelet.lock")})
	defer l.Close()
	l.countKills = func() int { return 7 }
	for _, row := range []struct {
		spec Spec
		want bool
	}{{Spec{File: file, Lock: true}, true}, {Spec{File: file}, false}, {Spec{Lock: true}, false}} {
		child, err := l.Start(row.spec)
		if err != nil {
			t.Fatal(err)
		}
		flags := slices.DeleteFunc(slices.Clone(child.command.Args), func(word string) bool { return !strings.HasPrefix(word, lockFlag) })
		if child.Locked() != row.want || len(flags) > 0 != row.want {
			t.Errorf("%+v: locked %t, %q", row.spec, child.Locked(), flags)
		}
		if child.killsBefore != 7 {
			t.Errorf("%d processes had been killed for lack of memory before it", child.killsBefore)
		}
		_, _ = child.collect()
	}
}

func TestAKubeletThatCannotBeStarted(t *testing.T) {
	l := NewLauncher(Settings{Path: filepath.Join(t.TempDir(), "absent"), RunDir: shortFolder(t), Output: os.Stderr, Logger: zap.NewNop()})
	defer l.Close()
	if child, err := l.Start(Spec{}); child != nil || err == nil || !strings.Contains(err.Error(), "starting the kubelet: ") {
		t.Errorf("%v, %v", child, err)
	}
}

// The notify socket stays the same from start to start, and is made anew where it was lost.
func TestTheEnvironmentOfAKubelet(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/of/the/supervisor")
	t.Setenv("WATCHDOG_USEC", "7")
	l := NewLauncher(Settings{RunDir: shortFolder(t), Logger: zap.NewNop(), Watchdog: 30 * time.Second})
	defer l.Close()
	has := func(want ...string) {
		t.Helper()
		got := slices.DeleteFunc(l.environment(), func(entry string) bool {
			return !strings.HasPrefix(entry, "NOTIFY_SOCKET=") && !strings.HasPrefix(entry, "WATCHDOG_")
		})
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	path := filepath.Join(l.RunDir, notifyFile)
	has("WATCHDOG_USEC=30000000", "NOTIFY_SOCKET="+path)
	first := l.notify
	has("WATCHDOG_USEC=30000000", "NOTIFY_SOCKET="+path)
	if l.notify != first {
		t.Error("another socket, and the first is there")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.Watchdog = time.Second // no kubelet starts with so short a one
	has("NOTIFY_SOCKET=" + path)
	if _, err := os.Lstat(path); l.notify == first || err != nil || first.descriptor() != -1 {
		t.Errorf("the socket was lost: another one %t (%v), the descriptor of the first is %d", l.notify != first, err, first.descriptor())
	}
	if err := os.RemoveAll(l.RunDir); err != nil {
		t.Fatal(err)
	}
	has()
	if l.notify != nil {
		t.Error("a socket that cannot be reached")
	}
	if l.notify = nil; l.NotifySocket() != -1 {
		t.Error("a descriptor of none")
	}
}
