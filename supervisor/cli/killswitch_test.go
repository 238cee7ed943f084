//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// With the kill switch the process is the kubelet: one process, with the unit's own arguments, and no supervisor to be seen.
func TestTheKillSwitch(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	t.Setenv("WATCHDOG_USEC", "60000000")
	left := n.run()
	before := left.awaitHealthy().Child.PID
	if err := left.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	left.end()
	off := written(t, filepath.Join(n.folder, "disabled"), "")
	// It is looked for before anything is parsed: no wrong word keeps it from being seen.
	p := n.run("--trial-perid=5m", "--kill-switch", off, "--trial-failures=0")
	n.awaitAlone(p, recorded)
	if got := events(t, recorded); got != "start term exit start" {
		t.Errorf("the kubelets saw %s: the one that was left behind (pid %d) has to end first", got, before)
	}
	if record, running, err := supervisor.ReadRecord(n.runDir); err != nil || !running || record.Alone != "the kill switch "+off+" is on" {
		t.Errorf("state.json does not say it: %+v, %t, %v", record, running, err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		t.Errorf("code %d", code)
	}
}

// One kubelet: where another supervisor has one of the folders, the kill switch starts none beside it.
func TestTheKillSwitchBesideASupervisor(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	first := n.run()
	record := first.awaitHealthy()
	off := written(t, filepath.Join(n.folder, "disabled"), "")
	for name, more := range map[string][]string{
		"the same folders":     nil,
		"another run folder":   {"--run-dir=" + filepath.Join(n.folder, "run2")},
		"another state folder": {"--state-dir=" + filepath.Join(n.folder, "state2")},
	} {
		t.Run(name, func(t *testing.T) {
			p := n.run(append(more, "--kill-switch="+off)...)
			fakenode.Await(t, "it ends, or is a second kubelet", func() bool {
				return p.ended() || slices.Contains(fakes(t, recorded, "start beside"), fmt.Sprintf("beside %d", p.Process.Pid))
			})
			if code := p.end(); code != exitUsage || !strings.Contains(p.stderr.String(), "another supervisor") {
				t.Errorf("code %d: %s", code, p.stderr.String())
			}
		})
	}
	if after := first.awaitHealthy(); *after.Child != *record.Child {
		t.Errorf("the first one's kubelet was %+v and is %+v", record.Child, after.Child)
	}
}

// A lock of a program that is no supervisor keeps no kubelet away, with the kill switch or without it.
func TestALockOfAnotherProgram(t *testing.T) {
	n := newNode(t)
	if err := os.Mkdir(n.stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.stateDir, "lock")
	written(t, path, "")
	holder := exec.Command("flock", "--no-fork", path, "sleep", "1000")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fakenode.Await(t, "the file is locked", func() bool {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if err == nil {
			_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		}
		return errors.Is(err, syscall.EWOULDBLOCK)
	})
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)

	p := n.run()
	p.awaitHealthy()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	if said := p.stderr.String(); !strings.Contains(said, "the state folder cannot be used") || !strings.Contains(said, fmt.Sprintf("(pid %d)", holder.Process.Pid)) {
		t.Errorf("it says %s", said)
	}
	_ = os.Remove(recorded)
	n.awaitAlone(n.run("--kill-switch="+written(t, filepath.Join(n.folder, "disabled"), "")), recorded)
}

// A kubelet that an earlier supervisor left, and that does not end: here one that belongs to another user and cannot be signalled.
func TestTheKillSwitchBesideALeftOverThatStays(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	stays := 1 // pid 1: nobody but root may signal it
	if os.Geteuid() == 0 {
		other := exec.Command("sleep", "1000")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
		stays = other.Process.Pid
	}
	off := written(t, filepath.Join(n.folder, "disabled"), "")
	written(t, filepath.Join(n.runDir, "state.json"), fmt.Sprintf(`{"apiVersion": "kubelet-supervisor.io/v1", "bootID": %q, "child": {"pid": %d, "startTime": %d}}`,
		strings.TrimSpace(mustRead(t, "/proc/sys/kernel/random/boot_id")), stays, startTime(t, stays)))
	command := exec.Command(n.program, n.runArguments("--kill-switch="+off, "--stop-timeout=100ms")...)
	if os.Geteuid() == 0 {
		const nobody = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := errors.Join(os.Chmod(filepath.Dir(binary), 0o755), giveAway(n.folder, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	p := n.begin(command)
	fakenode.Await(t, "it ends, or is a second kubelet", func() bool {
		_, err := os.Stat(recorded)
		return p.ended() || err == nil
	})
	if code := p.end(); code != exitInternal || !strings.Contains(p.stderr.String(), "does not end: stop it by hand") {
		t.Errorf("code %d: %s", code, p.stderr.String())
	}
	if _, err := os.Stat(recorded); err == nil {
		t.Error("a second kubelet was started")
	}
}

// startTime is that of a process, in clock ticks since the boot.
func startTime(t *testing.T, pid int) (ticks uint64) {
	t.Helper()
	stat := mustRead(t, fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

func giveAway(folder string, user int) error {
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	})
}
