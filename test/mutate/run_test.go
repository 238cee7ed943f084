//go:build linux

package main

import (
	"testing"
	"time"
)

func TestSlowTests(t *testing.T) {
	const output = "=== RUN   TestA\n--- PASS: TestA (0.01s)\n--- PASS: TestB (2.00s)\n    --- PASS: TestB/1 (1.50s)\n--- PASS: FuzzC (0.30s)\n" +
		"--- PASS: TestParallel (0.00s)\n    --- PASS: TestParallel/1 (0.70s)\n        --- PASS: TestParallel/1/a (0.70s)\n    --- PASS: TestParallel/2 (0.80s)\nPASS\n"
	for limit, want := range map[time.Duration]string{
		1600 * time.Millisecond: "^(TestB)$", 1400 * time.Millisecond: "^(TestB|TestParallel)$",
		100 * time.Millisecond: "^(TestB|FuzzC|TestParallel)$", time.Minute: "",
	} {
		if got := slowTests(output, limit); got != want {
			t.Errorf("more than %s: %q, want %q", limit, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	const output = "=== RUN   TestA\n=== PAUSE TestA\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/1 (0.01s)\n--- FAIL: TestB (0.01s)\n    b_test.go:1: words\n    --- FAIL: TestB/1 (0.01s)\nFAIL\n"
	if got, want := failures(output), "--- FAIL: TestB (0.01s)\n    b_test.go:1: words\n    --- FAIL: TestB/1 (0.01s)\nFAIL\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCoverage(t *testing.T) {
	blocks := coverage("mode: set\nexample.org/p/a.go:3.10,5.2 2 1\nexample.org/p/a.go:7.10,9.2 1 0\nexample.org/p/b.go:3.10,5.2 2 0\n")["a.go"]
	for _, row := range []struct {
		line, column int
		want         bool
	}{
		{3, 9, true}, {4, 1, true}, {6, 1, true}, // the profile does not speak of the last
		{7, 9, true}, {7, 10, false}, {8, 80, false}, {9, 1, false}, {9, 2, true},
	} {
		if got := covers(blocks, row.line, row.column); got != row.want {
			t.Errorf("%d.%d: %v", row.line, row.column, got)
		}
	}
}
