//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files are the result files of testdata.
func files(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, filepath.Join("testdata", name+".json"))
	}
	return paths
}

func rendered(t *testing.T, name, note string, files []string) (string, error) {
	t.Helper()
	document := filepath.Join(t.TempDir(), name)
	if err := writePage(document, note, files); err != nil {
		return "", err
	}
	text, err := os.ReadFile(document)
	return string(text), err
}

// A page has every figure of its result files, in whatever order they are given.
func TestPagesAreThoseOfTheirResults(t *testing.T) {
	for name, of := range map[string][]string{
		"benchmarks.md":    files("bench", "upstream"),
		"compatibility.md": files("matrix"),
		"scale.md":         files("long", "scale-1000", "scale-1", "scale-100"),
		"storm.md":         files("storm-before", "storm"),
		"pools.md":         files("pools-5000", "pools-100"),
	} {
		seen, err := rendered(t, name, "", of)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		expected, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if difference := cmp.Diff(strings.Split(string(expected), "\n"), strings.Split(seen, "\n")); difference != "" {
			t.Errorf("%s, - as expected, + as rendered:\n%s", name, difference)
		}
	}
}

func TestPagesSayWhatIsNotThere(t *testing.T) {
	for _, c := range []struct {
		name, note  string
		of          []string
		words, fail string
	}{
		{"benchmarks.md", "", files("bench", "absent"), "- The removed feature itself", ""},
		{"benchmarks.md", "", files("absent", "upstream"), "", "there is no result of it"},
		{"scale.md", "Read this first.", files("scale-1", "scale-100"), "\n- One node for a longer time: `bench long`.\n", ""},
		{"scale.md", "Read this first.", files("scale-1", "scale-100"), "\n\nRead this first.\n\n**API server", ""},
		{"scale.md", "", files("long"), "", "no result of bench nodes"},
		{"scale.md", "", files("scale-100"), "", "two or more"},
		{"storm.md", "", files("bench"), "", "there is no result of it"},
		{"pools.md", "", files("storm"), "", "there is no result of it"},
		{"compatibility.md", "", files("bench"), "", "there is no result of it"},
		{"nothing.md", "", files("bench"), "", "no files"},
	} {
		seen, err := rendered(t, c.name, c.note, c.of)
		if c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) || c.fail == "" && err != nil {
			t.Errorf("%s from %q: %v, expected was %q", c.name, c.of, err, c.fail)
		}
		if !strings.Contains(seen, c.words) {
			t.Errorf("%s from %q has no %q", c.name, c.of, c.words)
		}
	}
}

// A figure that is missing is an error, and never a 0.
func TestEveryFigureHasToBeThere(t *testing.T) {
	r, err := load(files("scale-1")[0])
	if err != nil {
		t.Fatal(err)
	}
	r.Rows = slices.DeleteFunc(r.Rows, func(row *Row) bool { return strings.HasPrefix(row.Name, waveSpread+": requests") })
	path := filepath.Join(t.TempDir(), "result.json")
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := rendered(t, "scale.md", "", append(files("scale-100"), path)); err == nil || !strings.Contains(err.Error(), "measure it again") {
		t.Errorf("a page of a result without some rows: %v", err)
	}
}

func TestFigure(t *testing.T) {
	for value, expected := range map[float64]string{0: "0", 1: "1", 0.01234: "0.0123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345: "12345"} {
		if seen := figure(value); seen != expected {
			t.Errorf("figure(%g) is %q, expected was %q", value, seen, expected)
		}
	}
}
