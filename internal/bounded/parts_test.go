package bounded

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestParts(t *testing.T) {
	x, y := strings.Repeat("x", 600), strings.Repeat("y", 500)
	for name, test := range map[string]struct {
		limit    int
		parts    []string
		expected string
	}{
		"none":                        {10, nil, ""},
		"empty ones are left out":     {10, []string{"", "a", " ", "b"}, "a; b"},
		"one line":                    {20, []string{"a\n\tb\r\n", "c\x00d"}, "a b; c d"},
		"it just fits":                {7, []string{"a", "b", "c"}, "a; b; c"},
		"the middle is cut":           {20, []string{"runs", "because of", "do it"}, "runs; beca…; do it"},
		"the longest of it":           {26, []string{"runs", "because of that", "why", "do"}, "runs; because …; why; do"},
		"all that is long, alike":     {100, []string{"runs", x, y, "do it"}, "runs; " + x[:39] + "…; " + y[:39] + "…; do it"},
		"the end is longer than that": {30, []string{"runs", "why", strings.Repeat("do", 9), strings.Repeat("it", 8)}, "runs; …; itititititititit"},
		"then the first is cut":       {20, []string{"it runs", "why", "do it, please"}, "it…; do it, please"},
		"of two the first":            {20, []string{"it is refused: so", "now local"}, "it is …; now local"},
		"at last the end":             {10, []string{"it runs", "why", "do it, please"}, "…; do…"},
		"only one":                    {6, []string{"it runs"}, "it …"},
		"characters stay whole":       {13, []string{"é", "éééééééé", "é"}, "é; é…; é"},
		"a flood":                     {20, append([]string{"runs"}, append(strings.Split(strings.Repeat("z ", 50), " "), "do it")...), "runs; …; do it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Parts(test.limit, test.parts...); got != test.expected {
				t.Errorf("%q, want %q", got, test.expected)
			}
		})
	}
}

func FuzzParts(f *testing.F) {
	f.Add("using current (default)", "because\nof this", "\xff", 3, 1024)
	f.Add(strings.Repeat("é", 1000), strings.Repeat("x", 1000), "do that", 1000, 1024)
	f.Add("", "", "x", 5000, 30)
	f.Fuzz(func(t *testing.T, first, part, last string, times, limit int) {
		limit = min(max(limit, len(Ellipsis)), 1<<12)
		parts := []string{first}
		for range min(max(times, 0), 200) {
			parts = append(parts, part)
		}
		got := Parts(limit, append(parts, last)...)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if end := Line(last); len(Line(first))+len(end)+len("; …; ") <= limit && !strings.HasSuffix(got, end) {
			t.Errorf("%q does not end with %q", got, end)
		}
	})
}
