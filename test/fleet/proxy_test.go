//go:build e2e && long

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// proxy is between a controller and the API server, and gives other answers than that where a test says so.
type proxy struct {
	passOn *httputil.ReverseProxy

	mutex   sync.Mutex
	lie     lie
	told    int
	ctx     context.Context // of the watches there are
	cutting context.CancelFunc
}

// ask is what is asked for: a list or a watch of a kind, or anything else.
type ask struct {
	kind string // nodes, kubeletpools, configmaps, controllerrevisions, pods
	verb string // list, watch, initial (a watch that begins with what there is), or empty
	bare bool   // metadata is enough
}

// lie is another answer; 0 passes the question on.
type lie func(ask) (code int, body any)

// newProxy listens, and ends with the test.
func (f *fleet) newProxy(t *testing.T) (p *proxy, address string) {
	t.Helper()
	config, err := f.IdentityConfig(controllerUser)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{passOn: &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}}
	p.ctx, p.cutting = context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		p.cutting()
	})
	return p, "http://" + listener.Addr().String()
}

// startBehind starts a controller that sees the API server through a proxy only. It ends with the test.
func (f *fleet) startBehind(t *testing.T, name, address string) {
	t.Helper()
	kubeconfig, err := f.kubeconfigFor(address, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	program, err := cluster.Start(exec.Command(f.binary, "--kubeconfig="+kubeconfig, "--health-address=0", "--metrics-address=0", "--leader-elect=false"),
		filepath.Join(f.Folder, "log", name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Stop(30 * time.Second)
		if t.Failed() {
			t.Log(program.LastWords())
		}
	})
}

// ServeHTTP answers or passes on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := asked(r)
	p.mutex.Lock()
	until, code, body := p.ctx, 0, any(nil)
	if p.lie != nil {
		if code, body = p.lie(a); code != 0 {
			p.told++
		}
	}
	p.mutex.Unlock()
	if code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
		return
	}
	if a.verb == "watch" || a.verb == "initial" {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(until, cancel)()
		r = r.WithContext(ctx)
	}
	p.passOn.ServeHTTP(w, r)
}

func asked(r *http.Request) ask {
	a := ask{kind: path.Base(r.URL.Path), bare: strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")}
	switch a.kind {
	case "nodes", "kubeletpools", "configmaps", "controllerrevisions", "pods":
		switch query := r.URL.Query(); {
		case r.Method != http.MethodGet:
		case query.Get("watch") != "true" && query.Get("watch") != "1":
			a.verb = "list"
		case query.Get("sendInitialEvents") == "true":
			a.verb = "initial"
		default:
			a.verb = "watch"
		}
	}
	return a
}

// tell begins with a lie, and ends all watches; nil is the truth again.
func (p *proxy) tell(l lie) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cutting()
	p.lie, p.told = l, 0
	p.ctx, p.cutting = context.WithCancel(context.Background())
}

func (p *proxy) lies() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.told
}

// failure is an answer as the API server gives it.
func failure(code int32, reason metav1.StatusReason, words string) (int, any) {
	return int(code), &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: words}
}

// expired is what a watch from a resourceVersion is answered that has been compacted.
func expired() (int, any) {
	return failure(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

func forbidden(a ask) (int, any) {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("%s is forbidden: User cannot %s it", a.kind, a.verb))
}
