//go:build linux

package supervisor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/status"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// apiServer is down for everybody, and remembers who asked for what.
type apiServer struct {
	url   string
	mu    sync.Mutex
	asked []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, request.Method+" "+request.URL.String())
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// wasAsked tells whether a request had all the words in it.
func (a *apiServer) wasAsked(words ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, request := range a.asked {
		found := true
		for _, word := range words {
			found = found && strings.Contains(request, word)
		}
		if found {
			return true
		}
	}
	return false
}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {%s}}]
`

func TestTheKubeconfigIsFollowed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	path := n.path("kubernetes/kubelet.conf")
	n.options.Arguments = append(n.options.Arguments, "--kubeconfig="+path, "--hostname-override=N1")
	n.write("kubernetes/keep", "")
	r := n.run()
	if record := r.awaitHealthy(); record.Condition.Reason != "Local" { // as when the kubelet bootstraps
		t.Errorf("condition %+v", record.Condition)
	}
	first, second := newAPIServer(t), newAPIServer(t)
	n.write("kubernetes/kubelet.conf", fmt.Sprintf(kubeconfigText, first.url, ""))
	n.await("the Node to be followed", func() bool { return first.wasAsked("GET", "/nodes", "n1") })
	n.write("kubernetes/kubelet.conf", "no kubeconfig")
	n.await("the complaint", func() bool { return strings.Contains(r.log.String(), "reading kubeconfig "+path) })
	n.write("kubernetes/kubelet.conf", fmt.Sprintf(kubeconfigText, second.url, ""))
	n.await("the Node to be followed elsewhere", func() bool { return second.wasAsked("GET", "/nodes", "n1") })
	if got := n.events("start", "exit"); got != "start" {
		t.Errorf("the kubelet saw %q", got)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A kubelet that bootstraps may write its kubeconfig before the certificate.
func TestACertificateThatComesLater(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	api := newAPIServer(t)
	pem := n.path("pki/current.pem")
	n.write("kubelet.conf", fmt.Sprintf(kubeconfigText, strings.Replace(api.url, "http:", "https:", 1), fmt.Sprintf("client-certificate: %q, client-key: %q", pem, pem)))
	n.options.Kubeconfig = n.path("kubelet.conf")
	r := n.runChanged(func(l *loop) { l.api.recheck = 100 * time.Millisecond })
	n.await("the complaint", func() bool { return strings.Contains(r.log.String(), "no connection to the API server yet") })
	certificate, key := clientCertificate(t, "system:node:late")
	n.write("pki/current.pem", string(certificate)+string(key))
	n.await("the Node's name", func() bool { return strings.Contains(r.log.String(), `"node": "late"`) })
}

func TestAnAPIServerThatIsDown(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("kubelet.conf", fmt.Sprintf(kubeconfigText, fmt.Sprintf("http://127.0.0.1:%d", fakenode.FreePort(t)), ""))
	n.options.Kubeconfig = n.path("kubelet.conf")
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := n.events(); got != "start term exit" {
		t.Errorf("the kubelet saw %q", got)
	}
}

// An event waits for somebody to post it: it may be decided before the first session, or between two.
func TestEventsWaitForASession(t *testing.T) {
	a := &apiSession{}
	newPublisher := func() *status.Publisher { return status.NewPublisher(status.Options{NodeName: "n1"}) }
	expect := func(when string, publisher *status.Publisher, want ...string) {
		t.Helper()
		var got []string
		for _, e := range publisher.Unsent() {
			got = append(got, e.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the publisher has %q, want %q", when, got, want)
		}
	}
	for i := range status.MaxEvents + 1 {
		a.event(core.NodeEvent{Reason: fmt.Sprint(i)})
	}
	a.event(core.NodeEvent{Reason: "at the boot"})
	first := newPublisher()
	a.begin(nil, "n1", first, nil)
	if got := len(first.Unsent()); got != status.MaxEvents {
		t.Errorf("%d wait, want %d", got, status.MaxEvents)
	}
	a.end()
	a.events = nil
	second := newPublisher()
	a.begin(nil, "n1", second, nil)
	a.event(core.NodeEvent{Reason: "not posted"})
	a.end()
	a.event(core.NodeEvent{Reason: "between"})
	third := newPublisher()
	a.begin(nil, "n1", third, nil)
	a.event(core.NodeEvent{Reason: "after"})
	expect("the next session", third, "not posted", "between", "after")
}
