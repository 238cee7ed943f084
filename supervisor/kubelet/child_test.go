//go:build linux

package kubelet

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
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
			child := &Child{launcher: &Launcher{Settings: Settings{AskRuntime: host.RuntimeAnswers}}, endpoints: kubeletconfig.Endpoints{Runtime: test.endpoint}, fallbackRuntime: test.fallback}
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
	child := &Child{launcher: NewLauncher(Settings{AskRuntime: host.RuntimeAnswers}), command: exec.Command("false"), endpoints: kubeletconfig.Endpoints{Runtime: "unix://" + socket}, fallbackRuntime: socket}
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

// Without anybody who knows the runtime's protocol, only a socket that refuses is down.
func TestARuntimeThatCannotBeAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runtime")
	child := &Child{launcher: &Launcher{}, endpoints: kubeletconfig.Endpoints{Runtime: path}, fallbackRuntime: path}
	if !child.runtimeDown("") {
		t.Error("it refuses, and is not down")
	}
	fakenode.Listen(t, "unix", path)
	if child.runtimeDown("") {
		t.Error("it refuses nothing, and is down")
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

// What is told of an exit, by what the kubelet did, what its log says, and what we did.
func TestWhatAnExitTells(t *testing.T) {
	const refused = errorHeader + `"command failed" err="failed to run Kubelet: no such cgroup"` + "\n"
	const validate = "failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///a\": rpc error: code = "
	for name, row := range map[string]struct {
		script, log, hung string
		asked             bool
		want              Exited
		words             string
	}{
		"an error":                          {script: "exit 1", log: refused, want: Exited{Code: 1}, words: "exit code 1: failed to run Kubelet: no such cgroup"},
		"without a word":                    {script: "exit 3", want: Exited{Code: 3}, words: "exit code 3"},
		"an end that is none of its errors": {script: "exit 0", log: refused, want: Exited{Code: 0}, words: "exit code 0"},
		"a signal":                          {script: "kill -TERM $$", want: Exited{Code: -1}, words: "killed by SIGTERM"},
		"a signal, and an error before":     {script: "kill -ABRT $$", log: refused, want: Exited{Code: -1}, words: "killed by SIGABRT: failed to run Kubelet: no such cgroup"},
		"SIGKILL is explained by no words":  {script: "kill -KILL $$", log: refused, want: Exited{Code: -1}, words: "killed by SIGKILL"},
		"it hung":                           {script: "exit 2", hung: "it does not ping", want: Exited{Code: 2}, words: "it does not ping; exit code 2"},
		"its runtime is away":               {script: "exit 1", log: errorHeader + strconv.Quote("command failed") + " err=" + strconv.Quote(validate+"Unavailable desc = a") + "\n", want: Exited{Code: 1, RuntimeDown: true}, words: "the container runtime at unix:///a does not answer; exit code 1: " + validate + "Unavailable desc = a"},
		"its runtime is away, and we asked": {script: "exit 1", asked: true, want: Exited{Asked: true, Code: 1}, words: "exit code 1"},
		"its runtime is away, and it ended": {script: "exit 0", want: Exited{Code: 0}, words: "exit code 0"},
	} {
		t.Run(name, func(t *testing.T) {
			child := &Child{launcher: NewLauncher(Settings{}), command: exec.Command("/bin/sh", "-c", row.script)}
			if strings.HasPrefix(name, "its runtime") {
				child.endpoints.Runtime, child.fallbackRuntime = "unix:///a", "unix:///a"
			}
			child.launcher.countKills = func() int { return -1 }
			_ = child.command.Run()
			child.asked.Store(row.asked)
			if row.hung != "" {
				child.hung.Store(&row.hung)
			}
			got := child.exited(child.command.ProcessState, nil, []byte(row.log))
			row.want.Words, row.want.Delay = row.words, got.Delay
			if got != row.want {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

// A kubelet that had the lock file is started without it once it ended as if it were not allowed to have it; what else ends it says nothing of that.
func TestWhatSpeaksAgainstTheLockFile(t *testing.T) {
	const denied = errorHeader + `"command failed" err="failed to run Kubelet: unable to acquire file lock on \"/lock\": permission denied"` + "\n"
	for name, row := range map[string]struct {
		script, log    string
		locked, asked  bool
		healthy        time.Duration
		cannot, saysSo bool
	}{
		"it says so":                  {script: "exit 1", log: denied, locked: true, cannot: true, saysSo: true},
		"it says so later":            {script: "exit 1", log: denied, locked: true, healthy: time.Hour, cannot: true, saysSo: true},
		"it says so and ends well":    {script: "exit 0", log: denied, locked: true},
		"it has no lock file":         {script: "exit 1", log: denied},
		"we asked it to end":          {script: "exit 1", log: denied, locked: true, asked: true},
		"a signal":                    {script: "kill -TERM $$", locked: true},
		"without a word":              {script: "exit 1", locked: true, cannot: true},
		"without a word, was healthy": {script: "exit 1", locked: true, healthy: time.Second},
		"with other words":            {script: "exit 1", log: "other words\n", locked: true},
	} {
		t.Run(name, func(t *testing.T) {
			child := &Child{launcher: NewLauncher(Settings{}), command: exec.Command("/bin/sh", "-c", row.script), locked: row.locked}
			child.healthy.sum = row.healthy
			_ = child.command.Run()
			child.asked.Store(row.asked)
			exited := child.exited(child.command.ProcessState, nil, []byte(row.log))
			if cannot := child.launcher.cannotLock.Load(); cannot != row.cannot || exited.LockDenied != row.saysSo {
				t.Errorf("cannot lock %t, denied %t", cannot, exited.LockDenied)
			}
		})
	}
}

// The words of a kubelet that has a journal stream are asked for only where they would be told; those of the others are in their file.
func TestWhereTheLastWordsAre(t *testing.T) {
	folder := t.TempDir()
	const inJournal, inFile = "E0102 15:04:05.000000 1 a.go:1] of the journal\n", "of the file\n"
	write(t, filepath.Join(folder, "journalctl"), "#!/bin/sh\nprintf '%s' '"+inJournal+"'\n")
	if err := os.Chmod(filepath.Join(folder, "journalctl"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	for name, row := range map[string]struct {
		script           string
		journaled, asked bool
		want             string
	}{
		"an error, to the journal":           {"exit 1", true, false, inJournal},
		"an error, to the file":              {"exit 1", false, false, inFile},
		"we asked for its end":               {"exit 1", true, true, ""},
		"it ended well":                      {"exit 0", true, false, ""},
		"it was killed":                      {"kill -KILL $$", true, false, ""},
		"how it ended is not known":          {"", true, false, ""},
		"how it ended is not known, to file": {"", false, false, inFile},
	} {
		t.Run(name, func(t *testing.T) {
			child := &Child{launcher: NewLauncher(Settings{RunDir: t.TempDir()}), command: exec.Command("/bin/sh", "-c", "echo of the file; "+row.script), journaled: row.journaled, begun: time.Now()}
			if err := child.launcher.output.attach(child.command); err != nil {
				t.Fatal(err)
			}
			_ = child.command.Run()
			child.asked.Store(row.asked)
			state := child.command.ProcessState
			if row.script == "" {
				state = nil
			}
			if got := child.lastWords(t.Context(), state); string(bytes.TrimSpace(got)) != strings.TrimSpace(row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// What would run if a child failed is asked about its runtime and its port, and may be the command line alone.
func TestFallBackTo(t *testing.T) {
	local := written(t, "local.yaml", header+"containerRuntimeEndpoint: unix:///local\nhealthzPort: 1001\n")
	committed := written(t, "committed.yaml", header+"containerRuntimeEndpoint: unix:///committed\nhealthzPort: 1002\n")
	for _, row := range []struct{ file, want, runtime, healthz string }{
		{"", local, "unix:///local", "127.0.0.1:1001"},
		{committed, committed, "unix:///committed", "127.0.0.1:1002"},
	} {
		child := &Child{launcher: NewLauncher(Settings{Arguments: []string{"--config=" + local}})}
		child.FallBackTo(row.file)
		if child.fallback != row.want || child.fallbackRuntime != row.runtime || child.fallbackHealthz != row.healthz {
			t.Errorf("%q: %s, %s, %s", row.file, child.fallback, child.fallbackRuntime, child.fallbackHealthz)
		}
	}
}
