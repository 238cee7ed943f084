//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What a supervisor hears through the gateway, by what is wrong.
func TestGateway(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "fine: "+r.URL.Path) }))
	host, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{}
	g.do(mended)
	front := httptest.NewServer(g.through(host, http.DefaultTransport))
	t.Cleanup(front.Close)
	ask := func(path string) string {
		answer, err := http.Get(front.URL + path)
		if err != nil {
			return "nothing"
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body)))
	}
	for _, row := range []struct {
		harm harm
		path string
		want []string // one answer after the other
	}{
		{mended, "/api/v1/nodes/n1", []string{"200 fine: /api/v1/nodes/n1", "200 fine"}},
		{busy, "/api/v1/nodes/n1", []string{"429 Too many requests", "200 fine", "429 ", "200 fine"}},
		{failing, "/api/v1/nodes/n1", []string{`500 {"kind":"Status"`, "500 "}},
		{podless, "/api/v1/pods", []string{`500 {"kind":"Status"`, "500 "}},
		{podless, "/api/v1/nodes/n1", []string{"200 fine", "200 fine"}},
	} {
		g.do(row.harm)
		for i, want := range row.want {
			if got := ask(row.path); !strings.HasPrefix(got, want) {
				t.Errorf("%s of %s: answer %d is %q, want %q", row.harm, row.path, i+1, got, want)
			}
		}
	}
	g.do(mended)
	server.Close()
	if got := ask("/api/v1/nodes/n1"); got != "nothing" {
		t.Errorf("where the API server is away the gateway says %q", got)
	}
}
