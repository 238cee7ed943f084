//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// The disk of the state folder takes no write and gives no answer, as while a snapshot is made of it. A kubelet that dies is replaced all
// the same, in a trial too, and the supervisor can be stopped.
func TestDiskThatHangs(t *testing.T) {
	n := sharedNode(t)
	s := n.prepareSupervisor(t, options{})
	mountLoop(t, s.StateDir)
	flags := []string{"--trial-period=1m"}
	s = n.startedLocal(t, options{After: s, Flags: flags})
	config := n.putConfigMap(t, "hangs", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 64))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "InTrial")

	thaw := freezeDisk(t, s.StateDir)
	dead := s.kubelet(t)
	kill(t, dead)
	awaitFor(t, 30*time.Second, "the kubelet that was killed is replaced", func() error { return differs(n.kubelets(t), dead) })
	s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 20.0 && got != 64.0 {
		t.Errorf("the kubelet runs with maxPods %v", got)
	}

	begin := time.Now()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitFor(t, 30*time.Second, "the supervisor stops the kubelet and ends", func() error {
		if found := n.kubelets(t); len(found) > 0 {
			return fmt.Errorf("kubelets %v", found)
		}
		return s.over()
	})
	t.Logf("after SIGTERM: %.1f s", time.Since(begin).Seconds())
	thaw()
	if code := s.ended(t); code != 0 {
		t.Errorf("exit code %d", code)
	}

	s = n.startSupervisor(t, options{After: s, Flags: []string{"--trial-period=3s"}})
	v := n.awaitReason(t, assignment, "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if problems := s.record(t).StateProblems; problems != "" {
		t.Error(problems)
	}
}

// over is nil when the supervisor has ended, as far as it can: a thread that waits for the disk stays until that answers, and keeps what
// is left of the process.
func (s *supervised) over() error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid()))
	if os.IsNotExist(err) {
		return nil
	}
	if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "Z") {
		return nil
	}
	record, _, _ := supervisor.ReadRecord(s.RunDir)
	return fmt.Errorf("it runs: phase %s, %v", record.Phase, err)
}

// mountLoop mounts a new ext4 on a folder, which goes with the test.
func mountLoop(t *testing.T, folder string) {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 32<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, "mkfs.ext4", "-q", disk)
	must(t, "mount", "-o", "loop", disk, folder)
	t.Cleanup(func() { must(t, "umount", folder) })
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
}

// freezeDisk has the file system of a folder hold up whoever writes, until it is thawed, at the latest when the test ends.
func freezeDisk(t *testing.T, folder string) (thaw func()) {
	t.Helper()
	frozen := true
	thaw = func() {
		if frozen {
			frozen = false
			must(t, "fsfreeze", "--unfreeze", folder)
		}
	}
	must(t, "fsfreeze", "--freeze", folder)
	t.Cleanup(thaw)
	return thaw
}

// must runs a program that has to succeed.
func must(t *testing.T, name string, arguments ...string) {
	t.Helper()
	command := exec.Command(name, arguments...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
}
