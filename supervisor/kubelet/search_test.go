//go:build linux

package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

const ourSecret, otherSecret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "BBCDEFGHIJKLMNOPQRSTUVWXYZ"

// beginning is a process that is about to be started, as a supervisor of the run folder would start its kubelet.
type beginning struct {
	t *testing.T
	kubeletSearch
	*exec.Cmd
}

func newBeginning(t *testing.T) *beginning {
	t.Helper()
	b := &beginning{t: t, kubeletSearch: kubeletSearch{
		kubelet: copyOf(t, fakeKubelet, filepath.Join(t.TempDir(), "kubelet")), runDir: t.TempDir(),
		arguments: []string{"--config=" + written(t, "kubelet.yaml", fake("mode: hang")), "--healthz-port=0"},
	}}
	b.Cmd = exec.Command(b.kubelet, b.arguments...)
	b.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(b.runDir, "notify"))
	b.writeTo(filepath.Join(b.runDir, "kubelet.log"))
	return b
}

func (b *beginning) writeTo(path string) {
	b.t.Helper()
	output, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { output.Close() })
	b.Stdout, b.Stderr = output, output
}

// instead runs another command line with the same environment and output.
func (b *beginning) instead(command string, arguments ...string) {
	b.Path, b.Args = command, append([]string{command}, arguments...)
}

// inNamespaces lets a shell prepare namespaces of its own, and then become the kubelet.
func (b *beginning) inNamespaces(preparation string) {
	line := append([]string{"-m", "--", "/bin/sh", "-c", preparation + ` && exec "$@"`, "sh"}, b.Args...)
	b.instead("/usr/bin/unshare", line...)
}

// begun starts the process and waits until it is what it is to be, the executable at path.
func (b *beginning) begun(path string) int {
	b.t.Helper()
	if err := b.Start(); err != nil {
		b.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { defer close(over); _ = b.Wait() }()
	b.t.Cleanup(func() { _ = b.Process.Kill(); <-over })
	fakenode.Await(b.t, path+" to run", func() bool {
		select {
		case <-over:
			b.t.Fatalf("it ended: %s", b.ProcessState)
		default:
		}
		// The kernel shows the executable a moment before the environment.
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", b.Process.Pid))
		return linked(fmt.Sprintf("/proc/%d/exe", b.Process.Pid)) == path && len(environment) > 0
	})
	return b.Process.Pid
}

// copyOf copies a program to a new file. No process is forked meanwhile: a file that is open for writing cannot be executed.
func copyOf(t *testing.T, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// readableByAll lets another user start it.
func (b *beginning) readableByAll() {
	for _, folder := range []string{filepath.Dir(b.kubelet), filepath.Dir(b.arguments[0][len("--config="):]), b.runDir} {
		for ; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
			_ = os.Chmod(folder, 0o755)
		}
	}
	if err := os.Chmod(b.arguments[0][len("--config="):], 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func TestLeftOversAreFoundWithoutARecord(t *testing.T) {
	elsewhere := func(b *beginning) string { // the same program, as another file
		b.instead(copyOf(b.t, fakeKubelet, filepath.Join(b.t.TempDir(), "real-kubelet")), b.Args[1:]...)
		return b.Path
	}
	withEffective := func(b *beginning) {
		b.Args = append(b.Args, "--config="+filepath.Join(b.runDir, "effective", "kubelet.yaml"))
		write(b.t, filepath.Join(b.runDir, EffectiveFile), fake("mode: hang"))
	}
	asRoot := func(b *beginning) {
		if os.Geteuid() != 0 {
			b.t.Skip("needs root")
		}
	}
	for name, test := range map[string]struct {
		change func(b *beginning) (path string) // before the start; gives the executable, empty = the kubelet
		after  func(b *beginning)               // after it
		found  bool
	}{
		"with local": {nil, nil, true},
		"its path is a link": {func(b *beginning) string {
			path, link := b.kubelet, filepath.Join(b.t.TempDir(), "link")
			if err := os.Symlink(path, link); err != nil {
				b.t.Fatal(err)
			}
			b.kubelet, b.Args = link, append(b.Args, "--v=4") // other flags than now: its executable tells
			return path
		}, nil, true},
		"with the effective file":         {func(b *beginning) string { withEffective(b); return "" }, nil, true},
		"with other flags than now":       {func(b *beginning) string { b.Args = append(b.Args, "--v=4"); return "" }, nil, true},
		"behind a script, with local":     {elsewhere, nil, true},
		"behind a script, with effective": {func(b *beginning) string { withEffective(b); return elsewhere(b) }, nil, true},
		"its output is another": {func(b *beginning) string {
			b.writeTo(filepath.Join(b.t.TempDir(), "another.log"))
			return ""
		}, nil, true},
		"behind a script, with a stream of journald": {func(b *beginning) string {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				b.t.Fatal(err)
			}
			ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
			b.t.Cleanup(func() { ours.Close(); theirs.Close() })
			b.Stdout, b.Stderr = theirs, theirs
			return elsewhere(b)
		}, nil, true},
		"its executable was replaced": {nil, func(b *beginning) {
			if err := os.Rename(copyOf(b.t, fakeKubelet, b.kubelet+".new"), b.kubelet); err != nil {
				b.t.Fatal(err)
			}
		}, true},
		"its executable was removed": {nil, func(b *beginning) { _ = os.Remove(b.kubelet) }, true},
		"the run folder was made anew": {nil, func(b *beginning) {
			if err := os.RemoveAll(b.runDir); err != nil {
				b.t.Fatal(err)
			}
			write(b.t, filepath.Join(b.runDir, outputFile), "")
		}, true},

		"with the secret of the run folder": {func(b *beginning) string {
			b.secret = ourSecret
			b.Env = append(b.Env, secretVariable+ourSecret)
			return ""
		}, nil, true},
		"a stranger's, with all its words": {func(b *beginning) string { b.secret = ourSecret; return "" }, nil, false},
		"a stranger's, with another secret": {func(b *beginning) string {
			b.secret = ourSecret
			b.Env = append(b.Env, secretVariable+otherSecret)
			return ""
		}, nil, false},
		"a program with the set-user-ID bit, of another user": {func(b *beginning) string {
			asRoot(b)
			b.readableByAll()
			if err := os.Chmod(b.kubelet, 0o755|os.ModeSetuid); err != nil {
				b.t.Fatal(err)
			}
			b.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			return ""
		}, func(b *beginning) {
			if info, err := os.Stat(fmt.Sprintf("/proc/%d", b.Process.Pid)); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
				b.t.Skip("the set-user-ID bit counts for nothing where temporary files are")
			}
		}, false},
		"a pre-flight, or one that a person started": {func(b *beginning) string { b.Env = os.Environ(); return "" }, nil, false},
		"of a supervisor with another run folder":    {func(b *beginning) string { b.Env = append(b.Env, "NOTIFY_SOCKET=/run/other/notify"); return "" }, nil, false},
		"a program that a kubelet started":           {func(b *beginning) string { b.instead(sleepPath(b.t), "1000"); return sleepPath(b.t) }, nil, false},
		"behind a script, with other flags": {func(b *beginning) string {
			path := elsewhere(b)
			b.Args = append(b.Args, "--v=4")
			return path
		}, nil, false},
		"of another user": {func(b *beginning) string {
			asRoot(b)
			b.readableByAll()
			b.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			return ""
		}, nil, false},
		"of another node: a container with a run folder of its own": {func(b *beginning) string {
			asRoot(b)
			b.inNamespaces("mount -t tmpfs none " + b.runDir)
			return ""
		}, nil, false},
		"of another node: another pid namespace": {func(b *beginning) string {
			asRoot(b)
			b.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
			return ""
		}, nil, false},
		"in a mount namespace of its own that sees the same run folder": {func(b *beginning) string { // PrivateTmp= of a unit
			asRoot(b)
			b.inNamespaces("true")
			return ""
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeginning(t)
			path := ""
			if test.change != nil {
				path = test.change(b)
			}
			if path == "" {
				path = b.kubelet
			}
			pid := b.begun(path)
			if test.after != nil {
				test.after(b)
			}
			found, err := b.leftOvers()
			if err != nil {
				t.Fatal(err)
			}
			var want []Process
			if test.found {
				want = []Process{ProcessOf(pid)}
			}
			if !slices.Equal(found, want) {
				t.Errorf("found %+v, want %+v", found, want)
			}
		})
	}
}

func TestTheKubeletOfASupervisorThatLives(t *testing.T) {
	t.Parallel()
	b := newBeginning(t)
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	supervisor := copyOf(t, shell, filepath.Join(t.TempDir(), filepath.Base(linked("/proc/self/exe"))))
	b.instead(supervisor, append([]string{"-c", `"$@" & wait`, "sh"}, b.Args...)...)
	pid := b.begun(supervisor)
	var kubelet int
	fakenode.Await(t, "its kubelet", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		kubelet, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		return kubelet > 0 && linked(fmt.Sprintf("/proc/%d/exe", kubelet)) == b.kubelet
	})
	t.Cleanup(func() { _ = syscall.Kill(kubelet, syscall.SIGKILL) })
	found, err := b.leftOvers()
	if want := fmt.Sprintf("another supervisor (pid %d) runs a kubelet with this run folder", pid); len(found) > 0 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %+v, %v", found, err)
	}
	l := NewLauncher(Settings{Path: b.kubelet, Arguments: b.arguments, RunDir: b.runDir, Logger: zap.NewNop()})
	other := new(SupervisedError)
	if _, err := l.StopLeftOvers(nil, time.Minute); !errors.As(err, &other) || other.PID != pid || !ProcessOf(kubelet).Alive() {
		t.Errorf("stopping left-overs: %v", err)
	}
}

// A supervisor that was itself started as a kubelet of its run folder would be, as by a script, finds neither itself nor who started it: this
// test binary again, told so by its environment.
func TestWeAreNotLeftOver(t *testing.T) {
	const variable = "KUBELET_TEST_SEARCH_IN"
	if runDir := os.Getenv(variable); runDir != "" {
		found, err := kubeletSearch{kubelet: linked("/proc/self/exe"), runDir: runDir}.leftOvers()
		if len(found) > 0 || err != nil {
			t.Errorf("found %+v, %v", found, err)
		}
		return
	}
	runDir := t.TempDir()
	command := exec.Command("/proc/self/exe", "-test.run=^TestWeAreNotLeftOver$")
	command.Env = append(os.Environ(), variable+"="+runDir, fakenode.BuiltVariable+"="+fakeKubelet, "NOTIFY_SOCKET="+filepath.Join(runDir, notifyFile))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// A supervisor that has started nothing yet knows its kubelets by the secret in the run folder, and leaves what has another one alone.
func TestTheSecretOfTheRunFolderDecides(t *testing.T) {
	for secret, ends := range map[string]bool{ourSecret: true, otherSecret: false} {
		b := newBeginning(t)
		b.Env = append(b.Env, secretVariable+secret)
		write(t, filepath.Join(b.runDir, secretFile), ourSecret)
		pid := b.begun(b.kubelet)
		l := NewLauncher(Settings{Path: b.kubelet, Arguments: b.arguments, RunDir: b.runDir, Logger: zap.NewNop()})
		if _, err := l.StopLeftOvers(nil, time.Minute); err != nil {
			t.Error(err)
		}
		if alive := ProcessOf(pid).StartTime > 0; alive == ends {
			t.Errorf("with the secret %s it lives: %t", secret, alive)
		}
	}
}

// A process is awaited until the time is over, and no longer than it is there.
func TestAwaitGone(t *testing.T) {
	child := childOf(t, nil, nil, "sleep", "1000")
	lives := child.Process()
	if awaitGone(lives, time.Nanosecond) {
		t.Error("it lives, and is taken for gone")
	}
	_ = child.command.Process.Kill()
	if !awaitGone(lives, time.Minute) {
		t.Error("it is gone, and awaited")
	}
}

func TestAncestors(t *testing.T) {
	line := withAncestors(os.Getpid())
	if len(line) < 2 || line[0] != os.Getpid() || line[1] != os.Getppid() || slices.Contains(line, 0) {
		t.Errorf("with its ancestors it is %v", line)
	}
}

// Another supervisor is a process of our user that runs this program, in whatever version.
func TestIsSupervisor(t *testing.T) {
	folder := shortFolder(t)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	namesake := copyOf(t, sleepPath(t), filepath.Join(folder, filepath.Base(linked("/proc/self/exe"))))
	gone := childOf(t, nil, nil, "true")
	_ = gone.command.Wait()
	rows := map[string]struct {
		pid  int
		want bool
	}{
		"this one":        {os.Getpid(), true},
		"another version": {childOf(t, nil, nil, namesake, "1000").command.Process.Pid, true},
		"another program": {childOf(t, nil, nil, "sleep", "1000").command.Process.Pid, false},
		"nobody":          {gone.command.Process.Pid, false},
	}
	if os.Geteuid() == 0 {
		of := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		rows["of another user"] = struct {
			pid  int
			want bool
		}{childOf(t, nil, of, namesake, "1000").command.Process.Pid, false}
	}
	for name, row := range rows {
		if got := isSupervisor(row.pid); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
		if other := !row.want && name != "nobody"; IsOtherProgram(row.pid) != other { // of nobody nothing is known
			t.Errorf("%s: another program: %t", name, !other)
		}
	}
}

// A process that is just ending has no command line any more.
func TestACommandLineThatIsEmpty(t *testing.T) {
	if (kubeletSearch{}).isOurCommandLine(nil) {
		t.Error("it is taken for a kubelet's")
	}
	for _, path := range []string{written(t, "cmdline", ""), filepath.Join(t.TempDir(), "absent")} {
		if words := zeroSeparated(path); len(words) > 0 {
			t.Errorf("it has the words %q", words)
		}
	}
	if words := zeroSeparated(written(t, "cmdline", "a\x00\x00b\x00")); !slices.Equal(words, []string{"a", "", "b"}) {
		t.Errorf("it has the words %q", words)
	}
	absent, there := filepath.Join(t.TempDir(), "absent"), t.TempDir()
	if sameFile(absent, there) || sameFile(there, absent) || sameFile(absent, absent) || !sameFile(there, there) {
		t.Error("what is absent is no file")
	}
}

func sleepPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func BenchmarkLookingForLeftOvers(b *testing.B) {
	search := kubeletSearch{kubelet: fakeKubelet, runDir: b.TempDir()}
	for b.Loop() {
		if found, err := search.leftOvers(); len(found) > 0 || err != nil {
			b.Fatal(found, err)
		}
	}
}
