//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A gateway is between the supervisor and the API server. It has the node's identity, and gives wrong answers where a step says so. The kubelet
// asks the API server itself, so that the node is none that has lost it.
type gateway struct {
	kubeconfig string
	server     *http.Server
	harm       atomic.Value // harm
	asked      atomic.Int64 // since the harm began
	refused    atomic.Int64
}

// openGateway listens inside the cluster's network, so that a network that is cut is cut for it as well.
func openGateway(ctx context.Context, c *cluster.Cluster) (*gateway, error) {
	identity, err := c.IdentityConfig("system:node:"+cluster.NodeName, "system:nodes")
	if err != nil {
		return nil, fmt.Errorf("opening the gateway: %w", err)
	}
	transport, err := rest.TransportFor(identity)
	if err != nil {
		return nil, fmt.Errorf("opening the gateway: %w", err)
	}
	host, err := url.Parse(identity.Host)
	if err != nil {
		return nil, fmt.Errorf("opening the gateway: %w", err)
	}
	listener, err := c.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the gateway: %w", err)
	}
	g := &gateway{kubeconfig: filepath.Join(c.Folder, "gateway.kubeconfig")}
	g.harm.Store(mended)
	g.server = &http.Server{Handler: g.through(host, transport), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = g.server.Serve(listener) }() // ends with close
	// The CA is there for the supervisor, which knows the cluster by it.
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {}}]\n",
		"http://"+listener.Addr().String(), filepath.Join(c.Folder, "pki", "ca.crt"))
	if err := os.WriteFile(g.kubeconfig, []byte(text), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the gateway: %w", err), g.close())
	}
	return g, nil
}

func (g *gateway) through(host *url.URL, transport http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		// An API server that is not there gives no answer, so neither does this.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.answersWrongly(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// answersWrongly answers a request as an API server does that is overloaded, or whose etcd is in trouble.
func (g *gateway) answersWrongly(w http.ResponseWriter, r *http.Request) bool {
	switch h, _ := g.harm.Load().(harm); {
	case h == busy && g.asked.Add(1)%2 == 1:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	case h == failing, h == podless && r.URL.Path == "/api/v1/pods":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: request timed out"}`)
	default:
		return false
	}
	g.refused.Add(1)
	return true
}

// do begins wrong answers, or ends them.
func (g *gateway) do(h harm) {
	g.asked.Store(0)
	g.harm.Store(h)
}

func (g *gateway) close() error { return g.server.Close() }
