//go:build linux

package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// node is a machine with a fake kubelet, a container runtime's socket, and folders for a supervisor. Its kubelet is a script that
// gives the fake the node's own record and then becomes the fake, so that nodes can live at the same time.
type node struct {
	t       *testing.T
	folder  string
	local   string // the file behind --config
	port    int    // of healthz
	options Options
}

func newNode(t *testing.T) *node {
	t.Helper()
	folder, err := os.MkdirTemp("", "node-") // t.TempDir is too long for the notify socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	n := &node{t: t, folder: folder, local: filepath.Join(folder, "etc", "kubelet.yaml"), port: fakenode.FreePort(t)}
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ok"))
	runtime := n.path("runtime.sock")
	fakenode.Runtime(t, runtime)
	n.options = Options{
		Kubelet: n.path("bin/kubelet"),
		Arguments: []string{"--config=" + n.local, "--root-dir=" + n.path("kubelet"), "--healthz-port", strconv.Itoa(n.port),
			"--container-runtime-endpoint=unix://" + runtime},
		Settings: core.Settings{TrialPeriod: time.Hour, TrialFailures: 3, StartTimeout: fakenode.Patience,
			HealthThatCounts: time.Second, SaveRetryAfter: time.Second},
		StateDir:    n.path("state"),
		RunDir:      n.path("run"),
		Namespaces:  []string{"kube-system"},
		StopTimeout: fakenode.Patience,
		Preflight:   kubelet.PreflightAlways,
	}
	n.installKubelet()
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.folder, name) }

func (n *node) installKubelet() {
	n.write("bin/kubelet", fmt.Sprintf("#!/bin/sh\nFAKE_KUBELET_RECORD=%s exec %s \"$@\"\n", n.path("record"), fakeKubelet))
}

// write replaces a file as administrators' tools do. No process is forked meanwhile: it would hold the file open for writing, and a
// kubelet that is open for writing cannot be executed.
func (n *node) write(name, content string) {
	n.t.Helper()
	path := n.path(name)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".new", []byte(content), 0o700), os.Rename(path+".new", path))
	if err != nil {
		n.t.Fatal(err)
	}
}

// store opens the state folder for the test, between supervisors.
func (n *node) store(use func(s *store.Store) error) {
	n.t.Helper()
	s, err := store.Open(n.options.StateDir)
	if err == nil {
		err = errors.Join(use(s), s.Close())
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// seed makes the pointer name a checkpoint with this payload below key kubelet, as an earlier supervisor would have left it.
func (n *node) seed(pointer store.Pointer, name, payload string) corev1.ConfigMapNodeConfigSource {
	n.t.Helper()
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", KubeletConfigKey: "kubelet"}
	n.store(func(s *store.Store) error {
		return errors.Join(s.SaveCheckpoint(source, map[string]string{"kubelet": payload}), s.SaveSource(pointer, &source))
	})
	return source
}

// running is a supervisor at work.
type running struct {
	n    *node
	stop context.CancelFunc
	over chan struct{}
	err  error
	log  *fakenode.Output // its own log and the kubelet's
}

// run starts a supervisor, which the end of the test stops.
func (n *node) run() *running {
	n.t.Helper()
	return n.runChanged(func(*loop) {})
}

// runChanged changes the supervisor before.
func (n *node) runChanged(change func(l *loop)) *running {
	n.t.Helper()
	ctx, stop := context.WithCancel(n.t.Context())
	r := &running{n: n, stop: stop, over: make(chan struct{}), log: fakenode.NewOutput(n.t)}
	o := n.options
	o.Output = r.log.Pipe
	o.Logger = zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(r.log.Pipe), zap.DebugLevel))
	go func() {
		defer close(r.over)
		l, err := newLoop(o)
		if err != nil {
			r.err = err
			return
		}
		defer l.close()
		change(l)
		r.err = l.live(ctx)
	}()
	n.t.Cleanup(func() {
		stop()
		<-r.over
		if n.t.Failed() {
			n.t.Logf("the supervisor's log:\n%s", r.log.String())
		}
	})
	return r
}

// end stops the supervisor as SIGTERM would and gives what Run returned.
func (r *running) end() error {
	r.n.t.Helper()
	r.stop()
	return r.wait()
}

func (r *running) wait() error {
	r.n.t.Helper()
	select {
	case <-r.over:
	case <-time.After(fakenode.Patience):
		r.n.t.Fatalf("the supervisor does not end")
	}
	return r.err
}

// await waits until the record file of the supervisor is as wanted.
func (r *running) await(what string, wanted func(Record) bool) Record {
	r.n.t.Helper()
	var last Record
	r.n.await(what, func() bool {
		select {
		case <-r.over:
			r.n.t.Fatalf("the supervisor ended, with %v, before: %s", r.err, what)
		default:
		}
		record, live, err := ReadRecord(r.n.options.RunDir)
		if err == nil {
			last = record
		}
		return err == nil && live && wanted(record)
	})
	return last
}

func (r *running) awaitHealthy() Record {
	r.n.t.Helper()
	return r.await("a healthy kubelet", func(record Record) bool { return record.Healthy })
}

// await polls until the condition holds.
func (n *node) await(what string, holds func() bool) {
	n.t.Helper()
	fakenode.Await(n.t, what, holds)
}

// entry is a line of the fake kubelet's record.
type entry struct {
	Event       string
	Code        int
	PID, PPID   int
	Argv        []string
	Cwd         string
	Environment map[string]string
	Config      string
	OpenFiles   string
}

// entries reads the fake's record, only the given kinds of event if there are any.
func (n *node) entries(kinds ...string) (list []entry) {
	n.t.Helper()
	data, err := os.ReadFile(n.path("record"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			n.t.Fatalf("%v in %s", err, lines.Text())
		}
		if len(kinds) == 0 || strings.Contains(strings.Join(kinds, " "), e.Event) {
			list = append(list, e)
		}
	}
	return list
}

// events names what the fakes did, in order.
func (n *node) events(kinds ...string) string {
	n.t.Helper()
	var list []string
	for _, e := range n.entries(kinds...) {
		list = append(list, e.Event)
	}
	return strings.Join(list, " ")
}

// written makes a file and gives its path.
func written(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}
