package supervisor

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		socket.receive(ctx)
	}()
	t.Cleanup(func() { stop(); <-over })
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
	for range 2 { // what comes in order is heard in order: the second of another process is after the first of ours
		command := exec.Command(fakeKubelet, "--healthz-port=0")
		command.Env = []string{"NOTIFY_SOCKET=" + socket.path}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "READY=1", func() bool { return socket.isReady(command.Process.Pid) })
		if socket.isReady(os.Getpid()) {
			t.Error("this process is ready and has not said so")
		}
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	say(t, socket, "STATUS=fine\nREADY=1\n")
	await(t, "READY=1 of this process", func() bool { return socket.isReady(os.Getpid()) })
}

func TestANotifySocketThatCannotBeMade(t *testing.T) {
	for name, path := range map[string]string{
		"no folder":                 filepath.Join(t.TempDir(), "absent", "notify"),
		"longer than Linux can":     filepath.Join(t.TempDir(), strings.Repeat("x", 108)),
		"a folder that is in place": filepath.Dir(written(t, t.TempDir(), "notify/file", "")),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := listenNotify(path); err == nil || !strings.Contains(err.Error(), "the notify socket: ") {
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
	l := &loop{}
	l.kubelets = &launcher{loop: l}
	child := &process{command: command, started: time.Now()}
	expect := func(when, want string) {
		t.Helper()
		err := l.probeNotify(child)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("no socket", "has not said READY=1")
	l.kubelets.notify = socket
	expect("it said nothing", "has not said READY=1")
	say(t, socket, "READY=1")
	await(t, "READY=1", func() bool { return socket.isReady(os.Getpid()) })
	expect("it is young", "has not been alive for 10s")
	child.started = child.started.Add(-notifyAlive)
	expect("it is ready and old enough", "")
}
