//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// serve answers every request with the status, until the test ends, and gives its host:port.
func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// redirect answers every request with another address.
func redirect(t *testing.T, to string) string {
	t.Helper()
	server := httptest.NewServer(http.RedirectHandler("http://"+to, http.StatusFound))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestProbe(t *testing.T) {
	command := exec.Command("true")
	var err error
	if command.Process, err = os.FindProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("127.0.0.1:%d", fakenode.FreePort(t))
	for name, test := range map[string]struct{ address, err string }{
		"ok":                       {serve(t, http.StatusOK), ""},
		"elsewhere it is ok":       {redirect(t, serve(t, http.StatusOK)), "answers 302 Found"},
		"not ok":                   {serve(t, http.StatusInternalServerError), "answers 500 Internal Server Error"},
		"nobody answers":           {nobody, "healthz at " + nobody + " does not answer"},
		"what answers is no HTTP":  {fakenode.Listen(t, "tcp", "127.0.0.1:0").Addr().String(), "does not answer"},
		"an address that is wrong": {"%zz", "asking healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Child{command: command, endpoints: kubeletconfig.Endpoints{HealthzAddress: test.address}}).probe(t.Context(), newHealthClient())
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHealthIsAskedWhenTheKubeletIsReady(t *testing.T) {
	socket := listenNotifyUntilTheEnd(t)
	becomeTheKubelet(t, socket)
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	command := exec.Command("true")
	var err error
	if command.Process, err = os.FindProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	child := &Child{launcher: &Launcher{}, notify: socket, command: command, started: time.Now(),
		endpoints: kubeletconfig.Endpoints{HealthzAddress: strings.TrimPrefix(server.URL, "http://")}}
	seen := make(chan Event)
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { child.watchHealth(ctx, func(e Event) { seen <- e }) })
	if first := <-seen; first != (Healthy{}) {
		t.Errorf("at first it is %#v", first)
	}
	healthy := time.Now()
	broken.Store(true)
	say(t, socket, "READY=1\nREADY=1")
	if second := <-seen; second == (Healthy{}) || time.Since(healthy) >= healthPollLater {
		t.Errorf("after READY=1 it was not looked at before its time: %#v after %s", second, time.Since(healthy))
	}
	stop()
	watch.Wait()
}

func TestHealthyTimeAddsUp(t *testing.T) {
	var h healthAccount
	if h.total() != 0 {
		t.Errorf("%s before it was healthy", h.total())
	}
	h.turn(true)
	h.since = h.since.Add(-time.Minute)
	h.turn(true)
	h.turn(false)
	h.turn(false)
	h.turn(true)
	h.since = h.since.Add(-time.Hour)
	if total := h.total(); total < time.Hour+time.Minute || total > time.Hour+2*time.Minute {
		t.Errorf("%s in all", total)
	}
	if before := h.sofar(); h.total() != before {
		t.Error("its health goes on after its end")
	}
}

func TestHowOftenHealthIsAsked(t *testing.T) {
	const startTimeout = 2 * time.Minute
	for name, test := range map[string]struct {
		healthy bool
		age     time.Duration
		want    time.Duration
	}{
		"it has just been started":       {false, time.Second, 10 * time.Millisecond},
		"it is as old as that":           {false, 3 * time.Second, 10 * time.Millisecond},
		"its time is just over":          {false, startTimeout, 50 * time.Millisecond},
		"it starts":                      {false, 4 * time.Second, 50 * time.Millisecond},
		"it has not started in time":     {false, startTimeout + 1, time.Second},
		"it is healthy":                  {true, time.Second, 10 * time.Second},
		"it is healthy, for a long time": {true, time.Hour, 10 * time.Second},
		"it is not healthy any more":     {false, time.Hour, time.Second},
	} {
		if got := healthPoll(test.healthy, test.age, startTimeout); got != test.want {
			t.Errorf("%s: asked every %s, want %s", name, got, test.want)
		}
	}
}
