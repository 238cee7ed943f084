package plugin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestConfig(t *testing.T) {
	b := newBench(t, localNode("n1"))
	b.configz["maxPods"] = int64(20)
	b.configz["evictionHard"] = map[string]any{"memory.available": "50Mi"}
	for file, arguments := range map[string][]string{
		"config.yaml":         {"config", "n1"},
		"config-changed.yaml": {"config", "n1", "--changed"},
		"config-changed.json": {"config", "n1", "--changed", "-o", "json"},
	} {
		t.Run(file, func(t *testing.T) {
			stdout, _ := b.do(t, arguments...)
			golden(t, file, stdout)
			if _, err := readDocument(map[string]string{"kubelet": stdout}, "kubelet"); err != nil {
				t.Errorf("what is printed cannot be pushed: %v", err)
			}
		})
	}
}

func TestConfigOfAnotherVersion(t *testing.T) {
	node := localNode("n1")
	node.Status.NodeInfo.KubeletVersion = "v1.30.1"
	_, stderr := newBench(t, node).do(t, "config", "n1", "--changed")
	contains(t, stderr, "defaults of Kubernetes 1.24", "runs v1.30.1")
}

// What the API server says when a kubelet cannot be asked, and what to do about it.
func TestReadConfigz(t *testing.T) {
	for _, test := range []struct {
		name string
		code int
		body string
		want string // in the error; "" for none
	}{
		{"an answer", http.StatusOK, `{"kubeletconfig":{"kind":"KubeletConfiguration","maxPods":20,"memoryThrottlingFactor":0.9}}`, ""},
		{"not allowed", http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`, "needs get on nodes/proxy"},
		{"no configz", http.StatusNotFound, "404 page not found", "enableDebuggingHandlers"},
		{"the kubelet is away", http.StatusServiceUnavailable, "no route to host", "is the node Ready"},
		{"no JSON", http.StatusOK, "<html>", "reading configz"},
		{"nothing in it", http.StatusOK, `{"kubeproxy":{"a":1}}`, "no kubeletconfig"},
		{"another shape", http.StatusOK, `{"kubeletconfig":[]}`, "reading configz"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/nodes/n1/proxy/configz" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
			tree, err := readConfigz(t.Context(), client, "n1")
			switch {
			case test.want == "" && (err != nil || tree["maxPods"] != int64(20) || tree["memoryThrottlingFactor"] != 0.9 || tree["kind"] != nil):
				t.Errorf("got %v, %v", tree, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzParseConfigz(f *testing.F) {
	f.Add([]byte(`{"kubeletconfig":{"maxPods":20}}`))
	f.Add([]byte(`{"kubeletconfig":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if tree, err := parseConfigz(body); err == nil && len(changedFrom(tree, tree)) > 0 {
			t.Errorf("%s differs from itself", body)
		}
	})
}
