package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

// An outage is mentioned when it begins, every half minute, and when it is over; who hung up himself says nothing.
func TestAnOutageIsMentioned(t *testing.T) {
	var said []string
	now, failure := time.Hour, errors.New("connection refused")
	o := &outage{monotonic: func() time.Duration { return now }, log: funcr.New(func(_, words string) { said = append(said, words) }, funcr.Options{})}
	transport := o.wrap(roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{}, failure }))
	ask := func(ctx context.Context) {
		t.Helper()
		if _, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)); !errors.Is(err, failure) {
			t.Errorf("the answer is %v", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone)
	for range 70 {
		ask(t.Context())
		now += time.Second
	}
	failure = nil
	ask(t.Context())
	ask(t.Context())
	if got := fmt.Sprint(len(said), " ", strings.Join(said, "; ")); len(said) != 4 || !strings.Contains(said[0], `"for"="0s" "error"="connection refused"`) ||
		!strings.Contains(said[2], `"for"="1m0s"`) || !strings.Contains(said[3], `answers again" "after"="1m10s"`) {
		t.Errorf("it said %s", got)
	}
}
