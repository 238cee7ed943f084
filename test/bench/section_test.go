//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

const benchmarkOutput = `goos: linux
BenchmarkDecide/halfway/5000-2   	      80	  14100000 ns/op	  12300000 cpu-ns/op	 5000000 B/op	   60000 allocs/op
BenchmarkDecide/halfway/5000-2   	      80	  26100000 ns/op	  12500000 cpu-ns/op	 5000000 B/op	   60000 allocs/op
BenchmarkDecide/halfway/15000    	      20	  5.2e+07 ns/op	  45000000 cpu-ns/op	 5000000 B/op	   60000 allocs/op
PASS
`

// rolledOut is a result file of bench rollout.
func rolledOut(t *testing.T) string {
	t.Helper()
	r := newResult(options{Commit: "abc"}, "kube-apiserver 1.36.3 and etcd")
	stage := pools.Stage{Took: 200 * time.Second, Assigned: 1000, Canaries: 4, Sending: 50 * time.Second, Words: 4000, Pool: 120, Unavailable: 100}
	f := &pools.Rollout{Nodes: 1000, Machines: 200, Waves: stage, Together: stage, Back: stage,
		Refusals: []pools.Refusal{{Assigned: 400, After: 3, Last: 40 * time.Millisecond}, {Assigned: 420, After: 9, Last: 60 * time.Millisecond}}}
	f.Waves.Twice = []string{"node-7"}
	r.rollout(f)
	if err := r.readDecisions(benchmarkOutput); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rollout.json")
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A section is rendered alone, and the rest of its page stays as it is. What misses its budget, and what should not have been, is shown.
func TestASectionAlone(t *testing.T) {
	document := filepath.Join(t.TempDir(), "scale.md")
	const before, after = "# Scale\n\nWords.\n\n", "\n## Growth\n\nMore.\n"
	if err := os.WriteFile(document, []byte(before+"## A pool, rolled out\n\nOld words.\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSection(document, "A pool, rolled out", "Others shared the machine.", []string{rolledOut(t)}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(content)), " ")
	for _, words := range []string{"commit abc,", "Others shared the machine.", "| assignments a second, after the canaries | 19.9 /s |",
		"| nodes that were assigned to twice | 1 MISSED | 0 | 0 | 0 |", `by waves: ["node-7"]`, "| … the most assignments | 9 MISSED | | 8 |", "| a revision | by waves | all at once | the way back | budget |",
		"| from the verdict to the last assignment | 50 ms | 40 – 60 | |", "| halfway, 5000 nodes | 20.1 ms MISSED | 14.1 – 26.1 | 20 ms |", "| halfway, 15000 nodes | 52 ms |"} {
		if !strings.Contains(text, words) {
			t.Errorf("the section has no %q:\n%s", words, content)
		}
	}
	if !strings.HasPrefix(string(content), before) || !strings.HasSuffix(string(content), after) || strings.Contains(text, "Old words") {
		t.Errorf("the page is\n%s", content)
	}
	if err := os.WriteFile(document, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		heading string
		of      []string
		fail    string
	}{{"A pool, rolled out", []string{rolledOut(t)}, "no section"}, {"Growth", nil, "rendered alone"}, {"A pool, rolled out", files("storm"), "is a result"}} {
		if err := writeSection(document, c.heading, "", c.of); err == nil || !strings.Contains(err.Error(), c.fail) {
			t.Errorf("section %q of %q: %v", c.heading, c.of, err)
		}
	}
}

func TestReadDecisions(t *testing.T) {
	if err := new(Result).readDecisions("PASS\n"); err == nil {
		t.Error("a benchmark that says nothing is no failure")
	}
}
