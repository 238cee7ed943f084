//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func aResult(commit, broken string) *result {
	return &result{
		Commit: commit, Begin: time.Unix(0, 0).UTC(), Seed: 7, Seconds: 100, Rounds: 2, Faults: 3, Broken: broken,
		Steps: map[string]int{"kill the kubelet": 3}, Recovery: map[string]recovery{"kill the kubelet": {Healthy: 1000, True: 2000}},
		Worst: recovery{Healthy: 1000, True: 2000}, Goroutines: []int{30}, Pods: 11, Compared: 11,
		Samples: []sample{{Round: 1, Second: 5, size: size{Life: 1, Files: 20}}, {Round: 2, Second: 9, size: size{Life: 1, Files: 22}}},
	}
}

// Runs add up over files and lines, and the page has the figures and the series of all of them.
func TestResultsAddUp(t *testing.T) {
	folder := t.TempDir()
	one, two, document := filepath.Join(folder, "one.json"), filepath.Join(folder, "two.json"), filepath.Join(folder, "soak.md")
	longer := aResult("c", "")
	longer.Interrupted = true
	longer.Worst, longer.Recovery["kill the kubelet"] = recovery{3000, 1500}, recovery{3000, 1500}
	for file, results := range map[string][]*result{one: {aResult("c", ""), longer}, two: {aResult("c", "two kubelets | at a time\nand more")}} {
		for _, r := range results {
			if err := r.add(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writePage(document, []string{one, two}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"**5m0s** in 3 run(s), 6 rounds, 9 faults", "**Runs that ended with a broken rule: 1.**", "two kubelets ¦ at a time", "| interrupted; every rule held until then |",
		"| kill the kubelet | 9 | 3.00 s | 2.00 s |", "| descriptors | 20 | 22 |", "| goroutines, in 3 dumps | 30 | 30 |", "\n3,2,9,1,22,",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the page has no %q:\n%s", want, content)
		}
	}
}

func TestResultsOfTwoCommitsDoNotAddUp(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "results.json")
	if err := aResult("a", "").add(file); err != nil {
		t.Fatal(err)
	}
	if err := aResult("b", "").add(file); err != nil {
		t.Fatal(err)
	}
	if err := writePage(filepath.Join(folder, "soak.md"), []string{file}); err == nil {
		t.Error("a page was written of two commits")
	}
}
