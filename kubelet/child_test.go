package kubelet

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestRuntimeDown(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return "unix://" + filepath.Join(folder, name) }
	up, down, silent, mute, closing := at("up"), at("down"), at("silent"), at("mute"), at("closing")
	fakenode.Runtime(t, filepath.Join(folder, "up"))
	fakenode.Listen(t, "unix", filepath.Join(folder, "closing"))
	for _, name := range []string{"silent", "mute"} {
		listener, err := net.Listen("unix", filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if name == "mute" {
			go func() { // ends with the listener
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					t.Cleanup(func() { _ = connection.Close() })
				}
			}()
		}
	}
	const (
		validate    = "failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///a\": rpc error: code = "
		unavailable = "Unavailable desc = connection error: desc = \"error reading server preface: read unix @->/a: use of closed network connection\""
	)
	for name, test := range map[string]struct {
		endpoint, fallback string
		last               string
		want               bool
	}{
		"it answers":                            {up, up, "", false},
		"it does not answer":                    {down, down, "", true},
		"a path without scheme":                 {filepath.Join(folder, "down"), filepath.Join(folder, "down"), "", true},
		"the fallback has other words":          {down, "unix:" + filepath.Join(folder, "down"), "", true},
		"the fallback would ask another":        {down, up, "", false},
		"it is not known":                       {"", "", "", false},
		"nothing can be said of other schemes":  {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1", "", false},
		"nothing can be said of what is no URL": {"unix://%zz", "unix://%zz", "", false},
		"nobody accepts":                        {silent, silent, validate + unavailable, true},
		"nobody accepts, other words":           {silent, silent, "failed to run Kubelet: misconfiguration", true},
		"it accepts and never answers":          {mute, mute, "", true},
		"a path of one that never answers":      {filepath.Join(folder, "mute"), mute, "", true},
		"it closes the connection":              {closing, closing, "", true},
		"hung, the fallback would ask another":  {silent, up, validate + unavailable, false},
		"it answers again":                      {up, up, validate + unavailable, true},
		"it answers again, kubelet 1.25":        {up, up, "failed to run Kubelet: unable to determine runtime API version: rpc error: code = " + unavailable, true},
		"a deadline of the configuration":       {up, up, validate + "DeadlineExceeded desc = context deadline exceeded: rpc error: code = Unavailable", false},
		"the image service does not answer":     {up, up, strings.Replace(validate, "runtime API", "image API", 1) + unavailable, false},
		"the words in another error":            {up, up, "failed to validate kubelet configuration: \"" + validate + unavailable, false},
		"an answer that the kubelet cannot use": {up, up, validate + "Unimplemented desc = unknown service", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := &Child{launcher: &Launcher{Settings: Settings{AskRuntime: host.RuntimeAnswers}}, endpoints: config.Endpoints{Runtime: test.endpoint}, fallbackRuntime: test.fallback}
			begun := time.Now()
			if got := child.runtimeDown(test.last); got != test.want {
				t.Errorf("down: %t", got)
			}
			if took := time.Since(begun); took > 3*time.Second { // 2 s, and a busy machine
				t.Errorf("it took %s", took)
			}
		})
	}
}

// An exit while the runtime hangs is told with the kubelet's own last words.
func TestExitWithoutARuntime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "silent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	child := &Child{launcher: NewLauncher(Settings{AskRuntime: host.RuntimeAnswers}), command: exec.Command("false"), endpoints: config.Endpoints{Runtime: "unix://" + socket}, fallbackRuntime: socket}
	_ = child.command.Run()
	exited := child.exited(child.command.ProcessState, nil, []byte(errorHeader+`"command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///a\": `+
		`rpc error: code = DeadlineExceeded desc = context deadline exceeded"`+"\n"))
	if !exited.RuntimeDown || !strings.Contains(exited.Words, "does not answer; exit code 1: failed to run Kubelet: validate service connection") {
		t.Errorf("got %+v", exited)
	}
}

func TestAWaitThatIsOverIsNoRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "up")
	fakenode.Listen(t, "unix", path)
	if refusesConnections(path, time.Nanosecond) {
		t.Error("a socket that listens is taken for one that refuses")
	}
}

func TestBackoff(t *testing.T) {
	l := NewLauncher(Settings{})
	const asked = true
	for i, exit := range []struct {
		command string
		asked   bool
		healthy time.Duration
		want    time.Duration
	}{
		{"false", !asked, 0, 250 * time.Millisecond},
		{"false", !asked, time.Second, 500 * time.Millisecond},
		{"true", asked, 0, 0},
		{"false", asked, time.Second, 0},
		{"true", !asked, time.Second, 0},
		{"true", !asked, 0, time.Second}, // a command line that makes it exit at once
		{"false", !asked, 0, 2 * time.Second},
		{"false", !asked, 0, 4 * time.Second},
		{"false", !asked, 0, 8 * time.Second},
		{"false", !asked, 0, 10 * time.Second},
		{"false", !asked, time.Second, 10 * time.Second},
		{"false", !asked, stableAfter, 250 * time.Millisecond},
		{"false", !asked, 0, 500 * time.Millisecond},
		{"true", asked, stableAfter, 0},
		{"false", !asked, 0, 250 * time.Millisecond},
	} {
		child := &Child{launcher: l, command: exec.Command(exit.command)}
		_ = child.command.Run()
		child.asked.Store(exit.asked)
		child.healthy.sum = exit.healthy
		if got := child.exited(child.command.ProcessState, nil, nil).Delay; got != exit.want {
			t.Errorf("exit %d waits %s, want %s", i, got, exit.want)
		}
	}
}

func TestAnExitStatusThatIsNotKnown(t *testing.T) {
	l := NewLauncher(Settings{})
	child := &Child{launcher: l}
	child.asked.Store(true)
	exited := child.exited(nil, errors.New("no child processes"), nil)
	if !exited.Asked || exited.Code != -1 || exited.Words != "its exit status is unavailable: no child processes" {
		t.Errorf("got %+v", exited)
	}
}
