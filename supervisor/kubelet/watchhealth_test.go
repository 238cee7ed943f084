//go:build linux

package kubelet

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// ourselvesAsChild is a child that is this process.
func ourselvesAsChild(t *testing.T, startTimeout time.Duration) *Child {
	t.Helper()
	command := exec.Command("true")
	var err error
	if command.Process, err = os.FindProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	return &Child{launcher: &Launcher{Settings: Settings{StartTimeout: startTimeout}}, command: command, started: time.Now()}
}

// seen is an event, and when it was told.
type seen struct {
	at time.Duration
	Event
}

// A change of health is told once, when it is seen; the same words are told again only after health in between.
func TestChangesOfHealth(t *testing.T) {
	const none, young = "it has no healthz port and has not said READY=1 yet", "it has no healthz port and has not been alive for 10s yet"
	synctest.Test(t, func(t *testing.T) {
		child := ourselvesAsChild(t, time.Minute)
		pid := os.Getpid()
		child.endpoints.ReadinessByNotify = true
		child.notify = &notifySocket{kubelets: map[int]*hearing{pid: {kubeletNotes: kubeletNotes{PID: pid}, readiness: make(chan struct{})}}}
		begin := time.Now()
		var told []seen
		ctx, stop := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			child.watchHealth(ctx, func(e Event) {
				told = append(told, seen{time.Since(begin), e})
				if healthy := !child.healthy.since.IsZero(); healthy != (e == Event(Healthy{})) {
					t.Errorf("healthy %t when %#v is told", healthy, e)
				}
			})
		}()
		ready := func(is bool) { // what a kubelet says later is seen at the next look
			child.notify.mu.Lock()
			defer child.notify.mu.Unlock()
			child.notify.kubelets[pid].Ready = is
		}
		time.Sleep(5*time.Second + time.Millisecond)
		child.notify.hear(pid, "READY=1")
		time.Sleep(time.Minute)
		ready(false)
		time.Sleep(time.Minute + time.Second/2) // between two looks
		ready(true)
		time.Sleep(time.Minute)
		ready(false) // the same words as before its health
		time.Sleep(time.Minute)
		stop()
		<-watched
		want := []seen{{0, Unhealthy{none}}, {5*time.Second + time.Millisecond, Unhealthy{young}}, {10*time.Second + time.Millisecond, Healthy{}},
			{70*time.Second + time.Millisecond, Unhealthy{none}}, {126*time.Second + time.Millisecond, Healthy{}}, {186*time.Second + time.Millisecond, Unhealthy{none}}}
		if !slices.Equal(told, want) {
			t.Errorf("told %v\nwant %v", told, want)
		}
	})
}

// The end of what watches is no end of health.
func TestAProbeThatIsCutOffTellsNothing(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	child := ourselvesAsChild(t, time.Minute)
	child.endpoints = kubeletconfig.Endpoints{HealthzAddress: strings.TrimPrefix(server.URL, "http://")}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-asked; stop() }()
	child.watchHealth(ctx, func(e Event) { t.Errorf("told: %#v", e) })
}

// answerer answers a request without a network, and sees the end of its answer.
type answerer struct {
	io.Reader
	closed bool
}

func (a *answerer) Close() error { a.closed = true; return nil }

func (a *answerer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTeapot, Status: "418 I'm a teapot", Body: a}, nil
}

func TestAnAnswerIsClosedAndAwaitedForALimitedTime(t *testing.T) {
	if wait := newHealthClient().Timeout; wait != 5*time.Second {
		t.Errorf("a healthz that hangs is awaited for %s", wait)
	}
	answer := &answerer{Reader: strings.NewReader("short and stout")}
	child := ourselvesAsChild(t, time.Minute)
	child.endpoints.HealthzAddress = "127.0.0.1:1"
	if err := child.probe(t.Context(), &http.Client{Transport: answer}); err == nil || !answer.closed {
		t.Errorf("%v, closed %t", err, answer.closed)
	}
}
