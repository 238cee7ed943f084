package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/history"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

// Runs of one commit add up on the page, with what they broke and how processes grew.
func TestPage(t *testing.T) {
	file, page := filepath.Join(t.TempDir(), "results.json"), filepath.Join(t.TempDir(), "page.md")
	sample := func(minutes int, anonymous float64) pools.Sample {
		return pools.Sample{At: time.Duration(minutes) * time.Minute, Controller: pools.Taken{Process: 7, Anonymous: anonymous, Files: 12}}
	}
	one := result{Commit: "abc", Soaked: pools.Soaked{Seed: 7, Took: time.Hour, Nodes: 40, Machines: 4, Rounds: 9, Acts: map[string]int{"kill a controller": 3},
		Samples:  []pools.Sample{sample(0, 20), sample(31, 25), sample(61, 25.5)},
		Findings: history.Findings{Assignments: 5, Reasons: map[string]int{"Active": 4}, Breaches: []history.Breach{{Rule: "hold"}}}}}
	two := one
	two.Seed, two.Failure, two.Breaches, two.Samples = 8, "round 3 of seed 8: it does not end", nil, nil
	for _, r := range []result{one, two} {
		if err := r.add(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := writePage(page, []string{file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Commit abc: 2 runs, 2h0m0s in all", "| 7 |", "| 1 | all nodes on one revision |", "| 0 | round 3 of seed 8: it does not end |",
		"| kill a controller | 6 |", "| Active | 8 |", "controller: from 25.0 to 25.5 MiB of anonymous memory, and from 12 to 12 descriptors, in 30m0s"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	other := one
	other.Commit = "def"
	if err := other.add(file); err != nil {
		t.Fatal(err)
	}
	if err := writePage(page, []string{file}); err == nil || !strings.Contains(err.Error(), "one commit") {
		t.Errorf("runs of two commits are one page: %v", err)
	}
}
