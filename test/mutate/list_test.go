//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"good", "# words\na.go f: x → y\n\tbecause\n  it is\n\nb.go g: removed z\n\tso\n", ""},
		{"no reason", "a.go f: x → y\nb.go g: removed z\n\tso\n", "a.go f: x → y has no reason"},
		{"no mutant", "\tso\n", ":1: a reason without a mutant"},
		{"twice", "a.go f: x → y\n\tso\na.go f: x → y\n\tso\n", ":3: a.go f: x → y is there twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mutants.txt")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			reasons, err := readList(path)
			if row.want == "" && (err != nil || len(reasons) != 2 || reasons["a.go f: x → y"] != "because it is") {
				t.Errorf("%v, %v", reasons, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %s", err, row.want)
			}
		})
	}
	if reasons, err := readList(filepath.Join(t.TempDir(), "absent")); err != nil || len(reasons) > 0 {
		t.Errorf("no list: %v, %v", reasons, err)
	}
}

// What is no fault: a killed mutant, a survivor on the list, and a mutant that does not compile, on the list or not.
func TestFaults(t *testing.T) {
	for _, row := range []struct {
		result result
		listed bool
		fault  string
	}{
		{killed, false, ""},
		{hung, false, ""},
		{hung, true, "on the list, but a test fails with it"},
		{killed, true, "on the list, but a test fails with it"},
		{survived, false, "(survived)"},
		{survived, true, ""},
		{uncovered, false, "(not covered)"},
		{timedOut, false, "(timed out)"},
		{timedOut, true, ""},
		{broken, false, ""},
	} {
		var out bytes.Buffer
		a := &account{out: &out, results: map[result]int{}, reasons: map[string]string{}}
		m := &mutant{file: "a.go", function: "f", change: "x → y"}
		if row.listed {
			a.reasons["a.go f: x → y"] = "so"
		}
		a.take(m, row.result)
		if (row.fault != "") != (a.faults == 1) || !strings.Contains(out.String(), row.fault) {
			t.Errorf("%+v: %d faults, %s", row, a.faults, out.String())
		}
	}
}

func TestListMatches(t *testing.T) {
	var out bytes.Buffer
	a := &account{out: &out, reasons: map[string]string{"a.go f: x → y": "so", "a.go f: gone": "so"}}
	a.match([]*mutant{{file: "a.go", function: "f", change: "x → y"}})
	if a.faults != 1 || !strings.Contains(out.String(), "not any more: a.go f: gone") {
		t.Errorf("%d faults, %s", a.faults, out.String())
	}
}

func TestBar(t *testing.T) {
	reasons := map[string]string{"a": "so", "b": "so"}
	for all, faults := range map[int]int{24: 1, 25: 0} {
		a := &account{out: &bytes.Buffer{}, reasons: reasons, results: map[result]int{killed: all - 2, survived: 2, broken: 50}}
		if a.judge(); a.faults != faults {
			t.Errorf("2 of %d: %d faults", all, a.faults)
		}
	}
}

// What was alive is run again, wherever its line has gone.
func TestAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "printed")
	const printed = "./a: 4 mutants to run; built in 1s, 10s for each at most\na.go:3: f: x → y (survived)\na.go:4: T.g: removed (z) (not covered)\n" +
		"a.go:5: f: 1 → 0 (timed out)\na.go:6: f: 2 → 3 (on the list, but a test fails with it)\n"
	if err := os.WriteFile(path, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*mutant
	for _, change := range []string{"f: x → y", "f: x → z", "T.g: removed (z)", "f: 1 → 0", "f: 2 → 3"} {
		function, change, _ := strings.Cut(change, ": ")
		all = append(all, &mutant{file: "a.go", function: function, change: change}, &mutant{file: "b.go", function: function, change: change})
	}
	left, err := again(path, all)
	if err != nil || len(left) != 3 {
		t.Fatalf("%d are left, %v", len(left), err)
	}
	for i, want := range []string{"a.go f: x → y", "a.go T.g: removed (z)", "a.go f: 1 → 0"} {
		if got := left[i].key(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, err := again(path+".absent", all); err == nil {
		t.Error("a file that is not there is no error")
	}
}
