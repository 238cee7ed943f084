//go:build linux

package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutOfMemoryKills(t *testing.T) {
	for name, test := range map[string]struct {
		own, events string
		want        int
	}{
		"none":             {"0::/unit\n", "low 0\noom 0\noom_kill 0\n", 0},
		"some":             {"0::/unit\n", "low 0\noom 5\noom_kill 3\noom_group_kill 9\n", 3},
		"hybrid":           {"4:memory:/unit\n0::/unit\n", "oom_kill 1\n", 1},
		"v1":               {"4:memory:/unit\n", "oom_kill 1\n", -1},
		"not told":         {"0::/elsewhere\n", "oom_kill 1\n", -1},
		"of an old kernel": {"0::/unit\n", "oom 5\n", -1},
		"no number":        {"0::/unit\n", "oom_kill many\n", -1},
	} {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "unit"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"own": test.own, "unit/memory.events": test.events} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := outOfMemoryKills(filepath.Join(folder, "own"), folder); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := outOfMemoryKills(filepath.Join(t.TempDir(), "absent"), ""); got != -1 {
		t.Errorf("without /proc: %d", got)
	}
}

// A SIGKILL comes from outside: the kubelet's last error line does not explain it, and a state file is not blamed for it. That it was for
// want of memory is said where the kernel tells it.
func TestWhatAKillIsExplainedBy(t *testing.T) {
	const log = `E1122 01:02:03.000000       1 kubelet.go:1] "Failed creating a mirror pod" err="start cpu manager error: not all reserved cpus: \"0-1\" are present"` + "\n"
	ended := func(script string) *Child {
		c := &Child{launcher: NewLauncher(Settings{}), fallbackRuntime: "another", command: exec.Command("sh", "-c", script)}
		_ = c.command.Run()
		return c
	}
	killed := ended("kill -KILL $$")
	for before, want := range map[int]string{-1: "killed by SIGKILL", 0: "killed by SIGKILL, for lack of memory: the kernel killed 2 processes of this unit", 2: "killed by SIGKILL"} {
		killed.killsBefore = before
		killed.launcher.countKills = func() int { return 2 }
		if got := killed.exited(killed.command.ProcessState, nil, []byte(log)); got.Words != want || got.StateFile != "" {
			t.Errorf("with %d kills before: %+v, want %q", before, got, want)
		}
	}
	failed := ended("exit 1")
	if got := failed.exited(failed.command.ProcessState, nil, []byte(log)); !strings.Contains(got.Words, "mirror pod") || got.StateFile != "cpu_manager_state" {
		t.Errorf("an exit: %+v", got)
	}
}
