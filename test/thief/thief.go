// Package thief has servers that try to be given a credential that is not for them.
package thief

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Token is the credential that a test gives its client.
const Token = "precious"

// A Thief is an API server, or a hostile kubelet behind one, that answers every request with a redirect to another host.
type Thief struct {
	// URL is where it seems to be an API server.
	URL string

	mutex sync.Mutex
	asked int
	heard []string
}

// New starts one that answers with this code, until the test ends.
func New(t *testing.T, code int) *Thief {
	t.Helper()
	thief := &Thief{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		thief.mutex.Lock()
		defer thief.mutex.Unlock()
		thief.heard = append(thief.heard, r.Method+" "+r.URL.Path+" Authorization: "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		thief.mutex.Lock()
		thief.asked++
		thief.mutex.Unlock()
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
	}))
	t.Cleanup(server.Close)
	thief.URL = server.URL
	return thief
}

// Config is that of one who has the token.
func (thief *Thief) Config() *rest.Config {
	return &rest.Config{Host: thief.URL, BearerToken: Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// Kubeconfig is the same in a file.
func (thief *Thief) Kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "` + thief.URL + `", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: ` + Token + `}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Expect fails the test where the thief was not asked at all, or where anything came to the other host.
func (thief *Thief) Expect(t *testing.T) {
	t.Helper()
	thief.mutex.Lock()
	defer thief.mutex.Unlock()
	if thief.asked == 0 {
		t.Error("nothing was asked, so nothing is proved")
	}
	for _, heard := range thief.heard {
		t.Errorf("another host than the API server heard %s", heard)
	}
}
