//go:build linux

package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// attendScript starts a script in the place of the kubelet, with a --config of its own, and gives what is told of it until the test ends. $OWN and $PORT
// are what the command line of the unit says.
func attendScript(t *testing.T, script, own, given string) <-chan Event {
	t.Helper()
	l, c := startScript(t, script, own, given)
	return attend(t, l, c)
}

func startScript(t *testing.T, script, own, given string) (*Launcher, *Child) {
	t.Helper()
	port := fmt.Sprint(fakenode.FreePort(t))
	own = written(t, "own.yaml", fake(own))
	script = strings.NewReplacer("$OWN", own, "$PORT", port, "$OTHER", fmt.Sprint(fakenode.FreePort(t))).Replace(script)
	l := NewLauncher(Settings{Path: executable(t, script), Arguments: []string{"--config=" + own, "--healthz-port=" + port}, RunDir: t.TempDir(),
		Logger: zap.NewNop(), StartTimeout: time.Minute, Output: fakenode.NewOutput(t).Pipe})
	c, err := l.Start(Spec{File: given})
	if err != nil {
		t.Fatal(err)
	}
	c.FallBackTo("")
	return l, c
}

func attend(t *testing.T, l *Launcher, c *Child) <-chan Event {
	t.Helper()
	seen, over := make(chan Event, 1000), make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	go func() { defer close(over); c.Attend(ctx, func(e Event) { seen <- e }) }()
	t.Cleanup(func() {
		end()
		_, _ = l.StopLeftOvers(nil, time.Second)
		_ = c.command.Process.Kill()
		<-over
		l.Close()
	})
	return seen
}

// What runs is what the child's own command line says, after its start (rule 25).
func TestAScriptThatDoesNotHandOnItsArguments(t *testing.T) {
	const swallows = "does not hand on the arguments that it is given: the kubelet that runs (pid "
	for name, test := range map[string]struct {
		script string
		own    string // how the kubelet behaves with its own --config; empty: mode ok
		local  bool   // it is given no configuration
		says   string // part of what is told; empty: nothing is
	}{
		"it hands them on":                              {script: `exec ` + fakeKubelet + ` --config=$OWN "$@"`},
		"it swallows them":                              {script: `exec ` + fakeKubelet + ` --config=$OWN --healthz-port=$PORT`, says: swallows},
		"it swallows them, and listens elsewhere":       {script: `exec ` + fakeKubelet + ` --config=$OWN --healthz-port=$OTHER`, says: swallows},
		"it swallows them, and what it runs ends":       {script: `exec ` + fakeKubelet + ` --config=$OWN --healthz-port=$OTHER`, own: "mode: crash, after: 200ms", says: swallows},
		"it swallows them, and has no --config":         {script: `exec ` + fakeKubelet + ` --healthz-port=$PORT`, says: ") was started without --config"},
		"its own --config comes last, and counts":       {script: `exec ` + fakeKubelet + ` "$@" --config $OWN`, says: "was started with --config="},
		"local is whatever it does":                     {script: `exec ` + fakeKubelet + ` --config=$OWN --healthz-port=$PORT`, local: true},
		"it does not become the kubelet":                {script: fakeKubelet + ` "$@" # and goes on`, says: "did not become the kubelet: its child (pid "},
		"it does not become the kubelet, on no account": {script: fakeKubelet + ` "$@" # and goes on`, local: true, says: "did not become the kubelet: its child (pid "},
	} {
		t.Run(name, func(t *testing.T) {
			given := written(t, "given.yaml", fake("mode: ok"))
			if test.local {
				given = ""
			}
			for e := range attendScript(t, test.script, cmp.Or(test.own, "mode: ok"), given) {
				switch e := e.(type) {
				case NotInUse:
					if test.says == "" || !strings.Contains(e.Words, test.says) {
						t.Errorf("told: %s", e.Words)
					}
					return
				case Healthy, Exited:
					if test.says != "" {
						t.Errorf("%T, and nothing was told before", e)
					}
					return
				}
			}
		})
	}
}

// A script may become other programs on its way to the kubelet: what was said of them is taken back.
func TestAScriptThatBecomesTheKubeletAtLast(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	script := `export GIVEN="$*"; exec sh -c 'read line <` + gate + `; exec ` + fakeKubelet + ` $GIVEN'`
	var told []string
	for e := range attendScript(t, script, "mode: ok", written(t, "given.yaml", fake("mode: ok"))) {
		switch e := e.(type) {
		case NotInUse:
			told = append(told, e.Words)
			if len(told) == 1 {
				if err := os.WriteFile(gate, []byte("go on\n"), 0); err != nil {
					t.Fatal(err)
				}
			}
		case Healthy, Exited:
			if len(told) != 2 || told[0] == "" || told[1] != "" || e != (Healthy{}) {
				t.Errorf("told %q before it was %#v", told, e)
			}
			return
		}
	}
}

// A supervisor that takes over looks for itself.
func TestAScriptThatDoesNotHandOnItsArgumentsAfterAReload(t *testing.T) {
	before, c := startScript(t, `exec `+fakeKubelet+` --config=$OWN --healthz-port=$PORT`, "mode: ok", written(t, "given.yaml", fake("mode: ok")))
	t.Cleanup(before.Close)
	after := NewLauncher(before.Settings)
	after.Inherit(before.HandOver(), nil)
	inherited, err := after.InheritChild(c.HandOver())
	if err != nil {
		t.Fatal(err)
	}
	for e := range attend(t, after, inherited) {
		switch e := e.(type) {
		case NotInUse:
			return
		case Healthy, Exited:
			t.Fatalf("%T, and nothing was told before", e)
		}
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
