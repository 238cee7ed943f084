package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedianRatioAndBudget(t *testing.T) {
	r := &Result{}
	bare := r.row("change", "bare", "ms")
	bare.Samples = []float64{500, 300, 400}
	twice := r.row("change", "twice", "ms").withinTimes(2, bare)
	twice.Samples = []float64{700, 900}
	more := r.row("change", "more", "ms").withinTimes(1.9, bare)
	more.Samples = []float64{800}
	small := r.row("footprint", "small", "MiB").within(24, "24 MiB")
	small.Samples = []float64{24}
	large := r.row("footprint", "large", "MiB").within(24, "24 MiB")
	large.Samples = []float64{24.1}
	none := r.row("change", "none", "").within(0, "0")
	none.Samples = []float64{1}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for row, expected := range map[*Row]struct {
		median, ratio float64
		missed        bool
	}{bare: {400, 0, false}, twice: {800, 2, false}, more: {800, 2, true}, small: {24, 0, false}, large: {24.1, 0, true}, none: {1, 0, true}} {
		if row.median() != expected.median || row.Ratio != expected.ratio || row.Missed != expected.missed {
			t.Errorf("%s: median %g, ratio %g, missed %t; expected was %+v", row.Name, row.median(), row.Ratio, row.Missed, expected)
		}
	}
	if words := r.MissedWords(); strings.Count(words, "\n- ") != 3 || !strings.Contains(words, "more (800 ms), budget 1.9 × the bare restart") {
		t.Errorf("the missed budgets are told as %q", words)
	}
	r.row("change", "forgotten", "ms")
	if err := r.finish(); err == nil || !strings.Contains(err.Error(), "change/forgotten") {
		t.Errorf("a row without samples: %v", err)
	}
}

func TestResultFileIsReadAsItWasWritten(t *testing.T) {
	written := &Result{Commit: "c", Date: time.Unix(0, 0).UTC(), Machine: []string{"m"}, Trace: []Phase{{"p", 1, 2}}}
	written.row("change", "row", "ms").addTime(1500 * time.Microsecond)
	path := filepath.Join(t.TempDir(), "result.json")
	if err := written.save(path); err != nil {
		t.Fatal(err)
	}
	read, err := load(path)
	if err != nil || !reflect.DeepEqual(read, written) {
		t.Errorf("read %+v, %v; written was %+v", read, err, written)
	}
}

func TestCompare(t *testing.T) {
	run := func(reference float64, samples ...float64) *Result {
		r := &Result{Commit: "c"}
		bare := r.row("change", "bare", "ms")
		bare.add(reference)
		r.row("change", "ours", "ms").against(bare).Samples = samples
		return r
	}
	for _, c := range []struct {
		name          string
		before, after *Result
		verdict       string
	}{
		{"the same", run(1, 10, 11), run(1, 10, 11), ""},
		{"slower, but the samples overlap", run(1, 10, 20), run(1, 19, 30), ""},
		{"slower by little", run(1, 100, 101), run(1, 105, 106), ""},
		{"slower", run(1, 10, 11), run(1, 13, 14), "WORSE"},
		{"faster", run(1, 13, 14), run(1, 10, 11), "better"},
		{"slower on a machine that is slower itself", run(1, 10, 11), run(2, 20, 22), ""},
		{"as fast on a machine that is faster", run(2, 20, 22), run(1, 20, 22), "WORSE"},
	} {
		rows, alone := compare(c.before, c.after)
		at := slices.IndexFunc(rows, func(c comparison) bool { return c.row.Name == "ours" })
		if len(alone) > 0 || at < 0 || rows[at].verdict != c.verdict {
			t.Errorf("%s: %+v, alone %v; expected was %q", c.name, rows, alone, c.verdict)
		}
	}
	if rows, _ := compare(run(1, 10), run(2, 20)); rows[0].row.Name != "bare" || rows[0].verdict != "" {
		t.Errorf("the kubelet alone is slower: %+v; expected was no verdict", rows[0])
	}
	moved := run(1, 10)
	moved.Rows[1].Reference = ""
	if rows, alone := compare(moved, run(1, 10)); len(rows) != 1 || !slices.Equal(alone, []string{"change/ours"}) {
		t.Errorf("a row with another reference: %v, alone %v", rows, alone)
	}
	other := run(1, 10)
	other.row("change", "new", "ms").add(1)
	if _, alone := compare(run(1, 10), other); !slices.Equal(alone, []string{"change/new"}) {
		t.Errorf("a row of one run alone: %v", alone)
	}
}

func TestCompareFilesTellsByItsExitCode(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, samples ...float64) string {
		r := &Result{Commit: name}
		r.row("footprint", "memory", "MiB").Samples = samples
		path := filepath.Join(folder, name)
		if err := r.save(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	small, large := file("small", 10), file("large", 12)
	for _, c := range []struct {
		files []string
		code  int
		words string
	}{
		{[]string{small, small}, 0, "+0 %"},
		{[]string{small, large}, 1, "WORSE"},
		{[]string{large, small}, 0, "better"},
		{[]string{small}, 2, "usage"},
		{[]string{small, filepath.Join(folder, "absent")}, 2, "no such file"},
	} {
		var out strings.Builder
		if code := compareFiles(&out, c.files); code != c.code || !strings.Contains(out.String(), c.words) {
			t.Errorf("%v: exit code %d, %q; expected was %d with %q", c.files, code, out.String(), c.code, c.words)
		}
	}
}

func TestDocumentHasEverySection(t *testing.T) {
	r := &Result{Commit: "v1", Machine: []string{"a machine"}, Trace: []Phase{{"a phase", 1.5, 1.5}}, Asked: []string{"the supervisor: 1 get nodes"}, Unproved: []string{"A cold start."},
		Settle: "1.5s", Steady: "1m0s", Window: "6s"}
	for _, s := range sections {
		r.row(s.name, "row of "+s.name, "ms").within(1, "1 ms").Samples = []float64{1, 2, 3}
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	text, err := r.document()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"Commit v1, ", "\n- a machine\n", "1.5      1.5  a phase\n```\n", "\n- the supervisor: 1 get nodes\n", "\n- A cold start.\n- The removed", "for 1m0s.", "**Budgets that are missed:**\n\n- change: row of change (2 ms), budget 1 ms\n",
		"\n\n| what ", "| row of start | 2 ms   | 1 – 3     | 3    |       |    | 1 ms   | MISSED |\n"} {
		if !strings.Contains(text, words) {
			t.Errorf("the document has no %q:\n%s", words, text)
		}
	}
	for _, s := range sections {
		if !strings.Contains(text, "\n## "+s.title+"\n") || !strings.Contains(text, "\n| row of "+s.name+" ") || !strings.Contains(r.tables(), "\n| row of "+s.name+" ") {
			t.Errorf("section %q is not whole", s.title)
		}
	}
}

func TestFigure(t *testing.T) {
	for value, expected := range map[float64]string{0: "0", 1: "1", 0.01234: "0.0123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345: "12345"} {
		if seen := figure(value); seen != expected {
			t.Errorf("figure(%g) is %q, expected was %q", value, seen, expected)
		}
	}
}
