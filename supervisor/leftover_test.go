//go:build linux

package supervisor

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// leftBehind is a process that stands for a kubelet whose supervisor was killed. ignore makes it ignore SIGTERM.
func leftBehind(t *testing.T, ignore bool) (p kubelet.Process, ended <-chan error) {
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
	return kubelet.ProcessOf(command.Process.Pid), end
}

// stopLeftOversOf looks for what the run folder's record names.
func stopLeftOversOf(runDir string, grace time.Duration) error {
	o := Options{Kubelet: fakeKubelet, RunDir: runDir, StopTimeout: grace, Logger: zap.NewNop()}
	_, err := stopLeftOvers(o, newLauncher(o, 0))
	return err
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
		"its supervisor is alive and not this one": {false, func(r *Record) { r.Supervisor = kubelet.ProcessOf(os.Getppid()) }, 0, "another supervisor (pid "},
	} {
		t.Run(name, func(t *testing.T) {
			child, ended := leftBehind(t, test.ignoresTerm)
			left := child
			record := Record{APIVersion: recordVersion, BootID: kubelet.BootID(), Child: &left}
			test.change(&record)
			grace := fakenode.Patience
			if test.ignoresTerm {
				grace = 100 * time.Millisecond
			}
			err := stopLeftOversOf(writeRecord(t, record), grace)
			if test.err == "" && err != nil || test.err != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v", err)
			}
			if test.signal == 0 {
				if !child.Alive() {
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
	if err := stopLeftOversOf(t.TempDir(), fakenode.Patience); err != nil {
		t.Error(err)
	}
}

// While a kubelet that was left behind takes its time, systemd's watchdog is fed, the unit is not ready, and a stop is heard.
func TestALeftOverThatTakesItsTime(t *testing.T) {
	n := newNode(t)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: n.path("systemd"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", n.path("systemd"))
	t.Setenv("WATCHDOG_USEC", "300000")
	if err := socket.SetReadDeadline(time.Now().Add(fakenode.Patience)); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		message := make([]byte, 4096)
		length, err := socket.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:length])
	}
	n.options.StopTimeout = 2 * time.Second
	child, _ := leftBehind(t, true)
	data, err := encodeRecord(Record{APIVersion: recordVersion, BootID: kubelet.BootID(), Child: &child})
	if err != nil {
		t.Fatal(err)
	}
	written(t, n.options.RunDir, recordFile, string(data))
	r := n.run()
	for fed := 0; fed < 3; {
		switch message := next(); {
		case message == "WATCHDOG=1":
			fed++
		case strings.Contains(message, "READY=1"):
			t.Fatal("it says it is ready")
		}
	}
	r.stop()
	for !strings.HasPrefix(next(), "STOPPING=1") {
	}
	if !child.Alive() {
		t.Error("the kubelet ended too early for this test")
	}
	if err := r.wait(); err != nil || child.Alive() || n.events() != "" {
		t.Errorf("%v; the kubelet that was left behind lives: %t; ours saw %q", err, child.Alive(), n.events())
	}
}
