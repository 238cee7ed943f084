package sync

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// serve runs an HTTP server and gives the package's client for it.
func serve(t *testing.T, handler http.HandlerFunc) *rest.RESTClient {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	client, err := NewClient(&rest.Config{Host: server.URL, Transport: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestClientReads(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if agent := r.UserAgent(); agent != "kubelet-supervisor" {
			t.Errorf("user agent %q", agent)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "spec.configSource: the feature is removed"`)
		io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"},"spec":{"configSource":{}}}`)
	})
	var node corev1.Node
	if err := client.Get().Resource("nodes").Name("n1").Do(t.Context()).Into(&node); err != nil || node.Name != "n1" || node.Spec.ConfigSource == nil {
		t.Errorf("got %v, %v", node, err)
	}
}

func TestClientWatchesMetadata(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != onlyMetadata {
			t.Errorf("accepts %q", accept)
		}
		w.Header().Set("Content-Type", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		io.WriteString(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n1"}}}`)
	})
	stream, err := client.Get().Resource("nodes").Param("watch", "true").SetHeader("Accept", onlyMetadata).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	event := <-stream.ResultChan()
	if partial, ok := event.Object.(*metav1.PartialObjectMetadata); !ok || partial.Name != "n1" {
		t.Errorf("got %#v", event)
	}
	for range stream.ResultChan() {
	}
}

func TestClientBoundsAnswers(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range maxAnswer>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if _, err := client.Get().Resource("nodes").Name("n1").DoRaw(t.Context()); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an endless answer: %v", err)
	}
}

func TestClientLeavesWatchesEndless(t *testing.T) {
	body := io.NopCloser(strings.NewReader(""))
	bounded := boundedAnswers{answerer(func(*http.Request) *http.Response { return &http.Response{Body: body} })}
	for url, endless := range map[string]bool{"http://api/api/v1/nodes?watch=true": true, "http://api/api/v1/nodes": false} {
		response, err := bounded.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		if err != nil || (response.Body == body) != endless {
			t.Errorf("%s: endless %v, %v", url, response.Body == body, err)
		}
	}
}

type answerer func(*http.Request) *http.Response

func (a answerer) RoundTrip(request *http.Request) (*http.Response, error) { return a(request), nil }

// Changes in quick succession are answered as they come: client-go's own limit would hold up what follows the tenth request.
func TestClientAnswersBursts(t *testing.T) {
	client := serve(t, func(http.ResponseWriter, *http.Request) {})
	for i := range requestsAtOnce / 2 {
		if !client.GetRateLimiter().TryAccept() {
			t.Fatalf("request %d waits for the limiter", i+1)
		}
	}
}

func TestClientNeedsAnAddress(t *testing.T) {
	if _, err := NewClient(&rest.Config{Host: "http://"}); err == nil {
		t.Error("no error")
	}
}

func TestLeaseIsReadFromTheCacheWhereThatWillDo(t *testing.T) {
	for cached, want := range map[bool]string{true: "0", false: ""} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if version := r.URL.Query().Get("resourceVersion"); version != want {
				t.Errorf("cached %t asks for resourceVersion %q", cached, version)
			}
			fmt.Fprint(w, `{"spec":{"renewTime":"2026-11-21T11:22:33.456789Z"}}`)
		})
		if _, err := ReadLease(t.Context(), client, "n1", cached); err != nil {
			t.Error(err)
		}
	}
}

func TestReadLease(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		body   string
		expect string // error, or the time
	}{
		"renewed":       {200, `{"spec":{"renewTime":"2026-11-21T11:22:33.456789Z"}}`, "2026-11-21T11:22:33.456789Z of 0s"},
		"of 300 s":      {200, `{"spec":{"renewTime":"2026-11-21T11:22:33.456789Z","leaseDurationSeconds":300}}`, "2026-11-21T11:22:33.456789Z of 5m0s"},
		"of less":       {200, `{"spec":{"renewTime":"2026-11-21T11:22:33.456789Z","leaseDurationSeconds":-1}}`, "2026-11-21T11:22:33.456789Z of 0s"},
		"never renewed": {200, `{"spec":{}}`, "has never been renewed"},
		"not JSON":      {200, `<html>`, "decoding the Lease"},
		"wrong type":    {200, `{"spec":{"renewTime":7}}`, "decoding the Lease"},
		"missing":       {404, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"no lease"}`, "reading the Lease kube-node-lease/n1"},
		"forbidden":     {403, `{}`, "reading the Lease kube-node-lease/n1"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1" {
					t.Errorf("path %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				fmt.Fprint(w, c.body)
			})
			lease, err := ReadLease(t.Context(), client, "n1", false)
			got := lease.RenewTime.UTC().Format(time.RFC3339Nano) + " of " + lease.Duration.String()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.expect) {
				t.Errorf("got %s", got)
			}
			if name == "missing" && !apierrors.IsNotFound(err) {
				t.Errorf("%v cannot be told to be a missing Lease", err)
			}
		})
	}
}

// The kubelet's credential goes to the API server alone (rule 28): reads, watches and patches follow no redirect.
func TestClientFollowsNoRedirect(t *testing.T) {
	server := thief.New(t, http.StatusTemporaryRedirect)
	client, err := NewClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get().Resource("nodes").Name("n1").DoRaw(t.Context()); err == nil {
		t.Error("get: a redirect is taken for an answer")
	}
	if _, err := client.Get().Resource("nodes").Param("watch", "true").Watch(t.Context()); err == nil {
		t.Error("watch: a redirect is taken for an answer")
	}
	if _, err := client.Patch(types.MergePatchType).Resource("nodes").Name("n1").Body([]byte("{}")).DoRaw(t.Context()); err == nil {
		t.Error("patch: a redirect is taken for an answer")
	}
	server.Expect(t)
}
