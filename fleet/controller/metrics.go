package controller

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// metrics are the metrics of pools, which only the leader has.
type metrics struct {
	nodes, wave, stop, held *prometheus.GaugeVec
	patches                 *prometheus.CounterVec
	afterVerdict, decide    prometheus.Histogram
	pools                   map[string]bool // that have metrics
}

// usualCodes are exported with 0 from the start, because Prometheus does not see an increase in a series that begins with 1. Other codes come with their
// first answer.
var usualCodes = []string{noAnswer, "200", "401", "403", "404", "409", "422", "429", "500", "503", "504"}

const noAnswer = "0"

// newMetrics registers them.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		nodes: gauge("kubelet_supervisor_pool_nodes", "Members of a pool, by class.", "pool", "class"),
		wave:  gauge("kubelet_supervisor_pool_wave", "The open wave of a pool; 0 when there is nothing to roll out.", "pool"),
		stop:  gauge("kubelet_supervisor_pool_stopped", "1 while the target of a pool is stopped.", "pool"),
		held:  gauge("kubelet_supervisor_pool_held", "1 while new assignments of a pool wait because of doubt.", "pool"),
		patches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_supervisor_pool_patches_total",
			Help: "PATCHes of Nodes, by the status code of the answer; 0 where there was none."}, []string{"code"}),
		afterVerdict: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kubelet_supervisor_pool_verdict_to_last_assignment_seconds",
			Help: "For how long after the verdict that stopped a pool assignments of it were still sent.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 12)}),
		decide: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kubelet_supervisor_pool_decide_seconds",
			Help: "How long a decision over all pools takes.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12)}),
	}
	for _, code := range usualCodes {
		m.patches.WithLabelValues(code)
	}
	for _, c := range []prometheus.Collector{m.nodes, m.wave, m.stop, m.held, m.patches, m.afterVerdict, m.decide} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) decided(took time.Duration) { m.decide.Observe(took.Seconds()) }

func (m *metrics) stopped(after time.Duration) { m.afterVerdict.Observe(after.Seconds()) }

// patched counts an answer. A request that was not sent is not counted.
func (m *metrics) patched(err error) {
	var status apierrors.APIStatus
	code := noAnswer
	switch {
	case errors.Is(err, errFenced):
		return
	case err == nil, errors.As(err, new(altered)): // the answer of a dry run
		code = strconv.Itoa(http.StatusOK)
	case errors.As(err, &status):
		code = strconv.Itoa(int(status.Status().Code))
	}
	m.patches.WithLabelValues(code).Inc()
}

// report sets the metrics of all pools, and removes those of deleted pools.
func (m *metrics) report(w *rollout.World, plan *rollout.Plan) {
	pools := make(map[string]bool, len(w.Pools))
	for i := range w.Pools {
		pools[w.Pools[i].Name] = true
	}
	for name := range m.pools {
		if !pools[name] {
			m.forget(name)
		}
	}
	m.pools = pools
	for i := range w.Pools {
		name, status := w.Pools[i].Name, w.Pools[i].Status
		if changed, is := plan.Status[name]; is {
			status = changed
		}
		for class, n := range classes(&status.Nodes) {
			m.nodes.WithLabelValues(name, class).Set(float64(n))
		}
		wave := int32(0)
		if status.Wave != nil {
			wave = status.Wave.Number
		}
		m.wave.WithLabelValues(name).Set(float64(wave))
		stalled := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled)
		stopped := stalled != nil && stalled.Reason == rollout.ReasonStopped
		m.stop.WithLabelValues(name).Set(number(stopped))
		progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
		m.held.WithLabelValues(name).Set(number(progressing != nil && progressing.Reason == rollout.ReasonHeld && !stopped))
	}
}

func (m *metrics) forget(pool string) {
	for _, gauge := range []*prometheus.GaugeVec{m.nodes, m.wave, m.stop, m.held} {
		gauge.DeletePartialMatch(prometheus.Labels{"pool": pool})
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func classes(n *v1alpha1.NodeCounts) map[string]int32 {
	return map[string]int32{"old": n.Old, "late": n.Late, "applying": n.Applying, "waiting": n.Waiting, "on_trial": n.OnTrial, "proven": n.Proven,
		"failed": n.Failed, "blocked": n.Blocked, "joining": n.Joining, "held": n.Held, "skipped": n.Skipped, "manual": n.Manual,
		"conflict": n.Conflict, "unsupervised": n.Unsupervised, "leaving": n.Leaving}
}
