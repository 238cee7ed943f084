package controller

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// alive is all that a probe is answered: the checks by their names, and no reason of a failure.
var alive = regexp.MustCompile(`^(ok|(\[[+-]\](ping|caches) (ok|failed: reason withheld)\n)+(healthz|readyz) check (passed|failed)\n)$`)

// The health port answers everybody, so it says whether the program is alive and ready, and nothing else.
func TestTheHealthPortSaysNothingElse(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	o := &Options{HealthAddress: address, MetricsAddress: "0", Log: logr.Discard()}
	m, err := o.manager(&rest.Config{Host: "http://127.0.0.1:1"}, nil, &watchErrors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return answer.StatusCode, string(body)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if code, _ := get("/healthz"); code == http.StatusOK {
			break
		}
	}
	for _, path := range []string{"/healthz", "/healthz?verbose", "/readyz", "/readyz?verbose"} {
		if code, body := get(path); code == 0 || !alive.MatchString(body) {
			t.Errorf("%s: %d: %q", path, code, body)
		}
	}
	for _, path := range []string{"/", "/metrics", "/debug/pprof/", "/debug/pprof/heap", "/configz", "/flagz", "/statusz", "/logs/", "/version", "/livez"} {
		if code, body := get(path); code != http.StatusNotFound || body != "404 page not found\n" {
			t.Errorf("%s: %d: %q", path, code, body)
		}
	}
}
