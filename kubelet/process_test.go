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
