package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// crashBinary is the program that can be killed at a numbered point.
var crashBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "kubelet-supervisor-crashpoints")
	output, err := exec.Command("go", "build", "-tags", "crashpoints", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
})

// life is a node whose supervisor is killed once.
type life struct {
	*node
	scenario
	api     *apiServer
	record  string // of the fake kubelets
	points  string // of the supervisor
	flags   []string
	changed bool
}

var lives atomic.Int32

func newLife(t *testing.T, of scenario) *life {
	t.Helper()
	l := &life{node: newNode(t), scenario: of, api: newAPIServer(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the Node shows %s", l.api.shown())
		}
	})
	l.record, l.points = filepath.Join(l.folder, "record"), filepath.Join(l.folder, "points")
	t.Cleanup(l.endKubelets)
	kubeconfig := written(t, filepath.Join(l.folder, "kubelet.conf"), fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n", l.api.url))
	runtime := filepath.Join(l.folder, "runtime.sock") // connections to it are never taken, which suffices
	listener, err := net.Listen("unix", runtime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	// Each has a loopback address of its own: ports that are free now would not be when hundreds of kubelets come and go.
	n := lives.Add(1)
	address := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, n/250, 1+n%250)
	l.kubelet = []string{fakeKubelet, "--config=" + l.local, "--root-dir=" + l.rootDir(), "--healthz-bind-address=" + address, "--kubeconfig=" + kubeconfig, "--hostname-override=n1",
		"--container-runtime-endpoint=unix://" + runtime}
	l.flags = append([]string{"--edit-spread=0s", "--trial-period=1h"}, of.flags...)
	if of.wrote != "" {
		written(t, l.stateFile(), fmt.Sprintf(`{"policyName":%q,"checksum":0}`, of.wrote))
	}
	if of.base {
		l.api.put("base", fakenode.Configuration("mode: ok, words: base")+of.baseFields)
		l.api.assign("base")
		l.seedBase()
	}
	return l
}

// seedBase makes the ConfigMap base what passed its trial with an earlier supervisor.
func (l *life) seedBase() {
	l.t.Helper()
	base := l.api.maps["base"]
	version := decide.Version{Source: l.source("base"), Content: config.Content(base.Data, "kubelet")}
	identity, err := config.Identify(l.kubelet[0], l.kubelet[1:])
	if err != nil {
		l.t.Fatal(err)
	}
	d := decide.Account{Text: "kube-system/base/kubelet", NodeUID: nodeUID, Active: &version}
	if !l.unproven {
		d.Promoted = decide.Promotion{Content: version.Content, Kubelet: identity}
	}
	l.store(func(s *store.Store) error {
		return errors.Join(s.SaveCheckpoint(version.Source, base.Data), s.SaveSource(store.Assigned, &version.Source), s.SaveSource(store.LastKnownGood, &version.Source),
			s.SaveDocument("trial", "Trial", d))
	})
}

func (l *life) source(name string) corev1.ConfigMapNodeConfigSource {
	m := l.api.maps[name]
	return corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: m.UID, ResourceVersion: m.ResourceVersion, KubeletConfigKey: "kubelet"}
}

func (l *life) store(use func(s *store.Store) error) {
	l.t.Helper()
	s, err := store.Open(l.stateDir)
	if err == nil {
		err = errors.Join(use(s), s.Close())
	}
	if err != nil {
		l.t.Fatalf("the state folder: %v", err)
	}
}

// endKubelets leaves no kubelet behind when a supervisor was killed last.
func (l *life) endKubelets() {
	data, _ := os.ReadFile(l.record) // absent: there was none
	for line := range strings.Lines(string(data)) {
		var e struct{ PID int }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			l.t.Error(err)
			return
		}
		if words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", e.PID)); strings.Contains(string(words), l.local) {
			_ = syscall.Kill(e.PID, syscall.SIGKILL)
		}
	}
}

// start starts a supervisor that is killed at a point, or at none.
func (l *life) start(crashAt string) *supervisorProcess {
	l.t.Helper()
	path, err := crashBinary()
	if err != nil {
		l.t.Fatal(err)
	}
	command := exec.Command(path, l.runArguments(l.flags...)...)
	command.Env = append(os.Environ(), "FAKE_KUBELET_RECORD="+l.record, "CRASH_POINTS="+l.points, "CRASH_AT="+strings.ReplaceAll(crashAt, "FOLDER", l.folder))
	return l.begin(command)
}

// untilOver waits until it holds, or the supervisor has died.
func (l *life) untilOver(p *supervisorProcess, what string, holds func() bool) (died bool) {
	l.t.Helper()
	fakenode.Await(l.t, what, func() bool {
		select {
		case <-p.over:
			died = true
		default:
		}
		return died || holds()
	})
	return died
}

// shows tells whether this supervisor has come to rest and the Node shows one of the wanted lines.
func (l *life) shows(p *supervisorProcess, wanted ...string) bool {
	record, running, err := supervisor.ReadRecord(l.runDir)
	if err != nil || !running || record.Supervisor.PID != p.Process.Pid || !record.Healthy || record.Phase != "Running" {
		return false
	}
	for _, want := range wanted {
		if shown := l.api.shown(); shown == want && strings.HasPrefix(want, record.Condition.Reason+" ") {
			return true
		}
	}
	return false
}

// change is made once, by a person who knows nothing of crashes.
func (l *life) change() {
	if !l.changed {
		l.changed = true
		l.do(l.api)
	}
}

// live runs a supervisor through the scenario, or until it dies at its point. first is the number of points before the change.
func (l *life) live(crashAt string) (p *supervisorProcess, over bool, first int) {
	l.t.Helper()
	p = l.start(crashAt)
	if l.untilOver(p, "the state before: "+l.before(), func() bool { return l.shows(p, l.before()) }) {
		return p, true, 0
	}
	first = len(l.pointsPassed())
	if l.stops {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			l.t.Fatal(err)
		}
		p.end()
		return p, true, first
	}
	l.change()
	return p, l.untilOver(p, l.after[0], func() bool { return l.shows(p, l.after...) }), first
}

func (l *life) before() string {
	switch {
	case l.unproven:
		return "InTrial assigned=base@1 active=base@1 lkg=base@1"
	case l.base:
		return "Active assigned=base@1 active=base@1 lkg=base@1"
	}
	return "Local assigned=local active=local lkg=local"
}

// again is the supervisor after the one that was killed.
func (l *life) again() *supervisorProcess {
	l.t.Helper()
	p := l.start("")
	l.change()
	if l.untilOver(p, l.after[0], func() bool { return l.shows(p, l.after...) }) {
		l.t.Fatalf("it died: %s", p.ProcessState)
	}
	return p
}

func killed(p *supervisorProcess) bool {
	return p.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// pointsPassed gives the points so far as CRASH_AT has them, such as "2 before decide.Save". FOLDER is this node's.
func (l *life) pointsPassed() (points []string) {
	data, _ := os.ReadFile(l.points) // absent: none was passed
	turns := map[string]int{}
	for point := range strings.Lines(strings.ReplaceAll(string(data), l.folder, "FOLDER")) {
		turns[point]++
		points = append(points, fmt.Sprintf("%d %s", turns[point], strings.TrimSuffix(point, "\n")))
	}
	return points
}

// checkDisk wants what a killed supervisor left: nothing that has to be set aside, and no half checkpoint named.
func (l *life) checkDisk() {
	l.t.Helper()
	l.store(func(s *store.Store) (failed error) {
		for _, pointer := range []store.Pointer{store.Assigned, store.LastKnownGood} {
			source, err := s.LoadSource(pointer)
			if failed = errors.Join(failed, err); source != nil {
				_, err := s.LoadCheckpoint(*source)
				failed = errors.Join(failed, err)
			}
		}
		for name, kind := range map[string]string{"trial": "Trial", "rejected": "RejectionList", "preflight": "PreflightList"} {
			failed = errors.Join(failed, s.LoadDocument(name, kind, &map[string]any{}))
		}
		return failed
	})
}

// started counts the starts of kubelets by the name of what they were started with. Two at once are an error.
func (l *life) started() map[string]int {
	l.t.Helper()
	names := map[string]string{}
	for name, m := range l.api.maps {
		source := l.source(name)
		folder := filepath.Join(l.stateDir, "checkpoints", string(source.UID), source.ResourceVersion)
		if rendered, err := config.Render(m.Data, "kubelet", folder, nil); err == nil {
			sum := sha256.Sum256(rendered)
			names[hex.EncodeToString(sum[:])] = name
		}
	}
	data, err := os.ReadFile(l.record)
	if err != nil {
		l.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var e struct{ Event, Config, SHA256 string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			l.t.Fatal(err)
		}
		switch {
		case e.Event == "beside":
			l.t.Error("two kubelets at once")
		case e.Event != "start":
		case e.Config == l.local:
			counts["local"]++
		case names[e.SHA256] != "":
			counts[names[e.SHA256]]++
		default: // base, before it was edited
			counts["older"]++
		}
	}
	return counts
}

func (l *life) stateFile() string { return filepath.Join(l.rootDir(), "cpu_manager_state") }

// awaitPolicy waits until the kubelet that runs has its state file, which comes a moment after its health.
func (l *life) awaitPolicy() {
	l.t.Helper()
	want := l.policy
	if want == "" {
		want = "none"
	}
	fakenode.Await(l.t, "a state file of policy "+want, func() bool {
		var state struct{ PolicyName string }
		content, err := os.ReadFile(l.stateFile())
		return err == nil && json.Unmarshal(content, &state) == nil && state.PolicyName == want
	})
}

// checkAsides wants the files that were set aside, recorded and there, and no others.
func (l *life) checkAsides() {
	l.t.Helper()
	var recorded, found []string
	var d decide.Durable
	l.store(func(s *store.Store) error { return s.LoadDocument("trial", "Trial", &d) })
	for _, aside := range d.Asides {
		recorded = append(recorded, aside.Name+".aside-"+aside.Policy)
	}
	paths, err := filepath.Glob(l.stateFile() + ".aside*")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range paths {
		found = append(found, filepath.Base(path))
	}
	slices.Sort(recorded)
	if !slices.Equal(recorded, l.asides) || !slices.Equal(found, l.asides) {
		l.t.Errorf("aside are %q, recorded are %q, want %q", found, recorded, l.asides)
	}
}

// checkRules is asked at the end, which is that without a crash.
func (l *life) checkRules(p *supervisorProcess) {
	l.t.Helper()
	l.awaitPolicy()
	starts := l.started()
	for name, count := range starts {
		if most, allowed := l.starts[name]; !allowed || count > most {
			l.t.Errorf("%s was started %d times, at most %d allowed: %v", name, count, most, starts)
		}
	}
	record, _, err := supervisor.ReadRecord(l.runDir)
	if err != nil {
		l.t.Fatal(err)
	}
	if record.Trial != nil && record.Trial.Failures+1 < starts[l.candidate] {
		l.t.Errorf("tries were given back: %d failures are counted after %d starts", record.Trial.Failures, starts[l.candidate])
	}
	if record.StateProblems != "" {
		l.t.Errorf("the disk: %s", record.StateProblems)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.t.Error(err)
	}
	if code := p.end(); code != exitOK && !killed(p) { // a point that was not met before may come now
		l.t.Errorf("it ended with code %d", code)
	}
	l.checkAsides()
}
