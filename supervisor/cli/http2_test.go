//go:build linux

package cli

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The program as it is shipped can ask the container runtime, which speaks HTTP/2 alone, and without TLS.
func TestHTTP2WithTheRuntime(t *testing.T) {
	n := newNode(t)
	written(t, n.local, withRoom(20))
	file := written(t, filepath.Join(n.folder, "new.yaml"), withRoom(1))
	words := append([]string{"check", "--impact", "--run-dir=" + n.runDir, "--state-dir=" + n.stateDir, file, "--"}, n.kubelet...)
	said, err := exec.Command(binary, append(words, "--hostname-override=n1", "--kubeconfig="+threePods(t, 20))...).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "2 of 3 running pods would be killed") || strings.Contains(string(said), "unknown: ") {
		t.Errorf("%v: %s", err, said)
	}
}

// The program as it is shipped speaks HTTP/2 with the API server: all its watches and requests share one connection. It is built without one of
// two copies of HTTP/2 (packaging/compile.sh), which must be the one that nothing calls.
func TestHTTP2(t *testing.T) {
	spoken, api := make(chan string, 1), newAPIServer(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		select {
		case spoken <- request.Proto:
		default:
		}
		api.ServeHTTP(w, request)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	n := newNode(t)
	authority, kubeconfig := filepath.Join(n.folder, "ca.crt"), filepath.Join(n.folder, "kubeconfig")
	written(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	written(t, kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {}}]\n", server.URL, authority))
	n.kubelet = append(n.kubelet, "--kubeconfig="+kubeconfig, "--hostname-override=n1")
	p := n.run()
	select {
	case protocol := <-spoken:
		if protocol != "HTTP/2.0" {
			t.Errorf("it speaks %s", protocol)
		}
	case <-p.over:
		t.Fatalf("it has ended: %s", p.stderr.String())
	case <-time.After(time.Minute):
		t.Fatal("it has asked nothing")
	}
}
