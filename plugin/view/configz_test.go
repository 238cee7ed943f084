package view_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// apiServer answers requests for the configz of n1.
func apiServer(t *testing.T, answer http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/n1/proxy/configz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
}

// What the API server says when a kubelet cannot be asked, and what to do about it.
func TestReadConfigz(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, message)
	}
	for _, test := range []struct {
		name string
		code int
		body string
		want string // in the error; "" for none
	}{
		{"an answer", http.StatusOK, `{"kubeletconfig":{"kind":"KubeletConfiguration","maxPods":20,"memoryThrottlingFactor":0.9}}`, ""},
		{"not allowed", http.StatusForbidden, status(403, "Forbidden", "no"), "no; that needs get on nodes/proxy"},
		{"no configz", http.StatusNotFound, "404 page not found", "404 page not found; is the node's name right, and enableServer and enableDebuggingHandlers"},
		{"no address", http.StatusServiceUnavailable, status(503, "ServiceUnavailable", "no preferred addresses found; known addresses: []"),
			"503 Service Unavailable: no preferred addresses found; known addresses: []; is the node Ready"},
		{"the kubelet is away", http.StatusServiceUnavailable, "no route to host", "no route to host; is the node Ready"},
		{"a failure of the API server", http.StatusInternalServerError, status(500, "InternalError", "etcd is away"), "etcd is away"},
		{"words for the terminal", http.StatusInternalServerError, "a\x1b[2J\nb" + strings.Repeat("x", 300) + "END", "a [2J bxx"},
		{"no words", http.StatusBadGateway, "", "502 Bad Gateway: no reason given"},
		{"no JSON", http.StatusOK, "<html>", "reading configz"},
		{"nothing in it", http.StatusOK, `{"kubeproxy":{"a":1}}`, "no kubeletconfig"},
		{"another shape", http.StatusOK, `{"kubeletconfig":[]}`, "reading configz"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			})
			tree, err := view.NewNodeReader().Configz(t.Context(), client, "n1")
			switch {
			case test.want == "" && (err != nil || tree["maxPods"] != int64(20) || tree["memoryThrottlingFactor"] != 0.9 || tree["kind"] != nil):
				t.Errorf("got %v, %v", tree, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "END")):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A kubelet that hangs, or answers drop by drop, is waited for so long and no longer.
func TestConfigzThatHangs(t *testing.T) {
	for name, drop := range map[string]bool{"silent": false, "drop by drop": true} {
		t.Run(name, func(t *testing.T) {
			client := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				for drop && r.Context().Err() == nil {
					_, _ = w.Write([]byte(" "))
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			})
			_, err := view.NodeReader{Timeout: 100 * time.Millisecond, Limit: 16 << 40}.Configz(t.Context(), client, "n1")
			if err == nil || !strings.Contains(err.Error(), "no answer within 100ms; is the node Ready") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An answer without end is not read: neither a good one nor a failure.
func TestConfigzWithoutEnd(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
		client := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := view.NewNodeReader().Configz(t.Context(), client, "n1")
		runtime.ReadMemStats(&after)
		if err == nil || code == http.StatusOK && !strings.Contains(err.Error(), "longer than 16777216 bytes") {
			t.Errorf("%d: got %v", code, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 120 {
			t.Errorf("%d: %d MiB were allocated", code, used)
		}
	}
}

func FuzzParseConfigz(f *testing.F) {
	f.Add([]byte(`{"kubeletconfig":{"maxPods":20}}`))
	f.Add([]byte(`{"kubeletconfig":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if tree, err := view.ParseConfigz(body); err == nil && len(document.ChangedFrom(tree, tree)) > 0 {
			t.Errorf("%s differs from itself", body)
		}
	})
}
