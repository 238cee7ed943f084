//go:build linux

package supervisor

import (
	"context"
	"net/http"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
)

// newMetrics goes on from what the program before this one has counted. Where metrics are not asked for, nothing is counted.
func newMetrics(o Options) *metrics.Metrics {
	if o.MetricsFile == "" && o.MetricsAddress == "" {
		return nil
	}
	var before metrics.Counts
	if o.Handover != nil && o.Handover.broken == nil {
		before = o.Handover.Counts
	}
	return metrics.New(o.Version, before, steadyTime)
}

// showMetrics shows them until ctx ends.
func (l *loop) showMetrics(ctx context.Context) {
	if l.MetricsFile != "" {
		l.spawn(func() { l.metrics.Keep(ctx, l.MetricsFile, l.Logger) })
	}
	if l.MetricsAddress != "" {
		l.spawn(func() { l.metrics.Serve(ctx, l.MetricsAddress, l.Logger) })
	}
}

// countedAnswers counts the answers of the API server.
type countedAnswers struct {
	next    http.RoundTripper
	metrics *metrics.Metrics
}

// RoundTrip sends the request.
func (c countedAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(request)
	switch {
	case err == nil:
		c.metrics.Answered(answer.StatusCode, time.Now())
	case request.Context().Err() == nil: // else we hung up
		c.metrics.Answered(0, time.Time{})
	}
	return answer, err
}
