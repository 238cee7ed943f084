//go:build linux

package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each fate in a small package, by real builds and runs: survivors are named, what does not compile is not counted.
func TestFates(t *testing.T) {
	want := []string{
		"sample.go:13: counter.add: 1 → 0 (survived)",
		"sample.go:13: counter.add: c.seen+1 → (c.seen - 1) (survived)",
		"sample.go:13: counter.add: c.sum, c.seen = c.sum+n, c.seen+1 → c.sum = c.sum+n (survived)",
		"sample.go:26: first: none-- → none++ (survived)",
		"sample.go:26: first: removed none-- (survived)",
		"sample.go:32: forever: 10 → 11 (survived)",
		"sample.go:32: forever: n < 10 → (n <= 10) (survived)",
		"sample.go:33: forever: n += 5 → n -= 5 (timed out)",
		"sample.go:33: forever: removed n += 5 (timed out)",
		"sample.go:38: untested: 7 → 8 (not covered)",
		"sample.go:6: names: 2 → 3 (survived)",
		`sample.go:6: names: removed 2: "two" (survived)`,
	}
	faults, lines := mutateSample(t, options{Share: 1, Jobs: 2})
	got := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "sample.go:") })
	slices.Sort(got)
	if !slices.Equal(got, want) || faults != len(want) {
		t.Errorf("%d faults\n%s\nwant\n%s", faults, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	const sum = "./testdata/sample: 26 mutants: 13 killed (50.0 %), of them 0 by the time limit; 13 alive, of them 1 not covered, 2 timed out, 1 listed as meaning the same (3.8 %); "
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, sum) {
		t.Errorf("%q, want %q", last, sum)
	}
}

// A part is the same part for the same seed.
func TestPart(t *testing.T) {
	var all []*mutant
	for i := range 1000 {
		all = append(all, &mutant{id: i, file: []string{"a.go", "b.go"}[i%2]})
	}
	o := options{Share: 0.1, Seed: 7, Files: "b.go"}
	first, again := o.choose(all), o.choose(all)
	if !slices.Equal(first, again) || len(first) < 20 || len(first) > 80 || first[0].file != "b.go" {
		t.Errorf("%d and %d mutants", len(first), len(again))
	}
	if o.Seed++; slices.Equal(first, o.choose(all)) {
		t.Error("another seed chooses the same mutants")
	}
}

// A file that is not there is no success.
func TestNothingChosen(t *testing.T) {
	_, err := mutate(t.Context(), options{target: target{Package: "./testdata/sample"}, Share: 1, Jobs: 2, Files: "absent.go"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no mutant is left") {
		t.Error(err)
	}
}

func mutateSample(t *testing.T, o options) (int, []string) {
	t.Helper()
	o.Package, o.Least = "./testdata/sample", 2*time.Second
	var out bytes.Buffer
	faults, err := mutate(t.Context(), o, &out)
	if err != nil {
		t.Fatal(err)
	}
	return faults, strings.Split(strings.TrimSpace(out.String()), "\n")
}
