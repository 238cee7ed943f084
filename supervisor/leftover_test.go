package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// leftBehind is a process that stands for a kubelet whose supervisor was killed. ignore makes it ignore SIGTERM.
func leftBehind(t *testing.T, ignore bool) (p Process, ended <-chan error) {
	t.Helper()
	script := "echo; exec sleep 1000"
	if ignore {
		script = "trap '' TERM; " + script
	}
	command := exec.Command("/bin/sh", "-c", script)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(output).ReadByte(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		end <- command.Wait()
	}()
	t.Cleanup(func() { _ = command.Process.Kill(); <-over })
	return processOf(command.Process.Pid), end
}

// stopsLeftOvers is a loop that knows enough to look for what its run folder's record names.
func stopsLeftOvers(runDir string, grace time.Duration) *loop {
	return &loop{Options: Options{Kubelet: fakeKubelet, RunDir: runDir, StopTimeout: grace, Logger: zap.NewNop()}}
}

func writeRecord(t *testing.T, r Record) (runDir string) {
	t.Helper()
	data, err := encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(written(t, t.TempDir(), recordFile, string(data)))
}

func TestStopLeftOver(t *testing.T) {
	for name, test := range map[string]struct {
		ignoresTerm bool
		change      func(r *Record)
		signal      syscall.Signal // that ends it; 0 = it lives on
		err         string
	}{
		"is stopped":                               {false, func(*Record) {}, syscall.SIGTERM, ""},
		"is killed when it ignores SIGTERM":        {true, func(*Record) {}, syscall.SIGKILL, ""},
		"another process has got its pid":          {false, func(r *Record) { r.Child.StartTime++ }, 0, ""},
		"it ran before the last boot":              {false, func(r *Record) { r.BootID = "another" }, 0, ""},
		"there was none":                           {false, func(r *Record) { r.Child = nil }, 0, ""},
		"the start time could not be read":         {false, func(r *Record) { r.Child.StartTime = 0 }, 0, ""},
		"the record is of a version not known":     {false, func(r *Record) { r.APIVersion = "kubelet-supervisor.io/v9" }, 0, ""},
		"its supervisor is alive and not this one": {false, func(r *Record) { r.Supervisor = processOf(os.Getppid()) }, 0, "another supervisor (pid "},
	} {
		t.Run(name, func(t *testing.T) {
			child, ended := leftBehind(t, test.ignoresTerm)
			left := child
			record := Record{APIVersion: recordVersion, BootID: bootID(), Child: &left}
			test.change(&record)
			grace := patience
			if test.ignoresTerm {
				grace = 100 * time.Millisecond
			}
			err := stopsLeftOvers(writeRecord(t, record), grace).stopLeftOvers()
			if test.err == "" && err != nil || test.err != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v", err)
			}
			if test.signal == 0 {
				if !child.alive() {
					t.Errorf("it was stopped")
				}
				return
			}
			var exit *exec.ExitError
			if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != test.signal {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestStopLeftOverWithoutARecord(t *testing.T) {
	if err := stopsLeftOvers(t.TempDir(), patience).stopLeftOvers(); err != nil {
		t.Error(err)
	}
}

func TestProcessOf(t *testing.T) {
	self := processOf(os.Getpid())
	if self.PID != os.Getpid() || self.StartTime == 0 || !self.alive() {
		t.Errorf("this process is %+v", self)
	}
	command := exec.Command("/bin/true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := Process{PID: command.Process.Pid, StartTime: 1}
	// It is a zombie now, or soon: neither it nor what comes after it is alive.
	await(t, "the end of a process", func() bool { return processOf(command.Process.Pid).StartTime == 0 })
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, parent := lookAt(os.Getpid()); parent != os.Getppid() {
		t.Errorf("the parent is %d", parent)
	}
	if ended.alive() || (Process{}).alive() || (Process{PID: os.Getpid()}).alive() {
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
	await(t, "the end of the first thread", func() bool {
		data, err := os.ReadFile(stat)
		return err == nil && strings.Contains(string(data), ") Z ")
	})
	if p := processOf(command.Process.Pid); !p.alive() {
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
		<-time.After(patience)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}
