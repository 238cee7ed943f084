//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/history"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

// Runs of one commit add up on the page, with what they broke and how processes grew.
func TestPage(t *testing.T) {
	file, page := filepath.Join(t.TempDir(), "results.json"), filepath.Join(t.TempDir(), "page.md")
	sample := func(minutes int, anonymous float64) pools.Sample {
		return pools.Sample{At: time.Duration(minutes) * time.Minute, Of: []pools.Taken{{Name: "controller", Process: 7, Anonymous: anonymous, Files: 12}}}
	}
	one := result{Commit: "abc", Soaked: pools.Soaked{Seed: 7, Took: time.Hour, Nodes: 40, Machines: 4, Rounds: 9, Acts: map[string]int{"kill a controller": 3},
		Samples:  []pools.Sample{sample(0, 20), sample(31, 25), sample(46, 25.125), sample(61, 25.25)},
		Minutes:  []pools.Minute{{Controller: 3, Nodes: 40, People: 5}},
		Findings: history.Findings{Assignments: 5, Reasons: map[string]int{"Active": 4}, Breaches: []history.Breach{{Rule: "hold"}}}}}
	two := one
	two.Seed, two.Failure, two.Breaches, two.Samples = 8, "round 3 of seed 8: it does not end\nthe last words", nil, nil
	for _, r := range []result{one, two} {
		if err := r.add(file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writePage(page, []string{file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Commit abc: 2 runs, 2h0m0s in all", "| 7 |", "| 1 | all nodes on one revision |", "| 0 | round 3 of seed 8: it does not end |",
		"| kill a controller | 6 |", "| Active | 8 |", "| controller | 30 min | 25.00 → 25.25 MiB | +0.50 ± 0.00 MiB | 12 → 12 | does not grow |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	series, err := os.ReadFile(strings.TrimSuffix(page, ".md") + ".csv")
	if err != nil || !strings.Contains(string(series), "7,31.00,7,controller,0.00,25.00,12,0,0\n") {
		t.Errorf("the series is %s (%v)", series, err)
	}
	other := one
	other.Commit = "def"
	if err := other.add(file); err != nil {
		t.Fatal(err)
	}
	if _, err := writePage(page, []string{file}); err == nil || !strings.Contains(err.Error(), "one commit") {
		t.Errorf("runs of two commits are one page: %v", err)
	}
}

// The page on the dashboard says of which run it is, how that ended, and what was seen.
func TestDashboardPage(t *testing.T) {
	r := result{Commit: "abc", Failure: "it does not end\nthe last words", Soaked: pools.Soaked{Seed: 7, Took: time.Hour, Rounds: 9, Nodes: 41, Machines: 4, Looked: &dashboard.Looked{Series: 1213}}}
	text, err := r.dashboardPage("x.png")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Commit abc, seed 7: 60 minutes and 9 rounds", "It ended with: it does not end.\n", "every 15s", "1213 series", "(x.png)", "| panel | query |", "| alert | state |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if err := (result{}).writeDashboard(filepath.Join(t.TempDir(), "none.md")); err != nil {
		t.Errorf("nobody has watched: %v", err)
	}
}
