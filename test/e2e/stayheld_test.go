//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A gateway is between a supervisor and the API server: a request that it answers itself does not get there.
type gateway struct {
	kubeconfig string
	answer     atomic.Pointer[func(r *http.Request) (status int)] // 0: it goes on
}

// openGateway gives the supervisor another way to the API server, with the node's identity. Its kubelet keeps its own.
func (n *node) openGateway(t *testing.T) *gateway {
	t.Helper()
	transport, err := rest.TransportFor(n.nodeIdentity(t, cluster.NodeName))
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(n.AdminConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{kubeconfig: filepath.Join(n.Folder, uniqueName("gateway"))}
	through := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }, Transport: transport, FlushInterval: -1}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := g.answer.Load(); answer != nil {
			if status := (*answer)(r); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		through.ServeHTTP(w, r)
	}))
	_ = server.Listener.Close()
	if server.Listener, err = n.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	writeFile(t, g.kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n", server.URL))
	return g
}

// lose has the gateway answer so many requests for the node's pods with a status; negative: all of them.
func (g *gateway) lose(status, times int) {
	left := atomic.Int32{}
	left.Store(int32(times))
	answer := func(r *http.Request) int {
		if r.URL.Path == "/api/v1/pods" && (times < 0 || left.Add(-1) >= 0) {
			return status
		}
		return 0
	}
	g.answer.Store(&answer)
}

// ownKubelet is a copy of the kubelet's program that a test may replace.
func (n *node) ownKubelet(t *testing.T) string {
	t.Helper()
	program, err := os.Open(n.Kubelet())
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	path := filepath.Join(n.Folder, uniqueName("kubelet"))
	own, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err == nil {
		_, err = io.Copy(own, program)
		err = errors.Join(err, own.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

// held is a node whose local configuration runs, with four pods, two of which an assignment would kill.
type held struct {
	*node
	s       *supervised
	k       *bareKubelet // for its pods alone
	gateway *gateway
	kubelet process
	pods    map[string]podSeen
	change  *configMap
}

func (n *node) hold(t *testing.T, o options) *held {
	t.Helper()
	h := &held{node: n, gateway: n.openGateway(t), k: n.bareKubelet(t)}
	o.Flags = append(o.Flags, "--kubeconfig="+h.gateway.kubeconfig)
	h.s = n.startedLocal(t, o)
	h.kubelet = h.s.kubelet(t)
	for _, name := range []string{"be1", "be2", "be3", "be4"} {
		h.k.putYounger(t, name)
	}
	t.Cleanup(func() { h.k.removePods(t) })
	h.pods = h.k.allRun(t, 4)
	h.change = n.putConfigMap(t, "few", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 2))})
	n.assign(t, h.change.assignment("kubelet"))
	h.awaitHeld(t)
	return h
}

func (h *held) awaitHeld(t *testing.T) nodeView {
	t.Helper()
	return h.awaitReason(t, h.change.assignment("kubelet"), "WouldDisrupt")
}

// stays: the kubelet that runs is the same, and no pod was touched.
func (h *held) stays(t *testing.T, during time.Duration, although string) {
	t.Helper()
	holds(t, during, "what is held stays held although "+although, func() error {
		if now := h.kubelets(t); len(now) != 1 || now[0].ID != h.kubelet.ID {
			return fmt.Errorf("kubelets %v, before: pid %d", now, h.kubelet.ID)
		}
		return nil
	})
	for name, now := range h.k.seen(t) {
		if now != h.pods[name] {
			t.Errorf("%s was touched although %s: %+v, then %+v", name, although, h.pods[name], now)
		}
	}
}

// looked waits for another look at the change, whose line in the log has these words.
func (h *held) looked(t *testing.T, words string, look func()) {
	t.Helper()
	before := strings.Count(h.s.log(t), words)
	look()
	await(t, "a look says "+words, func() error {
		if strings.Count(h.s.log(t), words) == before {
			return errors.New("no look says so")
		}
		return nil
	})
}

func (h *held) retry(t *testing.T) {
	t.Helper()
	if _, stderr, code := h.s.run(t, "retry"); code != 0 {
		t.Errorf("retry: code %d: %s", code, stderr)
	}
}

// Rule 21: what is held stays held over a look that fails, over a reload, other files and another kubelet on the disk, other configurations that
// are asked about, and over the Node.
func TestWhatIsHeldStaysHeld(t *testing.T) {
	n := sharedNode(t)
	h := n.hold(t, options{Kubelet: n.ownKubelet(t)})
	s := h.s
	retry := func() { h.retry(t) }
	const failed, known = `"known": false`, `"known": true, "lost": 2`
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusForbidden} {
		h.gateway.lose(status, 1)
		h.looked(t, failed, retry)
		h.looked(t, known, func() {}) // it is asked for again
		h.stays(t, 0, fmt.Sprintf("the list of pods was answered with %d", status))
	}
	h.gateway.lose(http.StatusServiceUnavailable, -1)
	h.looked(t, failed, retry)
	h.stays(t, 5*time.Second, "no list of pods is answered")
	h.gateway.lose(0, 0)

	// Three others are asked about, so that what runs is not among the newest that were.
	for i := range 3 {
		other := n.putConfigMap(t, fmt.Sprint("fewer-", i), map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 2), with("podsPerCore", 20+i))})
		n.assign(t, other.assignment("kubelet"))
		n.awaitReason(t, other.assignment("kubelet"), "WouldDisrupt")
	}
	n.assign(t, h.change.assignment("kubelet"))
	v := h.awaitHeld(t)

	// What a package's upgrade and a tool that manages files leave.
	now := time.Now()
	if err := os.Chtimes(h.kubelet.Arguments[0], now, now); err != nil {
		t.Fatal(err)
	}
	h.looked(t, known, func() {
		if _, stderr, code := s.run(t, "reload"); code != 0 {
			t.Fatalf("reload: code %d: %s", code, stderr)
		}
	})
	h.stays(t, 0, "the kubelet's program is another one, and the supervisor was reloaded")
	s.writeLocal(t, n.kubeletConfig()+"# a comment\n")
	n.awaitNode(t, "the change of the local file is told", func(v nodeView) bool { return strings.Contains(v.Condition.Message, "LocalChangePending") })
	h.looked(t, known, retry)
	h.stays(t, 12*time.Second, "the local file was edited") // after ten seconds the changed files are asked about
	if again := h.awaitHeld(t); approvalOf(t, again) != approvalOf(t, v) {
		t.Errorf("it asks for another approval: %s, before: %s", again.Condition.Message, v.Condition.Message)
	}

	h.gateway.lose(http.StatusServiceUnavailable, 0)
	n.remove(t, nodePath)
	retry()
	h.stays(t, 8*time.Second, "the Node is gone")
	n.must(t, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": cluster.NodeName}}, nil)
	n.awaitReason(t, "", "Local")
	h.stays(t, 2*time.Second, "the Node is another one")
}

// approvalOf is what the message asks for.
func approvalOf(t *testing.T, v nodeView) string {
	t.Helper()
	_, approval, said := strings.Cut(v.Condition.Message, consentAnnotation+"=")
	if !said || len(approval) != 12 {
		t.Fatalf("the message ends with no approval: %s", v.Condition.Message)
	}
	return approval
}

// A first look that nobody answers holds a change up as well: a moment as one that is under way, and no pod is lost meanwhile. So does a
// kubelet that is too slow to be asked within five seconds.
func TestAChangeWaitsForAnAnswer(t *testing.T) {
	n := sharedNode(t)
	slow := filepath.Join(n.Folder, "slowkubelet")
	if err := run("go", "build", "-o", slow, "./test/slowkubelet"); err != nil {
		t.Fatal(err)
	}
	takes := func(time string) []string {
		return []string{"SLOW_KUBELET=" + n.Kubelet(), "SLOW_KUBELET_TIME=" + time}
	}
	h := n.hold(t, options{Kubelet: slow, Environment: takes("0s")})
	h.s.stop(t)
	n.assign(t, "local")

	h.s = n.startSupervisor(t, options{After: h.s, Kubelet: slow, Environment: takes("6s"), Flags: []string{"--kubeconfig=" + h.gateway.kubeconfig}})
	t.Cleanup(func() { h.k.removePods(t) }) // before that supervisor ends
	h.awaitReason(t, "local", "Local")
	h.kubelet = h.s.kubelet(t)
	h.pods = h.k.allRun(t, 4)
	h.change = n.putConfigMap(t, "fewest", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 1))})
	n.assign(t, h.change.assignment("kubelet"))
	n.awaitNode(t, "it waits for the pre-flight", func(v nodeView) bool {
		return v.Condition.Status == corev1.ConditionUnknown && v.Condition.Reason == "Applying" && strings.Contains(v.Condition.Message, "waits for an answer: no verdict of the pre-flight")
	})
	h.awaitHeld(t)
	h.stays(t, 0, "the kubelet is slow")

	h.gateway.lose(http.StatusTooManyRequests, -1)
	h.change = n.putConfigMap(t, "two", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 2))})
	n.assign(t, h.change.assignment("kubelet"))
	n.awaitNode(t, "it waits for the list of pods", func(v nodeView) bool {
		return v.Condition.Reason == "Applying" && strings.Contains(v.Condition.Message, "waits for an answer: listing the pods of Node n1")
	})
	h.stays(t, 2*time.Second, "nobody has answered yet")
	h.gateway.lose(0, 0)
	h.awaitHeld(t)
	h.stays(t, 0, "it is known what it would do")
}

// A second change half a second after the first is held for what is certain, although the Node does not show yet what the first has changed.
func TestASecondChange(t *testing.T) {
	n := sharedNode(t)
	h := n.hold(t, options{})
	first := n.putConfigMap(t, "first", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 19), with("kubeReserved", object{"memory": "100Mi"}))})
	n.assign(t, first.assignment("kubelet"))
	await(t, "another kubelet", func() error { return differs(n.kubelets(t), h.kubelet) })
	holds(t, 500*time.Millisecond, "one kubelet", func() error {
		if now := n.kubelets(t); len(now) != 1 {
			return fmt.Errorf("kubelets %v", now)
		}
		return nil
	})
	n.assign(t, h.change.assignment("kubelet"))
	h.awaitHeld(t)
	h.kubelet = h.s.kubelet(t)
	if got := h.s.configz(t)["maxPods"]; got != 19.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 19", got)
	}
	h.stays(t, time.Second, "it came right after another change")
}
