//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// installed is a copy of the program that the test may replace; node.run starts it from then on.
func (n *node) installed() string {
	n.t.Helper()
	path := filepath.Join(n.folder, "bin", "kubelet-supervisor")
	data, err := os.ReadFile(binary)
	if err != nil {
		n.t.Fatal(err)
	}
	replaceProgram(n.t, path, string(data))
	n.program = path
	return path
}

// replaceProgram replaces as package managers do. No process is forked meanwhile: it would hold the file open for writing.
func replaceProgram(t *testing.T, path, content string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	written(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// seed assigns a configuration, as an earlier supervisor would have left it.
func (n *node) seed(name, content string) {
	n.t.Helper()
	s, err := store.Open(n.stateDir)
	if err != nil {
		n.t.Fatal(err)
	}
	c := source(name).ConfigMap
	if err := errors.Join(s.SaveCheckpoint(*c, map[string]string{"kubelet": content}), s.SaveSource(store.Assigned, c), s.Close()); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) reload() {
	n.t.Helper()
	if code, _, stderr := does("reload", "--run-dir="+n.runDir); code != exitOK {
		n.t.Fatalf("code %d: %s", code, stderr)
	}
}

// openFiles counts, for leaks; threads come and go.
func (p *supervisorProcess) openFiles() int {
	p.n.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Process.Pid))
	if err != nil {
		p.n.t.Fatal(err)
	}
	return len(files)
}

// inherited is what a kubelet got from whoever started it: its signals, umask, capabilities, limits, folder and environment.
func inherited(t *testing.T, pid int) string {
	t.Helper()
	var got []string
	proc := fmt.Sprintf("/proc/%d/", pid)
	for line := range strings.Lines(mustRead(t, proc+"status")) {
		if name, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"SigIgn", "Umask", "NoNewPrivs", "CapEff"}, name) {
			got = append(got, line)
		}
	}
	got = append(got, fmt.Sprintf("blocked signals: %x", blocked(t, proc)))
	folder, err := os.Readlink(proc + "cwd")
	if err != nil {
		t.Fatal(err)
	}
	environment := slices.Sorted(strings.SplitSeq(mustRead(t, proc+"environ"), "\x00"))
	return strings.Join(append(got, mustRead(t, proc+"limits"), folder, strings.Join(environment, "\n")), "\n")
}

// blocked has the signals that every thread blocks: Go's threads block all for the moment in which they start another.
func blocked(t *testing.T, proc string) uint64 {
	t.Helper()
	tasks, err := filepath.Glob(proc + "task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	all := ^uint64(0)
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(data), "SigBlk:\t")
		word, _, _ := strings.Cut(rest, "\n")
		mask, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		all &= mask
	}
	return all
}

// A hundred reloads: one process, one kubelet, the trial goes on, nothing leaks, and at the end the kubelet's exit status is still had.
func TestAHundredReloads(t *testing.T) {
	n := newNode(t)
	n.seed("a", fakenode.Configuration("mode: ok"))
	systemd := n.listenAsSystemd("30000000")
	t.Setenv("FAKE_KUBELET_RECORD", n.path("record"))
	n.program = written(t, filepath.Join(n.folder, "limited"), "#!/bin/sh\nulimit -S -n 1000\nexec "+binary+" \"$@\"\n") // a Go program raises its own
	p := n.run("--trial-period=1h")
	before := p.awaitHealthy()
	got := inherited(t, before.Child.PID)
	n.reload()
	files := p.openFiles()
	for range 99 {
		n.reload()
	}
	// The first may not have opened all of its own when it was looked at; one that is left open by each reload would make 99 more.
	fakenode.Await(t, "no file is left open by a reload", func() bool { return p.openFiles() < files+50 })
	after := p.awaitHealthy()
	if *after.Child != *before.Child || after.Supervisor != before.Supervisor || after.Reloads != 100 {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	if after.Trial == nil || after.Trial.Failures != 0 || after.Trial.Healthy <= before.Trial.Healthy || after.Condition.Reason != "InTrial" {
		t.Errorf("its trial: %+v, %+v", after.Trial, after.Condition)
	}
	fakenode.Await(t, "systemd hears of the end of each", func() bool { return systemd.count("READY=1") == 101 })
	if reloading := systemd.count("RELOADING=1\nMONOTONIC_USEC="); reloading != 100 {
		t.Errorf("systemd heard of %d reloads", reloading)
	}

	if err := syscall.Kill(after.Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var record supervisor.Record
	fakenode.Await(t, "another kubelet", func() bool {
		record = p.awaitHealthy()
		return record.Child.PID != after.Child.PID
	})
	if len(record.Exits) != 1 || !strings.HasSuffix(record.Exits[0].Words, "killed by SIGKILL") || record.Exits[0].Asked {
		t.Errorf("recorded %+v", record.Exits)
	}
	if diff := cmp.Diff(got, inherited(t, record.Child.PID)); diff != "" {
		t.Errorf("what the kubelet after the reloads got (-the first one +this one):\n%s", diff)
	}
	if all := mustRead(t, n.path("record")); n.count("start") != 2 || strings.Count(all, `"openFiles":"`) != strings.Count(all, `"openFiles":"1000"`) {
		t.Errorf("not two kubelets with the limit of open files that was set for the supervisor:\n%s", all)
	}
	p.term()
}

// What a kubelet says reaches the log once, before a reload and after it, and so do its last words.
func TestWhatAKubeletSaysAfterAReload(t *testing.T) {
	n := newNode(t)
	written(t, n.local, fakenode.Configuration("mode: crash, healthyFirst: true, after: 3s, words: out of luck, crashTimes: 1, counter: "+filepath.Join(n.folder, "starts")))
	p := n.run()
	first := p.awaitHealthy().Child.PID
	n.reload()
	var record supervisor.Record
	fakenode.Await(t, "another kubelet", func() bool {
		record = p.awaitHealthy()
		return record.Child.PID != first
	})
	if len(record.Exits) != 1 || !strings.HasSuffix(record.Exits[0].Words, "exit code 1: out of luck") {
		t.Errorf("recorded %+v", record.Exits)
	}
	p.term()
	for line, times := range map[string]int{`fake.go:1] "Starting kubelet"`: 2, `fake.go:1] "command failed" err="out of luck"`: 1} {
		if got := strings.Count(p.stderr.String(), line); got != times {
			t.Errorf("%s is in the log %d times", line, got)
		}
	}
}

// While it is replaced, a supervisor never looks dead to who reads /proc: its own commands, and another supervisor.
func TestAReloadDoesNotLookLikeAnEnd(t *testing.T) {
	n := newNode(t)
	p := n.run()
	p.awaitHealthy()
	over, looked := make(chan struct{}), make(chan string, 1)
	go func() {
		state := ""
		for {
			select {
			case <-over:
				looked <- state
				return
			default:
			}
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
			if fields := strings.Fields(string(data)); len(fields) > 2 && fields[2] == "Z" {
				state = string(data)
			}
		}
	}()
	for range 15 {
		n.reload()
	}
	close(over)
	if state := <-looked; state != "" {
		t.Errorf("it looked dead: %s", state)
	}
	p.term()
}

func TestAProgramThatCannotTakeOverIsRefused(t *testing.T) {
	whole, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	foreign := []byte(string(whole))
	foreign[18], foreign[19] = 0xf3, 0 // e_machine: RISC-V
	n := newNode(t)
	path := n.installed()
	systemd := n.listenAsSystemd("")
	p := n.run()
	before := p.awaitHealthy()
	for i, row := range []struct{ name, content, want string }{
		{"cut off", string(whole[:len(whole)/2]), "cannot take over"},
		{"cut off early", string(whole[:100]), "cannot take over"},
		{"empty", "", "cannot take over"},
		{"of another architecture", string(foreign), "exec format error"},
		{"one that does not know the flags", "#!/bin/sh\necho unknown flag: --self-check >&2\nexit 2\n", "exit status 2: unknown flag: --self-check"},
		{"one that dies", "#!/bin/sh\nkill -SEGV $$\n", "segmentation fault"},
	} {
		replaceProgram(t, path, row.content)
		code, stdout, stderr := does("reload", "--run-dir="+n.runDir)
		if code != exitInternal || stdout != "" || !strings.Contains(stderr, "the reload was refused and the running program goes on: ") || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: code %d, said %q and %q", row.name, code, stdout, stderr)
		}
		after := p.awaitHealthy()
		if *after.Child != *before.Child || after.Reloads != i+1 {
			t.Errorf("%s: %+v, %d reloads", row.name, after.Child, after.Reloads)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := does("reload", "--run-dir="+n.runDir); code != exitInternal || !strings.Contains(stderr, "permission denied") {
		t.Errorf("not executable: code %d, %s", code, stderr)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := does("reload", "--run-dir="+n.runDir); code != exitInternal || !strings.Contains(stderr, "no such file") {
		t.Errorf("removed: code %d, %s", code, stderr)
	}
	fakenode.Await(t, "systemd hears of the end of each", func() bool { return systemd.count("READY=1") == 9 })

	replaceProgram(t, path, string(whole))
	n.reload()
	if after := p.awaitHealthy(); *after.Child != *before.Child || after.ReloadFailure != "" {
		t.Errorf("a good one: %+v", after)
	}
	p.term()
}

// A new version behind the same link.
func TestALinkLeadsToTheNewProgram(t *testing.T) {
	n := newNode(t)
	old := n.installed()
	link, next := filepath.Join(n.folder, "current"), filepath.Join(n.folder, "next")
	if err := errors.Join(os.Symlink(old, link), os.Link(old, next)); err != nil {
		t.Fatal(err)
	}
	n.program = link
	p := n.run()
	p.awaitHealthy()
	replaceProgram(t, next, mustRead(t, binary)) // another file
	if err := errors.Join(os.Remove(link), os.Symlink(next, link)); err != nil {
		t.Fatal(err)
	}
	n.reload()
	if runs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.Process.Pid)); err != nil || runs != next {
		t.Errorf("%s runs, %v", runs, err)
	}
	p.term()
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The exit status of a kubelet that ends during a reload is had by one of the two programs, never by neither.
func TestAKubeletThatEndsDuringAReload(t *testing.T) {
	n := newNode(t)
	p := n.run()
	record := p.awaitHealthy()
	for i := range 20 {
		ended := record.Child.PID
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(i) * 3 * time.Millisecond) // another moment each time
		if err := syscall.Kill(ended, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		fakenode.Await(t, "another kubelet, and the answer", func() bool {
			record = p.awaitHealthy()
			return record.Child.PID != ended && record.Reloads == i+1
		})
		if exit := record.Exits[len(record.Exits)-1]; exit.Words != "exit code 0" || exit.Asked || len(record.Exits) != min(i+1, 10) || record.ReloadFailure != "" {
			t.Fatalf("recorded %+v", record)
		}
	}
	p.term()
}

// Signals in the middle of a reload end nobody.
func TestSignalsDuringAReload(t *testing.T) {
	n := newNode(t)
	p := n.run()
	before := p.awaitHealthy()
	for i := range 40 {
		for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGHUP} {
			if err := p.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Duration(i) * time.Millisecond) // another moment each time
		}
	}
	if code, _, stderr := does("retry", "--run-dir="+n.runDir); code != exitOK {
		t.Errorf("code %d: %s", code, stderr)
	}
	n.reload()
	after := p.awaitHealthy()
	if *after.Child != *before.Child {
		t.Errorf("another kubelet: %+v", after.Child)
	}
	// A SIGTERM in the first milliseconds of a program ends it (package signals), and the last SIGHUP may not have been heard yet.
	fakenode.Await(t, "no more reloads", func() bool {
		last := after.Reloads
		<-time.After(500 * time.Millisecond)
		after = p.awaitHealthy()
		return after.Reloads == last
	})
	p.term()
}

// A stop that comes while the program is being checked ends the reload, and not the other way round.
func TestAStopDuringAReload(t *testing.T) {
	n := newNode(t)
	path := n.installed()
	p := n.run()
	kubelet := p.awaitHealthy().Child.PID
	checking := filepath.Join(n.folder, "checking")
	replaceProgram(t, path, "#!/bin/sh\ntouch "+checking+"\nexec sleep 5\n")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	fakenode.Await(t, "the check", func() bool { _, err := os.Stat(checking); return err == nil })
	p.term()
	if err := syscall.Kill(kubelet, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the kubelet with pid %d: %v", kubelet, err)
	}
	record, _, err := supervisor.ReadRecord(n.runDir)
	if err != nil || record.ReloadFailure != "the supervisor was asked to stop before the reload" {
		t.Errorf("%v, %+v", err, record)
	}
}
