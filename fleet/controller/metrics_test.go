package controller

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// The metrics are named as Prometheus asks for it, and all that fleet programs and people read are there. Those of the first pool come with it.
func TestTheMetricsNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, gauge := range []*prometheus.GaugeVec{m.wave, m.stop, m.held} {
		gauge.WithLabelValues("workers").Set(1)
	}
	m.nodes.WithLabelValues("workers", "old").Set(1)
	m.patched(nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, family := range families {
		names[family.GetName()] = true
	}
	for _, name := range []string{"kubelet_pool_nodes", "kubelet_pool_wave", "kubelet_pool_stopped", "kubelet_pool_held",
		"kubelet_pool_verdict_to_last_assignment_seconds", "kubelet_pool_patches_total", "kubelet_pool_decide_seconds"} {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
