// Package thief has servers that try to be given a credential that is not for them.
package thief

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Token is the credential that a test gives its client.
const Token = "precious"

// An Ear is another host, which a credential is not for.
type Ear struct {
	// TLS and Clear are where it listens.
	TLS, Clear string

	mutex sync.Mutex
	heard []string
}

// Listen has one until the test ends.
func Listen(t *testing.T) *Ear {
	t.Helper()
	ear := &Ear{}
	hear := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ear.mutex.Lock()
		defer ear.mutex.Unlock()
		ear.heard = append(ear.heard, r.Method+" "+r.URL.Path+" Authorization: "+r.Header.Get("Authorization"))
	})
	clear, tls := httptest.NewServer(hear), httptest.NewTLSServer(hear)
	t.Cleanup(clear.Close)
	t.Cleanup(tls.Close)
	ear.Clear, ear.TLS = clear.URL, tls.URL
	return ear
}

// ExpectSilence fails the test where anything came there.
func (ear *Ear) ExpectSilence(t *testing.T) {
	t.Helper()
	ear.mutex.Lock()
	defer ear.mutex.Unlock()
	for _, heard := range ear.heard {
		t.Errorf("another host than the API server heard %s", heard)
	}
}

// A Thief is an API server, or a hostile kubelet behind one, that answers every request with a redirect to another host.
type Thief struct {
	// URL is where it seems to be an API server.
	URL string

	ear   *Ear
	asked atomic.Int64
}

// New starts one that answers with this code, until the test ends.
func New(t *testing.T, code int) *Thief {
	t.Helper()
	thief := &Thief{ear: Listen(t)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		thief.asked.Add(1)
		http.Redirect(w, r, thief.ear.Clear+r.URL.Path, code)
	}))
	t.Cleanup(server.Close)
	thief.URL = server.URL
	return thief
}

// Config is that of one who has the token.
func (thief *Thief) Config() *rest.Config {
	return &rest.Config{Host: thief.URL, BearerToken: Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// Users are the ways to have the token, as a kubeconfig has them: of a service account, and by an exec plugin as clouds have one.
var Users = map[string]string{
	"token": `{token: ` + Token + `}`,
	"exec plugin": `{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: echo, args: [` +
		`'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "` + Token + `"}}']}}`,
}

// Kubeconfig writes one for a server, whose certificate is not verified, and one of Users.
func Kubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}], users: [{name: u, user: ` + user + `}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Asked is how many requests came to what seems to be the API server.
func (thief *Thief) Asked() int { return int(thief.asked.Load()) }

// Expect fails the test where the thief was not asked at all, or where anything came to the other host.
func (thief *Thief) Expect(t *testing.T) {
	t.Helper()
	if thief.Asked() == 0 {
		t.Error("nothing was asked, so nothing is proved")
	}
	thief.ear.ExpectSilence(t)
}
