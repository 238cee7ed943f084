//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// fakes reads what the fake kubelets recorded: "event pid" for each of the given events.
func fakes(t *testing.T, path string, events string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var entry struct {
			Event string
			PID   int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(events, entry.Event) {
			list = append(list, fmt.Sprintf("%s %d", entry.Event, entry.PID))
		}
	}
	return list
}

func TestTermStopsTheKubeletAndExitsWith0(t *testing.T) {
	n := newNode(t)
	p := n.run()
	kubelet := p.awaitHealthy().Child.PID
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		t.Errorf("code %d", code)
	}
	if err := syscall.Kill(kubelet, 0); err != syscall.ESRCH {
		t.Errorf("the kubelet with pid %d: %v", kubelet, err)
	}
}

func TestASecondSupervisorIsRefused(t *testing.T) {
	n := newNode(t)
	first := n.run()
	record := first.awaitHealthy()
	for name, arguments := range map[string][]string{
		"the same folders":      n.runArguments(),
		"another state folder":  n.runArguments("--state-dir=" + filepath.Join(n.folder, "state2")),
		"another run folder":    n.runArguments("--run-dir=" + filepath.Join(n.folder, "run2")),
		"a broken state folder": n.runArguments("--state-dir=" + n.local),
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := does(arguments...)
			if code != exitUsage || !strings.Contains(stderr, "another supervisor") {
				t.Errorf("code %d: %s", code, stderr)
			}
			if pid := fmt.Sprintf("(pid %d)", first.Process.Pid); !strings.Contains(stderr, pid) {
				t.Errorf("it does not name %s: %s", pid, stderr)
			}
		})
	}
	if after := first.awaitHealthy(); *after.Child != *record.Child {
		t.Errorf("the first one's kubelet was %+v and is %+v", record.Child, after.Child)
	}
}

// RUN_DIR need not survive the supervisor: what was left behind is found without it.
func TestAKubeletThatAKilledSupervisorLeft(t *testing.T) {
	for name, lose := range map[string]func(n *node) error{
		"state.json names it":   func(*node) error { return nil },
		"state.json is gone":    func(n *node) error { return os.Remove(filepath.Join(n.runDir, "state.json")) },
		"state.json is cut off": func(n *node) error { return os.Truncate(filepath.Join(n.runDir, "state.json"), 100) },
		"state.json knows of none": func(n *node) error {
			return os.WriteFile(filepath.Join(n.runDir, "state.json"), []byte(emptyRecord), 0o600)
		},
		"state.json is of a newer version": func(n *node) error {
			return os.WriteFile(filepath.Join(n.runDir, "state.json"), []byte(newerRecord), 0o600)
		},
		"the run folder was wiped": func(n *node) error { return os.RemoveAll(n.runDir) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			path := filepath.Join(n.folder, "record")
			t.Setenv("FAKE_KUBELET_RECORD", path)
			killed := n.run()
			left := killed.awaitHealthy().Child.PID
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed.end()
			if err := syscall.Kill(left, 0); err != nil {
				t.Fatalf("it did not outlive its supervisor: %v", err)
			}
			if record, running, err := supervisor.ReadRecord(n.runDir); err != nil || running || record.Child.PID != left {
				t.Fatalf("running %t, %v, %+v", running, err, record)
			}
			if err := lose(n); err != nil {
				t.Fatal(err)
			}
			next := n.run().awaitHealthy().Child.PID
			want := fmt.Sprintf("start %d, term %d, exit %d, start %d", left, left, left, next)
			if got := strings.Join(fakes(t, path, "start term exit"), ", "); got != want {
				t.Errorf("the kubelets saw %s, want %s", got, want)
			}
		})
	}
}

const (
	emptyRecord = `{"apiVersion": "kubelet-supervisor.io/v1"}`
	newerRecord = `{"apiVersion": "kubelet-supervisor.io/v2", "child": "another format"}`
)

// A supervisor that dies without a word may have been killed by what the configuration did: its try is spent (rule 10).
func TestTheTryOfAKilledSupervisorIsSpent(t *testing.T) {
	n := newNode(t)
	s, err := store.Open(n.stateDir)
	if err != nil {
		t.Fatal(err)
	}
	c := source("a").ConfigMap
	err = errors.Join(s.SaveCheckpoint(*c, map[string]string{"kubelet": fakenode.Configuration("mode: ok")}), s.SaveSource(store.Assigned, c), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	for failures := range 2 {
		p := n.run()
		record := p.awaitHealthy()
		if record.Trial == nil || record.Trial.Failures != failures {
			t.Errorf("after %d deaths: %+v", failures, record)
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.end()
	}
	p := n.run()
	if record := p.awaitHealthy(); record.Trial == nil || record.Trial.Failures != 2 {
		t.Errorf("after 2 deaths: %+v", record)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	if record := n.run().awaitHealthy(); record.Trial == nil || record.Trial.Failures != 2 {
		t.Errorf("an asked stop was counted: %+v", record)
	}
}

func TestAKubeletFromThePath(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(fakeKubelet)+":"+os.Getenv("PATH"))
	file := written(t, filepath.Join(t.TempDir(), "kubelet.yaml"), fakenode.Configuration("mode: ok"))
	if code, stdout, stderr := does("check", file, "--", "kubelet"); code != exitOK || !strings.Contains(stdout, "is accepted by "+fakeKubelet) {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
}

func TestLogFormatsOfARealSupervisor(t *testing.T) {
	for format, want := range map[string]string{
		"json":     `"msg":"kubelet is healthy"`,
		"text":     "info\tkubelet is healthy",
		"journald": "<6> kubelet is healthy",
	} {
		t.Run(format, func(t *testing.T) {
			n := newNode(t)
			p := n.run("--log-format=" + format)
			p.awaitHealthy()
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); code != exitOK {
				t.Errorf("code %d", code)
			}
			if log := p.stderr.String(); !strings.Contains(log, want) || !strings.Contains(log, `fake.go:1] "Starting kubelet"`) {
				t.Errorf("%q, and the kubelet's log, are not in\n%s", want, log)
			}
		})
	}
}
