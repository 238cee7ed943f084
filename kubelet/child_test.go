package kubelet

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestRuntimeDown(t *testing.T) {
	folder := t.TempDir()
	up, down := "unix://"+filepath.Join(folder, "up"), "unix://"+filepath.Join(folder, "down")
	fakenode.Listen(t, "unix", filepath.Join(folder, "up"))
	for name, test := range map[string]struct {
		endpoint, fallback string
		want               bool
	}{
		"it answers":                            {up, up, false},
		"it does not answer":                    {down, down, true},
		"a path without scheme":                 {filepath.Join(folder, "down"), filepath.Join(folder, "down"), true},
		"the fallback has other words":          {down, "unix:" + filepath.Join(folder, "down"), true},
		"the fallback would ask another":        {down, up, false},
		"it is not known":                       {"", "", false},
		"nothing can be said of other schemes":  {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1", false},
		"nothing can be said of what is no URL": {"unix://%zz", "unix://%zz", false},
	} {
		t.Run(name, func(t *testing.T) {
			child := &Child{endpoints: config.Endpoints{Runtime: test.endpoint}, fallbackRuntime: test.fallback}
			if got := child.runtimeDown(); got != test.want {
				t.Errorf("down: %t", got)
			}
		})
	}
}

func TestAWaitThatIsOverIsNoRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "up")
	fakenode.Listen(t, "unix", path)
	if refusesConnections(path, time.Nanosecond) {
		t.Error("a socket that listens is taken for one that refuses")
	}
}

func TestBackoff(t *testing.T) {
	l := NewLauncher(Settings{})
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
		{"false", !asked, stableAfter, 250 * time.Millisecond},
		{"false", !asked, 0, 500 * time.Millisecond},
		{"true", asked, stableAfter, 0},
		{"false", !asked, 0, 250 * time.Millisecond},
	} {
		child := &Child{launcher: l, command: exec.Command(exit.command)}
		_ = child.command.Run()
		child.asked.Store(exit.asked)
		child.healthy.sum = exit.healthy
		if got := child.exited(child.command.ProcessState, nil, nil).Delay; got != exit.want {
			t.Errorf("exit %d waits %s, want %s", i, got, exit.want)
		}
	}
}

func TestAnExitStatusThatIsNotKnown(t *testing.T) {
	l := NewLauncher(Settings{})
	child := &Child{launcher: l}
	child.asked.Store(true)
	exited := child.exited(nil, errors.New("no child processes"), nil)
	if !exited.Asked || exited.Code != -1 || exited.Words != "its exit status is unavailable: no child processes" {
		t.Errorf("got %+v", exited)
	}
}
