//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// One short round shows that everything can be measured. What the figures are is for make bench, on a machine that is idle.
func TestEverythingCanBeMeasured(t *testing.T) {
	o := options{Commit: "short", Binary: os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY"), Log: t.Output(), Rounds: 1, Changes: 3,
		Steady: 2 * time.Second, Settle: 300 * time.Millisecond, Window: 2 * time.Second, GiveUp: 2 * time.Second}
	if o.Binary == "" {
		o.Binary = build(t, "kubelet-supervisor", "./cmd/kubelet-supervisor")
	}
	o.FakeKubelet = build(t, "fakekubelet", "./test/fakekubelet")
	result, err := measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := result.save(path); err != nil {
		t.Fatal(err)
	}
	text, err := rendered(t, "benchmarks.md", "", []string{path})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text)
	for _, section := range []string{sectionChange, sectionStart, sectionFootprint, sectionTraffic} {
		if !result.has(section) {
			t.Errorf("section %q has no rows", section)
		}
	}
	expectPhases(t, result.Trace, "log: pre-flight's verdict", "log: stopping the kubelet", "healthz, polled: answers", "the Node names it active")
	expectPhases(t, result.StartTrace, "log: starting the kubelet with ", "the process table has the kubelet")
	seen := func(id string) float64 {
		section, name, _ := strings.Cut(id, "/")
		row, err := result.Row(section, name)
		if err != nil {
			t.Fatal(err)
		}
		return row.Median()
	}
	// No figure of these depends on the machine.
	for id, expected := range map[string]float64{
		"change/good configuration: kubelet starts": 1, "change/in-place edit: kubelet starts": 1, "change/removal: kubelet starts": 1,
		"change/equal content: kubelet starts": 0, "change/refused payload: kubelet starts": 0, "change/deadly payload: kubelet starts": 4,
		"change/another configuration: kubelet starts": 1, "change/refused payload in a trial: kubelet starts": 1,
		"API server/open watches steady": 2, "API server/writes steady": 0,
	} {
		if value := seen(id); value != expected {
			t.Errorf("%s is %g, expected was %g", id, value, expected)
		}
	}
	for _, id := range []string{"change/bare restart", "change/bare restart: not healthy", "change/good configuration: kubelet not healthy",
		"footprint/RSS steady", "footprint/RSS with metrics, read 20 times", "API server/requests per change", "API server/bytes per change", "API server/the kubelet's bytes per change (its restart)"} {
		if seen(id) <= 0 {
			t.Errorf("%s is nothing", id)
		}
	}
}

func expectPhases(t *testing.T, phases []Phase, names ...string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(phases, func(p Phase) bool { return strings.HasPrefix(p.Name, name) }) {
			t.Errorf("the trace has no %q: %v", name, phases)
		}
	}
}

func build(t *testing.T, name, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	command := exec.Command("go", "build", "-o", binary, program)
	command.Dir, command.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", name, err, output)
	}
	return binary
}
