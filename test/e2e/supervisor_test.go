//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// options of startSupervisor; the zero value is a supervisor with new folders, quick trials and no edit spread.
type options struct {
	Flags        []string    // of run, after the quick ones: the last wins
	KubeletFlags []string    // after the cluster's: the last wins
	Kubelet      string      // its path; "": the real one
	Local        string      // the local KubeletConfiguration, written into the file that --config names; "": kubeletConfig()
	Binary       string      // the supervisor's; "": the one under test
	After        *supervised // of this test, stopped: its folders, local file included, are kept
	Environment  []string    // NAME=VALUE, in addition
	Swaps        string      // a file in the place of /proc/swaps, which may be written; "": none
}

var quickFlags = []string{"--trial-period=5s", "--edit-spread=0", "--log-format=text"}

// A supervised node's supervisor, which runs or has run.
type supervised struct {
	Folder    string // state/, run/, kubelet.yaml (the local configuration), log
	StateDir  string
	RunDir    string
	LocalFile string

	binary  string
	node    *node
	command *exec.Cmd
	done    chan struct{} // closed when it has been waited for
}

// startSupervisor runs the real binary in the node as the parent of the real kubelet, and does not wait for it. At the end of
// the test it is stopped, if it still runs, and has to leave with 0 and no kubelet.
func (n *node) startSupervisor(t *testing.T, o options) *supervised {
	t.Helper()
	s := n.prepareSupervisor(t, o)
	kubelet := n.kubeletCommandLine(s, o.KubeletFlags...)
	if o.Kubelet != "" {
		kubelet[0] = o.Kubelet
	}
	arguments := slices.Concat([]string{"run", "--state-dir=" + s.StateDir, "--run-dir=" + s.RunDir}, quickFlags, o.Flags, []string{"--"}, kubelet)
	s.command = n.Command(s.binary, arguments...)
	if o.Swaps != "" { // the shell becomes the supervisor
		s.command = n.Command("unshare", append([]string{"--mount", "--propagation=slave", "sh", "-c", `mount --bind "$0" /proc/swaps && exec "$@"`, o.Swaps, s.binary}, arguments...)...)
	}
	s.command.Env = append(os.Environ(), o.Environment...)
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.command.Stdout, s.command.Stderr = log, log
	// A session of its own, as systemd gives it: a terminal's Ctrl-C is for the test, and the end of a supervisor with a stopped kubelet is not
	// that of a job of ours, for which the kernel sends all of its group a SIGHUP.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process, which the cleanup waits for
		_ = s.command.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("the supervisor's last words (%s):\n%s", s.logFile(), s.lastWords())
		}
	})
	return s
}

// kubeletCommandLine is the administrator's, for this supervisor's local file.
func (n *node) kubeletCommandLine(s *supervised, flags ...string) []string {
	words := n.KubeletArguments(flags...)
	words[slices.Index(words, "--config="+n.KubeletConfigFile())] = "--config=" + s.LocalFile
	return words
}

func (n *node) prepareSupervisor(t *testing.T, o options) *supervised {
	t.Helper()
	s := &supervised{node: n, binary: o.Binary, done: make(chan struct{})}
	if s.binary == "" {
		s.binary = supervisorBinary(t)
	}
	if o.After != nil {
		s.Folder = o.After.Folder
	} else {
		// Below the cluster's folder, which is short enough for sockets and goes with the cluster.
		s.Folder = filepath.Join(n.Folder, fmt.Sprintf("supervisor-%d", n.supervisors.Add(1)))
	}
	s.StateDir, s.RunDir, s.LocalFile = filepath.Join(s.Folder, "state"), filepath.Join(s.Folder, "run"), filepath.Join(s.Folder, "kubelet.yaml")
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if o.After == nil || o.Local != "" {
		if o.Local == "" {
			o.Local = n.kubeletConfig()
		}
		s.writeLocal(t, o.Local)
	}
	return s
}

// startedLocal starts a supervisor and waits until its kubelet runs locally and the Node says so.
func (n *node) startedLocal(t *testing.T, o options) *supervised {
	t.Helper()
	s := n.startSupervisor(t, o)
	n.awaitReason(t, "", "Local")
	return s
}

// awaitAsked waits until it is known what the first kubelet runs with, so that its files may change.
func (s *supervised) awaitAsked(t *testing.T) {
	t.Helper()
	await(t, "the kubelet told what it runs with", func() error {
		if log := s.log(t); !strings.Contains(log, "the kubelet told what it runs with") {
			return errors.New("not yet")
		}
		return nil
	})
}

// writeLocal replaces the local KubeletConfiguration.
func (s *supervised) writeLocal(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(s.LocalFile+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.LocalFile+".new", s.LocalFile); err != nil {
		t.Fatal(err)
	}
}

func (s *supervised) pid() int { return s.command.Process.Pid }

// ended waits until the supervisor has ended and returns its exit code, -1 for a signal.
func (s *supervised) ended(t *testing.T) int {
	t.Helper()
	await(t, "the supervisor ends", func() error {
		select {
		case <-s.done:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	return s.command.ProcessState.ExitCode()
}

// stop asks the supervisor to end and checks that it leaves with 0 and no kubelet. It does nothing when it has ended before.
func (s *supervised) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		return
	default:
	}
	_ = s.command.Process.Signal(syscall.SIGTERM)
	if code := s.ended(t); code != 0 {
		t.Errorf("the supervisor was asked to stop and left with exit code %d", code)
	}
	if left := s.node.kubelets(t); len(left) > 0 {
		t.Errorf("the supervisor left kubelets: %v", left)
	}
}

// kill ends the supervisor alone, with SIGKILL; its kubelet stays, and is for the next supervisor with these folders, or for
// the end of the test.
func (s *supervised) kill(t *testing.T) {
	t.Helper()
	_ = s.command.Process.Kill()
	s.ended(t)
	t.Cleanup(func() {
		for _, left := range s.node.kubelets(t) {
			_ = syscall.Kill(left.ID, syscall.SIGKILL)
		}
	})
}

// kubelet is the one that runs, awaited: the only one in the node, the supervisor's child, and said so by state.json.
func (s *supervised) kubelet(t *testing.T) process {
	t.Helper()
	var found []process
	await(t, "one kubelet runs, the one of state.json, and answers", func() error {
		found = s.node.kubelets(t)
		record, _, err := supervisor.ReadRecord(s.RunDir)
		switch {
		case err != nil:
			return err
		case len(found) != 1 || record.Child == nil || record.Child.PID != found[0].ID || !record.Healthy:
			return fmt.Errorf("kubelets %v, state.json has child %v, healthy %v", found, record.Child, record.Healthy)
		}
		return s.node.Healthz(t.Context())
	})
	return found[0]
}

// record is what state.json says.
func (s *supervised) record(t *testing.T) supervisor.Record {
	t.Helper()
	record, _, err := supervisor.ReadRecord(s.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// starts counts the kubelets started by all supervisors with these folders, pre-flights not included.
func (s *supervised) starts(t *testing.T) int {
	t.Helper()
	return strings.Count(s.log(t), "starting the kubelet with ")
}

// configz is what the kubelet says it runs with, awaited: it answers a moment after healthz.
func (s *supervised) configz(t *testing.T) object {
	t.Helper()
	var config object
	await(t, "configz answers", func() (err error) {
		config, err = s.node.Configz(t.Context())
		return err
	})
	return config
}

// run runs another command of the binary on the node, such as status, with this supervisor's run folder.
func (s *supervised) run(t *testing.T, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	if slices.Contains([]string{"status", "reload", "retry"}, arguments[0]) {
		arguments = slices.Insert(arguments, 1, "--run-dir="+s.RunDir)
	}
	command := s.node.Command(s.binary, arguments...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

func (s *supervised) logFile() string { return filepath.Join(s.Folder, "log") }

// log is all that the supervisor and its kubelets wrote.
func (s *supervised) log(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(s.logFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var ownLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT|^kubelet-supervisor: `)

// lastWords are the supervisor's last lines, and after them the kubelet's.
func (s *supervised) lastWords() string {
	content, _ := os.ReadFile(s.logFile())
	var own, kubelets []string
	for line := range strings.Lines(string(content)) {
		if ownLine.MatchString(line) {
			own = append(own, line)
		} else {
			kubelets = append(kubelets, line)
		}
	}
	last := func(lines []string, count int) string { return strings.Join(lines[max(0, len(lines)-count):], "") }
	return last(own, 60) + "… and the kubelet's:\n" + last(kubelets, 20)
}
