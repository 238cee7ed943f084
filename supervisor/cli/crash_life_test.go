//go:build linux

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// crashBinary is the program that can be killed at a numbered point.
var crashBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "kubelet-supervisor-crashpoints")
	output, err := exec.Command("go", "build", "-tags", "crashpoints", "-o", path, "../../cmd/kubelet-supervisor").CombinedOutput()
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
	inVain  bool // an approval was spent, and had no effect
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
	// Each has a loopback address of its own: ports that are free now would not be when hundreds of kubelets come and go.
	n := lives.Add(1)
	address := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, n/250, 1+n%250)
	l.kubelet = []string{fakeKubelet, "--config=" + l.local, "--root-dir=" + l.rootDir(), "--healthz-bind-address=" + address, "--kubeconfig=" + kubeconfig, "--hostname-override=n1",
		"--container-runtime-endpoint=unix://" + l.runtime()}
	if of.ownKubelet {
		l.kubelet[0] = l.path("bin/kubelet")
		l.replaceKubelet()
	}
	if of.dropIns {
		l.kubelet = append(l.kubelet, "--config-dir="+l.path("drop-ins"))
		l.dropIn("10.conf", "")
	}
	l.api.run(of.pods)
	if of.localFields != "" {
		written(t, l.local, fakenode.Configuration("mode: ok")+of.localFields)
	}
	l.flags = append([]string{"--edit-spread=0s", "--trial-period=1h"}, of.flags...)
	if of.wrote != "" {
		written(t, l.stateFile(), fmt.Sprintf(`{"policyName":%q,"checksum":0}`, of.wrote))
	}
	if of.limits {
		l.makeCgroup()
	}
	if of.base {
		fields := of.baseFields
		if of.baseLimits != "" {
			fields += l.api.limitedTo(of.baseLimits)
		}
		l.api.put("base", fakenode.Configuration(cmp.Or(of.baseBehaviour, "mode: ok, words: base"))+fields)
		l.api.assign("base")
		l.seedBase()
	}
	return l
}

func (l *life) dropIn(name, fields string) {
	written(l.t, l.path("drop-ins/"+name), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+fields)
}

// replaceKubelet is what a package does: another file, of the same build here.
func (l *life) replaceKubelet() {
	l.t.Helper()
	program, err := os.ReadFile(fakeKubelet)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(written(l.t, l.kubelet[0]+".new", string(program)), l.kubelet[0]); err != nil {
		l.t.Fatal(err)
	}
}

// seedBase makes the ConfigMap base what passed its trial with an earlier supervisor.
func (l *life) seedBase() {
	l.t.Helper()
	base := l.api.maps["base"]
	version := core.Version{Source: l.source("base"), Content: kubeletconfig.Content(base.Data, "kubelet")}
	identity, err := kubeletconfig.Identify(l.kubelet[0], l.kubelet[1:])
	if err != nil {
		l.t.Fatal(err)
	}
	d := core.Account{Text: "kube-system/base/kubelet", NodeUID: nodeUID, Active: &version}
	if !l.unproven {
		d.Promoted = core.Promotion{Content: version.Content, Kubelet: identity}
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
	if l.reloads {
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			l.t.Fatal(err)
		}
		return p, l.untilOver(p, "the reload", func() bool {
			record, _, err := supervisor.ReadRecord(l.runDir)
			return err == nil && record.Reloads > 0 && l.shows(p, l.after...)
		}), first
	}
	l.change()
	return p, l.untilOver(p, l.after[0], func() bool { return l.isOver(p) }), first
}

// isOver: the change was made. A person approves of what it asks for.
func (l *life) isOver(p *supervisorProcess) bool {
	if l.pods > 0 {
		l.api.approve()
	}
	return l.shows(p, l.after...)
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
	if l.untilOver(p, l.after[0], func() bool { return l.isOver(p) }) {
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
