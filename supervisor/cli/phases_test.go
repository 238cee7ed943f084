//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// A phase is a moment in the life of a supervisor and its kubelet in which something else can happen.
type phase struct {
	name     string
	local    string // behaviour of the kubelet with its local configuration; "": mode: ok
	assigned string // with the one that is assigned; "": none is
	flags    []string
	api      func(t *testing.T, n *node) (url string) // nil: the kubelet has no kubeconfig
	before   func(t *testing.T, n *node)              // what happened earlier
	base     string                                   // behaviour with what an API server assigns first
	next     string                                   // with what it assigns once that is healthy, and holds its lock
	// kubeconfig makes one; nil: for api
	kubeconfig func(t *testing.T, path string)
	reached    func(n *node, record supervisor.Record) bool
	alive      bool // a kubelet runs that nobody has asked to stop
	tries      int  // of the trial that have failed, at least
}

var phases = []phase{
	{name: "a left-over kubelet is being stopped", local: "mode: ok, stopAfter: 1h", flags: []string{"--stop-timeout=3s"},
		before:  func(_ *testing.T, n *node) { n.leaveAKubelet() },
		reached: func(n *node, _ supervisor.Record) bool { return n.count("term") == 1 }},
	{name: "pre-flight", assigned: "mode: hangPreflight",
		reached: func(n *node, r supervisor.Record) bool { return r.Phase == "Proving" && n.count("preflight") > 0 }},
	{name: "waiting for health", assigned: "mode: hang", alive: true,
		reached: func(n *node, r supervisor.Record) bool { return r.Phase == "Starting" && n.count("start") > 0 }},
	{name: "trial", assigned: "mode: ok", alive: true,
		reached: func(_ *node, r supervisor.Record) bool { return r.Healthy && r.Trial != nil }},
	{name: "backoff", assigned: "mode: crash", flags: []string{"--trial-failures=20"}, tries: 4,
		reached: func(n *node, r supervisor.Record) bool { return r.Phase == "Backoff" && n.count("exit") > 4 }}, // one is the pre-flight's
	{name: "control", assigned: "mode: crash", flags: []string{"--trial-failures=1"}, alive: true,
		reached: func(_ *node, r supervisor.Record) bool { return r.Healthy && r.Condition.Reason == "RolledBack" }},
	{name: "stopping a kubelet that does not end", assigned: "mode: hang, stopAfter: 1h", flags: []string{"--start-timeout=1s", "--stop-timeout=5s"},
		reached: func(n *node, r supervisor.Record) bool { return r.Phase == "Stopping" && n.count("term") == 1 }},
	{name: "a kubelet that ignores SIGTERM", local: "mode: ignoreTerm", flags: []string{"--stop-timeout=1s"}, alive: true,
		reached: func(_ *node, r supervisor.Record) bool { return r.Healthy }},
	{name: "an API server that never answers", assigned: "mode: ok", alive: true,
		api:     func(t *testing.T, _ *node) string { return "http://" + listen(t, "tcp", "127.0.0.1:0") },
		reached: func(_ *node, r supervisor.Record) bool { return r.Healthy }},
	{name: "a kubeconfig that is a pipe", assigned: "mode: ok", alive: true, kubeconfig: pipe,
		reached: func(_ *node, r supervisor.Record) bool { return r.Healthy }},
	{name: "downloading", alive: true,
		api:     func(t *testing.T, n *node) string { return assigning(t, n, nil) },
		reached: func(n *node, r supervisor.Record) bool { return r.Healthy && exists(n.path("downloading")) }},
	{name: "saving", alive: true,
		api:     func(t *testing.T, n *node) string { return assigning(t, n, manyKeys()) },
		reached: func(n *node, r supervisor.Record) bool { return r.Healthy && exists(n.path("state/checkpoints/u")) }},
	{name: "the next kubelet comes to its lock", alive: true, base: "mode: ok", next: "mode: slowToLock, after: 2500ms",
		reached: func(n *node, r supervisor.Record) bool { return r.Phase == "Parking" && n.count("wait") > 1 }},
	{name: "a kubelet waits for one that does not end", flags: []string{"--stop-timeout=5s"}, base: "mode: ok, stopAfter: 1h", next: "mode: ok, words: next",
		reached: func(n *node, r supervisor.Record) bool {
			return r.Phase == "Stopping" && n.count("wait") > 1 && n.count("term") == 1
		}},
}

// reach starts the real program and brings it into the phase.
func (p phase) reach(t *testing.T) (*node, *supervisorProcess) {
	t.Helper()
	n := newNode(t)
	t.Setenv("FAKE_KUBELET_RECORD", n.path("record"))
	written(t, n.path("record"), "")
	if p.local != "" {
		written(t, n.local, fakenode.Configuration(p.local))
	}
	if p.assigned != "" {
		n.assign(t, fakenode.Configuration(p.assigned))
	}
	var changing *apiServer
	if p.next != "" {
		n.assign(t, fakenode.Configuration(p.base))
		changing = newAPIServer(t)
		changing.put("a", fakenode.Configuration(p.base))
		changing.put("next", fakenode.Configuration(p.next))
		changing.assign("a")
		p.api = func(*testing.T, *node) string { return changing.url }
	}
	if p.api != nil {
		url := p.api(t, n)
		p.kubeconfig = func(t *testing.T, path string) { written(t, path, fmt.Sprintf(kubeconfigText, url)) }
	}
	if p.kubeconfig != nil {
		p.kubeconfig(t, n.path("etc/kubelet.conf"))
		n.kubelet = append(n.kubelet, "--kubeconfig="+n.path("etc/kubelet.conf"), "--hostname-override=n1")
	}
	if p.before != nil {
		p.before(t, n)
	}
	process := n.run(p.flags...)
	if changing != nil {
		process.await(t, "what is assigned first runs", func(r supervisor.Record) bool { return r.Healthy })
		changing.assign("next")
	}
	process.await(t, p.name, func(r supervisor.Record) bool { return p.reached(n, r) })
	return n, process
}

// await waits until state.json is as wanted.
func (p *supervisorProcess) await(t *testing.T, what string, wanted func(supervisor.Record) bool) {
	t.Helper()
	fakenode.Await(t, what, func() bool {
		select {
		case <-p.over:
			t.Fatalf("the supervisor ended with code %d", p.code)
		default:
		}
		record, _, err := supervisor.ReadRecord(p.n.runDir)
		return err == nil && wanted(record)
	})
}

func (n *node) path(name string) string { return filepath.Join(n.folder, name) }

// count counts the fake kubelets' events of a kind.
func (n *node) count(kind string) int { return len(fakes(n.t, n.path("record"), kind)) }

// assign leaves a checkpoint that is assigned, as an earlier supervisor would.
func (n *node) assign(t *testing.T, config string) {
	t.Helper()
	s, err := store.Open(n.stateDir)
	if err != nil {
		t.Fatal(err)
	}
	c := source("a").ConfigMap
	if err := errors.Join(s.SaveCheckpoint(*c, map[string]string{"kubelet": config}), s.SaveSource(store.Assigned, c), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// leaveAKubelet has a supervisor killed, whose kubelet goes on.
func (n *node) leaveAKubelet() {
	n.t.Helper()
	killed := n.run()
	killed.awaitHealthy()
	_ = killed.Process.Kill()
	killed.end()
}

// account is what the state folder says of the trial.
func (n *node) account(t *testing.T) (trial struct {
	Tries int
	Open  bool
}) {
	t.Helper()
	s, err := store.Open(n.stateDir)
	if err != nil {
		t.Fatal(err)
	}
	document := struct{ Trial any }{&trial}
	if err := errors.Join(s.LoadDocument("trial", "Trial", &document), s.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document.Trial)
	if err == nil {
		err = json.Unmarshal(text, &trial)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// wantNoKubelet checks that of all the fake kubelets that ever ran none is left.
func (n *node) wantNoKubelet(t *testing.T) {
	t.Helper()
	for _, line := range fakes(t, n.path("record"), "start preflight wait") {
		var pid int
		if _, err := fmt.Sscanf(line[strings.IndexByte(line, ' '):], "%d", &pid); err != nil {
			t.Fatal(err)
		}
		// One that was left behind by its own parent may stay a zombie.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("left: %s: %s", line, stat)
		}
	}
}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {}}]
`

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// listen has the kernel accept connections, which nobody answers.
func listen(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// assigning is an API server whose Node has an assignment. It gives the payload, or, for none, makes the file "downloading" and
// never answers; as it does to watches. All else fails.
func assigning(t *testing.T, n *node, payload map[string]string) (url string) {
	t.Helper()
	answers := map[string]any{
		"/api/v1/nodes": corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "n", ResourceVersion: "1", Annotations: map[string]string{"kubelet-supervisor.io/config-source": "kube-system/a/kubelet"}}}}},
	}
	if payload != nil {
		answers["/api/v1/namespaces/kube-system/configmaps"] = corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
			Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "1"}, Data: payload}}}
	}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		answer, known := answers[request.URL.Path]
		switch {
		case known && !request.URL.Query().Has("watch"):
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
			return
		case !known && !strings.Contains(request.URL.Path, "configmaps"):
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case !known:
			_ = os.WriteFile(n.path("downloading"), nil, 0o600)
		}
		select {
		case <-request.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server.URL
}

// manyKeys takes seconds to write.
func manyKeys() map[string]string {
	payload := map[string]string{"kubelet": fakenode.Configuration("mode: ok")}
	for i := range 1000 {
		payload[fmt.Sprintf("key%d", i)] = "x"
	}
	return payload
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
