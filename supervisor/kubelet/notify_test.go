//go:build linux

package kubelet

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func listenNotifyUntilTheEnd(t *testing.T) *notifySocket {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "notify")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // as a supervisor that was killed left it
		t.Fatal(err)
	}
	socket, err := listenNotify(path)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		socket.receive()
	}()
	t.Cleanup(func() { socket.connection.Close(); <-over })
	return socket
}

func say(t *testing.T, socket *notifySocket, message string) {
	t.Helper()
	connection, err := net.Dial("unixgram", socket.path)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Write([]byte(message)); err != nil {
		t.Fatal(err)
	}
}

func TestReadyCountsFromTheProcessThatSaysSo(t *testing.T) {
	socket := listenNotifyUntilTheEnd(t)
	for _, message := range []string{"", "WATCHDOG=1", "READY=0", "STATUS=READY=1", strings.Repeat("x", 8<<10)} {
		say(t, socket, message)
	}
	for range 2 {
		command := exec.Command(fakeKubelet, "--healthz-port=0")
		command.Env = []string{"NOTIFY_SOCKET=" + socket.path}
		if err := socket.begin(func() (int, error) { err := command.Start(); return command.Process.Pid, err }); err != nil {
			t.Fatal(err)
		}
		say(t, socket, "READY=1\nWATCHDOG=1") // of this process, while the kubelet's is awaited
		fakenode.Await(t, "READY=1", func() bool { return socket.notes(command.Process.Pid).Ready })
		say(t, socket, "WATCHDOG=1") // again not the kubelet's
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	if notes := socket.notes(os.Getpid()); notes.Pings != 0 {
		t.Errorf("another process fed the watchdog: %+v", notes)
	}
	becomeTheKubelet(t, socket)
	if notes := socket.notes(os.Getpid()); notes.Ready {
		t.Errorf("a new kubelet is ready and has not said so: %+v", notes)
	}
	say(t, socket, "STATUS=fine\nREADY=1\nWATCHDOG=1\n")
	fakenode.Await(t, "READY=1 of this process", func() bool {
		notes := socket.notes(os.Getpid()) // a ping from before it was the kubelet may have come late
		return notes.PID == os.Getpid() && notes.Ready && notes.Pings > 0
	})
}

// becomeTheKubelet makes this process the one whose messages count.
func becomeTheKubelet(t *testing.T, socket *notifySocket) {
	t.Helper()
	if err := socket.begin(func() (int, error) { return os.Getpid(), nil }); err != nil {
		t.Fatal(err)
	}
}

func TestANotifySocketThatCannotBeMade(t *testing.T) {
	for name, path := range map[string]string{
		"no folder":                 filepath.Join(t.TempDir(), "absent", "notify"),
		"longer than Linux can":     filepath.Join(t.TempDir(), strings.Repeat("x", 108)),
		"a folder that is in place": filepath.Dir(written(t, "notify/file", "")),
	} {
		t.Run(name, func(t *testing.T) {
			want := "listening on the notify socket: "
			if name == "a folder that is in place" {
				want = "replacing the notify socket: "
			}
			if _, err := listenNotify(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHealthWithoutAHealthzPort(t *testing.T) {
	socket := listenNotifyUntilTheEnd(t)
	command := exec.Command("true")
	var err error
	if command.Process, err = os.FindProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	child := &Child{command: command, started: time.Now()}
	expect := func(when, want string) {
		t.Helper()
		err := child.probeNotify()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("no socket", "has not said READY=1")
	child.notify = socket
	expect("it said nothing", "has not said READY=1")
	becomeTheKubelet(t, socket)
	expect("it said nothing", "has not said READY=1")
	say(t, socket, "READY=1")
	fakenode.Await(t, "READY=1", func() bool { return socket.notes(os.Getpid()).Ready })
	expect("it is young", "has not been alive for 10s")
	child.started = child.started.Add(-notifyAlive)
	expect("it is ready and old enough", "")
}

// Other users cannot write to it: it has the permissions that it needs from its first moment on.
func TestTheModeOfTheNotifySocket(t *testing.T) {
	socket := listenNotifyUntilTheEnd(t)
	if info, err := os.Lstat(socket.path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("it has mode %v (%v)", info.Mode(), err)
	}
}
