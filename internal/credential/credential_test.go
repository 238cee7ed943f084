package credential_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/credential"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// getNode asks for a Node with the credential of config.
func getNode(t *testing.T, config *rest.Config) error {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/nodes/n1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// A redirect is an error that says where it led, and no host but the API server's hears of the credential.
func TestNoRedirectIsFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			server := thief.New(t, code)
			config := server.Config()
			credential.Confine(config)
			err := getNode(t, config)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("redirect (%d ", code)) || !strings.Contains(err.Error(), "/api/v1/nodes/n1") {
				t.Errorf("got %v", err)
			}
			server.Expect(t)
		})
	}
}

// Also within the API server a redirect is not followed: whoever answers would choose what is asked with another's rights.
func TestNoRedirectToTheAPIServerItself(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.Redirect(w, r, "/api/v1/namespaces/kube-system/secrets", http.StatusFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: thief.Token}
	credential.Confine(config)
	err := getNode(t, config)
	if err == nil || !slices.Equal(asked, []string{"/api/v1/nodes/n1"}) {
		t.Errorf("asked for %v: %v", asked, err)
	}
}

// Other answers of 300 and more are none of its business, and its own host is known however it is written.
func TestOtherAnswersPass(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	defer server.Close()
	for _, host := range []string{server.URL, server.URL + "/", server.URL + "/k8s/clusters/c", strings.TrimPrefix(server.URL, "http://")} {
		config := &rest.Config{Host: host, BearerToken: thief.Token}
		credential.Confine(config)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL)
		if err != nil || response.StatusCode != http.StatusNotModified {
			t.Errorf("%s: got %v, %v", host, response, err)
		}
	}
}

// A request for another host, another port of it, or by another scheme, is not sent, whoever made it.
func TestNoOtherHost(t *testing.T) {
	other := thief.New(t, http.StatusOK)
	config := &rest.Config{Host: "https://api.example:6443", BearerToken: thief.Token, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("a connection was tried")
	}}
	credential.Confine(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{other.URL, "http://api.example:6443", "https://api.example", "https://api.example:6443@evil.example/", "https://evil.example/api.example:6443"} {
		response, err := client.Get(url)
		if err == nil || !strings.Contains(err.Error(), "not sent, because its credential is for the API server https://api.example:6443") {
			t.Errorf("%s: got %v, %v", url, response, err)
		}
	}
	// User info is no host: the API server itself is asked.
	if _, err := client.Get("https://somebody@api.example:6443/"); err == nil || !strings.Contains(err.Error(), "a connection was tried") {
		t.Errorf("got %v", err)
	}
}

// What the programs ask by HTTP, each with how it is confined. A new client is a new line.
var clients = map[string]string{
	"fleet/controller/authorize.go": "the manager's settings",
	"fleet/controller/events.go":    "the manager's settings",
	"fleet/controller/run.go":       "calls Confine",
	"fleet/controller/unbound.go":   "the manager's settings",
	"supervisor/host/runtime.go":    "a socket of this machine, no credential",
	"supervisor/kubelet/health.go":  "this machine's healthz, no credential, no redirect",
	"plugin/view/configz.go":        "the commands' client",
	"plugin/install.go":             "the factory's flags, which confine",
	"plugin/cmdutil/factory.go":     "calls Confine",
	"sync/client.go":                "calls Confine",
}

// Every place of the programs that makes an HTTP client, or sends a request by hand, is known here.
func TestEveryClientIsKnown(t *testing.T) {
	makes := regexp.MustCompile(`http2?\.(Client|Transport)\{|http\.(Get|Post\w*|Head|Default(Client|Transport))\b|http\.NewRequest|` +
		`\b(rest|transport|spdy|websocket)\.\w*(ClientFor|TransportFor|RoundTripper|WrappersFor)\w*\(|\bNew\w*ForConfig|remotecommand\.|portforward\.|` +
		`(client|cluster|manager|cache|apiutil)\.New\w*\(|NewFromKubeconfig\(|\.To(Discovery|RESTMapper|RawKubeConfig)\w*\(|NewCmdProxy|resource\.NewBuilder`)
	found := map[string]bool{}
	for path, content := range tree.Programs(t) {
		if !makes.MatchString(content) {
			continue
		}
		found[path] = true
		how, known := clients[path]
		if !known {
			t.Errorf("%s makes an HTTP client: let it be confined (internal/credential), and add it to this test", path)
		}
		if (how == "calls Confine") != strings.Contains(content, "credential.Confine(") {
			t.Errorf("%s: %q is not what its code says", path, how)
		}
	}
	for path := range clients {
		if !found[path] {
			t.Errorf("%s makes no HTTP client any more", path)
		}
	}
}
