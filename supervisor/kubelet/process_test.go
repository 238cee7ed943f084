//go:build linux

package kubelet

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestProcessOf(t *testing.T) {
	self := ProcessOf(os.Getpid())
	if self.PID != os.Getpid() || self.StartTime == 0 || !self.Alive() {
		t.Errorf("this process is %+v", self)
	}
	command := exec.Command("/bin/true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := Process{PID: command.Process.Pid, StartTime: 1}
	// It is a zombie now, or soon: neither it nor what comes after it is alive.
	fakenode.Await(t, "the end of a process", func() bool { return ProcessOf(command.Process.Pid).StartTime == 0 })
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, parent := lookAt(os.Getpid()); parent != os.Getppid() {
		t.Errorf("the parent is %d", parent)
	}
	if ended.Alive() || (Process{}).Alive() || (Process{PID: os.Getpid()}).Alive() {
		t.Errorf("a process lives that does not")
	}
}

// A process with a dead first thread looks like a zombie, and is none.
func TestAProcessWhoseFirstThreadEnded(t *testing.T) {
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), withoutFirstThread+"=1")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if _, err := bufio.NewReader(output).ReadByte(); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("/proc/%d/stat", command.Process.Pid)
	fakenode.Await(t, "the end of the first thread", func() bool {
		data, err := os.ReadFile(stat)
		return err == nil && strings.Contains(string(data), ") Z ")
	})
	if p := ProcessOf(command.Process.Pid); !p.Alive() {
		t.Errorf("%+v is taken for ended", p)
	}
}

const withoutFirstThread = "TEST_WITHOUT_FIRST_THREAD"

// init runs on the first thread.
func init() {
	if os.Getenv(withoutFirstThread) == "" {
		return
	}
	runtime.LockOSThread()
	go func() {
		fmt.Println("at work")
		<-time.After(fakenode.Patience)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

func TestIsNoRoom(t *testing.T) {
	for err, want := range map[error]bool{
		&os.PathError{Op: "fork/exec", Path: "kubelet", Err: syscall.EAGAIN}: true, fmt.Errorf("starting the kubelet: %w", syscall.ENOMEM): true,
		&os.PathError{Op: "fork/exec", Path: "kubelet", Err: syscall.ENOENT}: false, nil: false,
	} {
		if IsNoRoom(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}

// A process is one while any thread of it is, whatever its command is called.
func TestIdentity(t *testing.T) {
	stat := func(command, state, threads string) string {
		return "42 (" + command + ") " + state + " 7 42 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 " + threads + " 0 9000 1000 10"
	}
	for _, row := range []struct {
		stat    string
		started uint64
		parent  int
	}{
		{stat("kubelet", "S", "20"), 9000, 7},
		{stat("kubelet", "S", "1"), 9000, 7},
		{stat("a) Z 1 1", "S", "20"), 9000, 7},
		{stat("Z", "R", "1"), 9000, 7},
		{stat("kubelet", "Z", "1"), 0, 0},
		{stat("kubelet", "Z", "0"), 0, 0},
		{stat("kubelet", "Z", "2"), 9000, 7}, // others are at work
		{strings.TrimSuffix(stat("kubelet", "S", "1"), " 1000 10"), 9000, 7},
		{strings.TrimSuffix(stat("kubelet", "S", "1"), " 9000 1000 10"), 0, 0},
		{"42 (kubelet)", 0, 0},
		{"", 0, 0},
	} {
		if started, parent := identity(row.stat); started != row.started || parent != row.parent {
			t.Errorf("%q: started %d, parent %d", row.stat, started, parent)
		}
	}
	if p, parent := lookAt(1 << 30); p != (Process{PID: 1 << 30}) || parent != 0 {
		t.Errorf("no process: %+v, parent %d", p, parent)
	}
}
