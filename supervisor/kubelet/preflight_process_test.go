//go:build linux

package kubelet

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// executable makes a shell script.
func executable(t *testing.T, script string) string {
	t.Helper()
	syscall.ForkLock.RLock() // a file that is open for writing in a process that is forked meanwhile cannot be executed
	defer syscall.ForkLock.RUnlock()
	path := written(t, "kubelet.sh", "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitEnd waits until a process that is not our child has ended.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, 10_000); ready != 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Errorf("process %d lives on (%v)", pid, err)
	}
}

func pidIn(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestPreflightLeavesNoProcess: a wrapper's children go with it, and one that holds the output open does not hold up the verdict.
func TestPreflightLeavesNoProcess(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   kubeletconfig.Outcome
	}{
		"after its end":     {"echo 'failed on its own' >&2; exit 3", kubeletconfig.Refused},
		"past the check":    {"echo '\"Acquiring file lock\" path=\"/l\"'; wait", kubeletconfig.Unknown},
		"killed in between": {"kill -9 $$", kubeletconfig.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pidFile := filepath.Join(t.TempDir(), "pid")
			kubelet := executable(t, "sleep 600 & echo $! >"+pidFile+"; "+test.script)
			preflight := Preflight{Kubelet: kubelet, Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != test.want {
				t.Errorf("got %+v, want %v", verdict, test.want)
			}
			awaitEnd(t, pidIn(t, pidFile))
		})
	}
}

// TestPreflightThatIsNotHeard: what a kubelet may have said, and was not read, refuses nothing. Here somebody who has left its group holds
// the output; on a machine that is too busy it is we who have no turn.
func TestPreflightThatIsNotHeard(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   kubeletconfig.Outcome
	}{
		"not a word":       {"exit 1", kubeletconfig.Unknown},
		"no error yet":     {"echo 'I0101 00:00:00.000000 1 server.go:1] Kubelet version' >&2; exit 1", kubeletconfig.Unknown},
		"what refuses it":  {"echo 'E0101 00:00:00.000000 1 run.go:1] failed' >&2; exit 1", kubeletconfig.Refused},
		"what accepts it":  {"echo '" + acceptedLine + "'; exit 1", kubeletconfig.Accepted},
		"success, strange": {"exit 0", kubeletconfig.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pidFile := filepath.Join(t.TempDir(), "pid")
			kubelet := executable(t, "setsid sleep 600 & echo $! >"+pidFile+`; until [ "$(cut -d' ' -f6 /proc/$!/stat)" = $! ]; do :; done; `+test.script)
			preflight := Preflight{Kubelet: kubelet, Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != test.want {
				t.Errorf("got %+v, want %v", verdict, test.want)
			}
			if err := unix.Kill(pidIn(t, pidFile), unix.SIGKILL); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPreflightIsTheFirstToLose(t *testing.T) {
	kubelet := executable(t, `[ "$(cut -d' ' -f5 /proc/$$/stat)" = $$ ] || exit 1 # its own process group
until [ "$(cat /proc/$$/oom_score_adj)" = 1000 ]; do :; done
echo '`+acceptedLine+`'; exit 1`)
	preflight := Preflight{Kubelet: kubelet, Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: 30 * time.Second}
	if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != kubeletconfig.Accepted {
		t.Errorf("got %+v", verdict)
	}
}

// TestPreflightDiesWithUs kills a process in the middle of its pre-flight: this test binary again, told so by its environment.
func TestPreflightDiesWithUs(t *testing.T) {
	const variable = "KUBELET_TEST_PREFLIGHT_OF"
	if kubelet := os.Getenv(variable); kubelet != "" {
		preflight := Preflight{Kubelet: kubelet, Mode: PreflightAlways, TempFolder: os.TempDir(), Timeout: time.Minute}
		t.Logf("%+v", preflight.Check(t.Context(), Candidate{}, nil))
		return
	}
	started := filepath.Join(t.TempDir(), "pid")
	if err := unix.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestPreflightDiesWithUs$")
	parent.Env = append(os.Environ(), variable+"="+executable(t, "echo $$ >"+started+"; exec sleep 600"), "TMPDIR="+t.TempDir())
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, started) // blocks until it is written
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = parent.Wait()
	awaitEnd(t, pid)
}
