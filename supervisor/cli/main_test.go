//go:build linux

package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// binary and fakeKubelet are paths of what is built once, journalFolder is where it looks for journald, and defaultFolders has its folders
// where no others are named.
var binary, fakeKubelet, journalFolder, defaultFolders string

// here is this package, for the linker.
const here = "github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli"

type withBinaries struct{ tests *testing.M }

func (w withBinaries) Run() int {
	folder, err := os.MkdirTemp("", "kubelet-supervisor-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary, fakeKubelet = filepath.Join(folder, "kubelet-supervisor"), filepath.Join(folder, "kubelet")
	journalFolder = filepath.Join(folder, "journal")
	defaultFolders = filepath.Join(folder, "default")
	flags := "-X " + here + ".journalStreams=" + journalFolder + "/stdout" +
		" -X " + here + ".defaultRunDir=" + defaultFolders + "/run -X " + here + ".defaultStateDir=" + defaultFolders + "/state" +
		" -X github.com/coreos/go-systemd/v22/journal.journalSocket=" + journalFolder + "/socket"
	for _, build := range []*exec.Cmd{exec.Command("../../packaging/compile.sh", "v1.2.3", folder, "kubelet-supervisor"),
		exec.Command("go", "build", "-o", fakeKubelet, "../../test/fakekubelet")} {
		build.Env = append(os.Environ(), "TEST_LDFLAGS="+flags)
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", build, err, output)
			return 1
		}
	}
	// Lives of a fake kubelet wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withBinaries{m}) }

const testVersion = "v0.0.0-test"

// does runs one command line in this process.
func does(arguments ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Execute(testVersion, arguments, &out, &errs)
	return code, out.String(), errs.String()
}

func written(t *testing.T, path, content string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
		t.Fatal(err)
	}
	return path
}

// node is a machine with a fake kubelet and folders for a supervisor.
type node struct {
	t                        *testing.T
	folder, stateDir, runDir string
	local                    string // the kubelet's --config file
	kubelet                  []string
	program                  string   // the supervisor's
	stderr                   *os.File // its; nil: what supervisorProcess remembers
}

func newNode(t *testing.T) *node {
	t.Helper()
	folder, err := os.MkdirTemp("", "node-") // t.TempDir is too long for the notify socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	n := &node{t: t, folder: folder, stateDir: filepath.Join(folder, "state"), runDir: filepath.Join(folder, "run"), local: filepath.Join(folder, "etc", "kubelet.yaml"), program: binary}
	written(t, n.local, fakenode.Configuration("mode: ok"))
	fakenode.Runtime(t, n.runtime())
	n.kubelet = []string{fakeKubelet, "--config=" + n.local, "--root-dir=" + n.rootDir(), "--healthz-port=" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port),
		"--container-runtime-endpoint=unix://" + n.runtime()}
	return n
}

// rootDir is the folder of the kubelet's own files.
func (n *node) rootDir() string { return filepath.Join(n.folder, "kubelet") }

func (n *node) runtime() string { return filepath.Join(n.folder, "runtime.sock") }

func (n *node) runArguments(more ...string) []string {
	arguments := append([]string{"run", "--state-dir=" + n.stateDir, "--run-dir=" + n.runDir}, more...)
	return append(append(arguments, "--"), n.kubelet...)
}

// supervisorProcess is the real program at work.
type supervisorProcess struct {
	*exec.Cmd
	n      *node
	stderr bytes.Buffer
	over   chan struct{}
	code   int
}

// run starts the real program, which the end of the test stops.
func (n *node) run(more ...string) *supervisorProcess {
	n.t.Helper()
	return n.begin(exec.Command(n.program, n.runArguments(more...)...))
}

func (n *node) begin(command *exec.Cmd) *supervisorProcess {
	n.t.Helper()
	p := &supervisorProcess{Cmd: command, n: n, over: make(chan struct{})}
	p.Stdout, p.Stderr = &p.stderr, &p.stderr
	if n.stderr != nil {
		p.Stderr = n.stderr
	}
	if err := p.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() {
		defer close(p.over)
		_ = p.Wait()
		p.code = p.ProcessState.ExitCode()
	}()
	n.t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		p.end()
		if n.t.Failed() {
			n.t.Logf("the supervisor said:\n%s", p.stderr.String())
		}
	})
	return p
}

func (p *supervisorProcess) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// end waits for the end and gives the exit code.
func (p *supervisorProcess) end() int {
	p.n.t.Helper()
	select {
	case <-p.over:
	case <-time.After(fakenode.Patience):
		p.n.t.Errorf("the supervisor does not end")
		_ = p.Process.Kill()
		<-p.over
	}
	return p.code
}

// awaitHealthy waits until the record is that of this process, with a healthy kubelet.
func (p *supervisorProcess) awaitHealthy() (record supervisor.Record) {
	p.n.t.Helper()
	fakenode.Await(p.n.t, "a healthy kubelet", func() bool {
		select {
		case <-p.over:
			p.n.t.Fatalf("the supervisor ended with code %d", p.code)
		default:
		}
		var err error
		var running bool
		record, running, err = supervisor.ReadRecord(p.n.runDir)
		return err == nil && running && record.Healthy && record.Supervisor.PID == p.Process.Pid
	})
	return record
}
