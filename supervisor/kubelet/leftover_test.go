//go:build linux

package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// Left-overs are asked to end side by side: each of these goes when all have been asked, and not before.
func TestLeftOversAreStoppedSideBySide(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	runDir, asked := t.TempDir(), t.TempDir()
	l := NewLauncher(Settings{Path: copyOf(t, shell, filepath.Join(t.TempDir(), "kubelet")), RunDir: runDir, Logger: zap.NewNop()})
	t.Cleanup(l.Close)
	const many = 3
	script := `trap 'touch "$1/$$"; while [ "$(ls "$1" | wc -l)" -lt 3 ]; do sleep 0.02; done; exit 7' TERM; touch "$2/$$"; while :; do sleep 0.02; done`
	began := t.TempDir()
	var commands []*exec.Cmd
	for range many {
		c := exec.Command(l.Path, "-c", script, "sh", asked, began)
		c.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(runDir, notifyFile))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		commands = append(commands, c)
	}
	ends := make(chan int, many)
	for _, c := range commands {
		go func() { _ = c.Wait(); ends <- c.ProcessState.ExitCode() }()
	}
	fakenode.Await(t, "all to hear signals", func() bool {
		entries, err := os.ReadDir(began)
		return err == nil && len(entries) == many
	})
	if waited, err := l.StopLeftOvers(nil, time.Minute); err != nil || waited {
		t.Errorf("waited %t, %v", waited, err)
	}
	for range many {
		if code := <-ends; code != 7 {
			t.Errorf("one ended with %d, and not by itself", code)
		}
	}
}
