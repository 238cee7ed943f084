//go:build linux

package store

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type trial struct {
	Of       string        `json:"of,omitempty"`
	Healthy  time.Duration `json:"healthy,omitempty"`
	Failures int           `json:"failures,omitempty"`
}

func TestSaveDocument(t *testing.T) {
	const head = "apiVersion: kubelet-supervisor.io/v1\nkind: Trial\n"
	for _, row := range []struct {
		name  string
		v     any
		bytes string
		err   string
	}{
		{"nothing in it", trial{}, head, ""},
		{"fields", trial{Of: "sha256:ab", Healthy: 9 * time.Minute, Failures: 2}, head + "failures: 2\nhealthy: 540000000000\nof: sha256:ab\n", ""},
		{"a pointer", &trial{Failures: 1}, head + "failures: 1\n", ""},
		{"a map", map[string][]string{"entries": {"a"}}, head + "entries:\n- a\n", ""},
		{"what looks like YAML", trial{Of: "yes\nkind: x"}, head + "of: |-\n  yes\n  kind: x\n", ""},
		{"nil", nil, "", "is not marshalled to a JSON object"},
		{"a list", []int{1}, "", "is not marshalled to a JSON object"},
		{"no JSON", map[string]any{"f": func() {}}, "", "unsupported type"},
		{"a kind of its own", map[string]string{"kind": "x"}, "", "has an apiVersion or a kind of its own"},
		{"an apiVersion of its own", map[string]string{"apiVersion": "x"}, "", "has an apiVersion or a kind of its own"},
		{"too much", trial{Of: strings.Repeat("x", 1<<20)}, "", "more than the 1048576 that are read back"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			wantError(t, s.SaveDocument("trial", "Trial", row.v), row.err)
			written, err := os.ReadFile(filepath.Join(s.dir, "meta", "trial"))
			if row.err == "" {
				must(t, err)
			}
			if diff := cmp.Diff(row.bytes, string(written)); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDocumentsComeBackAsTheyWere(t *testing.T) {
	for _, words := range []string{"", "x", "null", "1e3", "0x10", " a ", "a: b", "# c", "---\n", "é…😀", "\x00\x01\x1b[31m", "\x7f", "\u0085\u009f\ufeff\ufffe\uffff", "<&>\u2028", `\U0000007f "q"`} {
		s := open(t, t.TempDir())
		saved := trial{Of: words, Healthy: math.MaxInt64, Failures: math.MinInt}
		must(t, s.SaveDocument("trial", "Trial", saved))
		var loaded trial
		must(t, s.LoadDocument("trial", "Trial", &loaded))
		if diff := cmp.Diff(saved, loaded); diff != "" {
			t.Errorf("%q (-want +got):\n%s", words, diff)
		}
	}
}

func TestLoadDocument(t *testing.T) {
	s := open(t, t.TempDir())
	loaded := trial{Of: "before"}
	must(t, s.LoadDocument("trial", "Trial", &loaded))
	if want := (trial{Of: "before"}); loaded != want {
		t.Errorf("without a document the value became %+v", loaded)
	}

	newer := map[string]any{"failures": 3, "addedLater": []int{1}}
	must(t, s.SaveDocument("trial", "Trial", newer))
	must(t, s.LoadDocument("trial", "Trial", &loaded))
	if want := (trial{Failures: 3}); loaded != want {
		t.Errorf("loaded %+v, want %+v and nothing from before", loaded, want)
	}
	asMap := map[string]any{}
	must(t, s.LoadDocument("trial", "Trial", &asMap))
	if diff := cmp.Diff(map[string]any{"failures": 3.0, "addedLater": []any{1.0}}, asMap); diff != "" {
		t.Errorf("as a map (-want +got):\n%s", diff)
	}
}

func TestDocumentNames(t *testing.T) {
	s := open(t, t.TempDir())
	for name, refused := range map[string]string{
		"trial": "", "rejected": "", "preflight": "",
		"":                "cannot be a file name",
		"..":              "cannot be a file name",
		"a/b":             "cannot be a file name",
		"tmp_trial":       "cannot be a file name",
		"trial.corrupt-1": "cannot be a file name",
		"assigned":        "is a pointer",
		"last-known-good": "is a pointer",
	} {
		wantError(t, s.SaveDocument(name, "Trial", trial{}), refused)
		wantError(t, s.LoadDocument(name, "Trial", &trial{}), refused)
	}
}
