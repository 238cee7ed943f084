package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// What runs is what the child's own command line says, after its start (rule 25).
func TestAScriptThatDoesNotHandOnItsArguments(t *testing.T) {
	for name, test := range map[string]struct {
		script string // %s is its own --config
		local  bool   // it is given no configuration
		says   string // part of what is told; empty: nothing is
	}{
		"it hands them on":                              {script: `exec ` + fakeKubelet + ` --config=%s "$@"`},
		"it swallows them":                              {script: `exec ` + fakeKubelet + ` --config=%s --healthz-port=$PORT`, says: "does not hand on the arguments that it is given: the kubelet that runs (pid "},
		"it swallows them, and has no --config":         {script: `exec ` + fakeKubelet + ` --healthz-port=$PORT # %s`, says: ") was started without --config"},
		"its own --config comes last, and counts":       {script: `exec ` + fakeKubelet + ` "$@" --config %s`, says: "was started with --config="},
		"local is whatever it does":                     {script: `exec ` + fakeKubelet + ` --config=%s --healthz-port=$PORT`, local: true},
		"it does not become the kubelet":                {script: fakeKubelet + ` "$@" # %s`, says: "did not become the kubelet: its child (pid "},
		"it does not become the kubelet, on no account": {script: fakeKubelet + ` "$@" # %s`, local: true, says: "did not become the kubelet: its child (pid "},
	} {
		t.Run(name, func(t *testing.T) {
			port := fakenode.FreePort(t)
			own, given := written(t, "own.yaml", fake("mode: ok")), written(t, "given.yaml", fake("mode: ok"))
			script := strings.ReplaceAll(fmt.Sprintf(test.script, own), "$PORT", fmt.Sprint(port))
			folder := t.TempDir()
			l := NewLauncher(Settings{Path: executable(t, script), Arguments: []string{"--config=" + own, fmt.Sprintf("--healthz-port=%d", port)}, RunDir: folder,
				Logger: zap.NewNop(), StartTimeout: time.Minute, Output: fakenode.NewOutput(t).Pipe})
			if test.local {
				given = ""
			}
			c, err := l.Start(Spec{File: given})
			if err != nil {
				t.Fatal(err)
			}
			c.FallBackTo("")
			seen, over := make(chan Event, 100), make(chan struct{})
			ctx, end := context.WithCancel(t.Context())
			go func() { defer close(over); c.Attend(ctx, func(e Event) { seen <- e }) }()
			defer func() {
				end()
				_, _ = l.StopLeftOvers(nil, time.Second)
				_ = c.command.Process.Kill()
				<-over
				l.Close()
			}()
			for e := range seen {
				switch e := e.(type) {
				case NotInUse:
					if test.says == "" || !strings.Contains(e.Words, test.says) {
						t.Errorf("told: %s", e.Words)
					}
					return
				case Healthy:
					if test.says != "" {
						t.Error("healthy, and nothing was told before")
					}
					return
				}
			}
		})
	}
}

// Whoever listens below the child is the kubelet in its place, unless the child listens, too: what it forks has its sockets for a moment.
func TestWhoListensBelowTheChild(t *testing.T) {
	for name, row := range map[string]struct {
		script string // descriptor 3 is the listener
		listen bool
		became bool
	}{
		"it and what it forks":  {"sleep 1000 & echo; wait", true, false},
		"what it started alone": {"sleep 1000 3<&3 & exec 3<&-; echo; wait", true, true},
		"nobody below it":       {"sleep 1000 3<&- & exec 3<&-; echo; wait", true, false},
		"nobody":                {"sleep 1000 3<&- & exec 3<&-; echo; wait", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			file, err := listener.(*net.TCPListener).File()
			if err != nil {
				t.Fatal(err)
			}
			address := loopback(listener)
			_ = listener.Close()
			command := exec.Command("/bin/sh", "-c", row.script)
			command.ExtraFiles, command.SysProcAttr = []*os.File{file}, &syscall.SysProcAttr{Setpgid: true}
			out, errOut := command.StdoutPipe()
			if err := command.Start(); err != nil || errOut != nil {
				t.Fatal(err, errOut)
			}
			defer file.Close()
			if !row.listen {
				_ = file.Close()
			}
			defer func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL); _ = command.Wait() }()
			_, _ = out.Read(make([]byte, 1))
			c := &Child{launcher: NewLauncher(Settings{Path: "/kubelet"}), command: command}
			var told []Event
			if became := c.becameNone(t.Context(), address, func(e Event) { told = append(told, e) }); became != row.became || len(told) > 0 != row.became {
				t.Errorf("%t, told %v", became, told)
			}
		})
	}
}
