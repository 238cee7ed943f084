package kubelet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// serve answers every request with the status, until the test ends, and gives its host:port.
func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
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
		"not ok":                   {serve(t, http.StatusInternalServerError), "answers 500 Internal Server Error"},
		"nobody answers":           {nobody, "healthz at " + nobody + " does not answer"},
		"what answers is no HTTP":  {fakenode.Listen(t, "tcp", "127.0.0.1:0").Addr().String(), "does not answer"},
		"an address that is wrong": {"%zz", "asking healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			err := (&Child{command: command, endpoints: config.Endpoints{HealthzAddress: test.address}}).probe(t.Context(), client)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
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
}

func TestHowOftenHealthIsAsked(t *testing.T) {
	const startTimeout = 2 * time.Minute
	for name, test := range map[string]struct {
		healthy bool
		age     time.Duration
		want    time.Duration
	}{
		"it starts":                      {false, time.Second, 50 * time.Millisecond},
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
