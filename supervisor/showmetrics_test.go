//go:build linux

package supervisor

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
)

func (n *node) shows(line string) func() bool {
	return func() bool {
		text, err := os.ReadFile(n.options.MetricsFile)
		return err == nil && strings.Contains(string(text), line+"\n")
	}
}

// The file tells of the kubelet's life as it is, and what was counted goes to the next program.
func TestMetricsOfALife(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.MetricsFile, n.options.Version = n.path("supervisor.prom"), "v1"
	var l *loop
	r := n.runChanged(func(begun *loop) { l = begun })
	first := r.awaitHealthy()
	n.await("a healthy kubelet", n.shows("kubelet_supervisor_kubelet_healthy 1"))
	if err := syscall.Kill(first.Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`kubelet_exits_total{asked="false",cause="signal"} 1`, `kubelet_starts_total{why="begin"} 1`, `kubelet_starts_total{why="exit"} 1`,
		`change_duration_seconds_count{phase="start"} 2`, `kubelet_healthy 1`, `condition{status="True",reason="Local"} 1`, `build_info{version="v1"} 1`} {
		n.await(line, n.shows("kubelet_supervisor_"+line))
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if handed := l.handOver().Counts; handed.Exits["signal"] != 1 || handed.Asked != 1 {
		t.Errorf("handed over: %+v", handed)
	}
	next := newMetrics(Options{MetricsAddress: "unix:///x", Handover: &Handover{Counts: l.metrics.Counts()}})
	if next.Counts().Exits["signal"] != 1 {
		t.Errorf("the next program begins with %+v", next.Counts())
	}
}

// Nothing is counted where nobody asks.
func TestNoMetrics(t *testing.T) {
	if newMetrics(Options{}) != nil {
		t.Error("there are some")
	}
}

// Answers and their absence are counted, and what we gave up ourselves is not.
func TestCountedAnswers(t *testing.T) {
	counts := metrics.New("v1", metrics.Counts{}, func() time.Duration { return 0 })
	address := serve(t, http.StatusTeapot)
	ask := func(url string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := (countedAnswers{http.DefaultTransport, counts}).RoundTrip(request); err == nil {
			_ = answer.Body.Close()
		}
	}
	ask("http://" + address)
	ask("http://127.0.0.1:1")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	text := string(counts.Text())
	for _, want := range []string{`api_requests_total{code="418"} 1`, `api_requests_total{code="none"} 1`, "last_contact_timestamp_seconds "} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}
