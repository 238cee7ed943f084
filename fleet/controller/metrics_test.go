package controller

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	compareGolden(t, registry)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, family := range families {
		if names[family.GetName()] = true; !strings.HasPrefix(family.GetName(), "kubelet_supervisor_pool_") {
			t.Errorf("%s has a name of the kubelet's own", family.GetName())
		}
	}
	for _, name := range []string{"kubelet_supervisor_pool_nodes", "kubelet_supervisor_pool_wave", "kubelet_supervisor_pool_stopped", "kubelet_supervisor_pool_held",
		"kubelet_supervisor_pool_verdict_to_last_assignment_seconds", "kubelet_supervisor_pool_patches_total", "kubelet_supervisor_pool_decide_seconds"} {
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

var update = flag.Bool("update", false, "write testdata anew")

// compareGolden compares the text with what the test of the mixin gives to Prometheus' own promtool.
func compareGolden(t *testing.T, registry prometheus.Gatherer) {
	t.Helper()
	const golden = "testdata/controller.prom"
	path := golden
	if !*update {
		path = filepath.Join(t.TempDir(), "now.prom")
	}
	if err := prometheus.WriteToTextfile(path, registry); err != nil {
		t.Fatal(err)
	}
	was, wasErr := os.ReadFile(golden)
	is, err := os.ReadFile(path)
	if err = errors.Join(wasErr, err); err != nil {
		t.Fatal(err)
	}
	if string(was) != string(is) {
		t.Errorf("%s has\n%s\nand the text is\n%s\nIf that is right, write it anew: go test ./fleet/controller -run %s -update", golden, was, is, t.Name())
	}
}

// Codes that matter are counted from 0, and what was not sent is no answer.
func TestCodesOfAnswers(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	for name, row := range map[string]struct {
		err  error
		code string // of what is 1; the others are 0
	}{
		"nothing sent yet": {errFenced, ""},
		"an answer":        {nil, "200"},
		"a refusal":        {fmt.Errorf("patching: %w", forbidden), "403"},
		"a conflict":       {apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no")), "409"},
		"no answer":        {errors.New("connection refused"), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m, err := newMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			m.patched(row.err)
			want := map[string]float64{"0": 0, "200": 0, "401": 0, "403": 0, "404": 0, "409": 0, "422": 0, "429": 0, "500": 0, "503": 0, "504": 0}
			if row.code != "" {
				want[row.code] = 1
			}
			if got := patches(t, registry); !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// patches are those that were counted, by code.
func patches(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "kubelet_supervisor_pool_patches_total" {
			for _, m := range family.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counted
}
