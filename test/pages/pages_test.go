package pages

import (
	"reflect"
	"strings"
	"testing"
)

const sample = "Look.\n<!-- before: $ touch a -->\n\n```console\n$ ls\na\nb\n# id -u\n```\n\n```console not-run\n$ rm -r /\n```\n- an item\n\n" +
	"  ```console\n  $ echo\n  c\n  ```\n\nThe end.\n"

func TestTyped(t *testing.T) {
	want := []Command{{Line: "touch a", Before: true}, {Line: "ls", Answer: "a\nb\n"}, {OnNode: true, Line: "id -u"}, {Line: "echo", Answer: "c\n"}}
	if got := Typed(sample); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestMarked(t *testing.T) {
	page := sample + "```console machine\n# reboot\n# id -u\n0\n```\n\n```console machine\n$ ls\n```\n"
	want := [][]Command{{{OnNode: true, Line: "reboot"}, {OnNode: true, Line: "id -u", Answer: "0\n"}}, {{Line: "ls"}}}
	if got := Marked(page, "machine"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := len(Typed(page)); got != len(Typed(sample)) {
		t.Errorf("%d commands are typed with those of a machine", got)
	}
}

func TestSection(t *testing.T) {
	page := "# A\n\n## One\n\na\n\n### Below\n\nb\n\n## Two\n\nc\n"
	for name, want := range map[string]string{"One": "\na\n\n### Below\n\nb\n", "Two": "\nc\n", "Three": ""} {
		if got := Section(page, name); got != want {
			t.Errorf("%s has %q", name, got)
		}
	}
}

func TestSplitLosesNothing(t *testing.T) {
	var whole strings.Builder
	for _, part := range Split(sample) {
		whole.WriteString(part.Text)
	}
	if whole.String() != sample {
		t.Errorf("%q", whole.String())
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		shown, seen string
		want        bool
	}{
		{"a\n…\nc\n", "a\nb\nc\n", true},
		{"a\n…\nc\n", "a\nc\n", true},
		{"a.\n", "ab\n", false},
		{"…\n", "", true},
		{"a\n", "a\nb\n", false},
	} {
		if got := Answers(test.shown, test.seen); got != test.want {
			t.Errorf("%q for %q: %v", test.seen, test.shown, got)
		}
	}
}

func TestTable(t *testing.T) {
	const page = "Look.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |  |\n\n| a | c |\n|---|---|\n| 1 |\n"
	header, rows, found := Table(page, "| a | b |")
	if want := [][]string{{"1", "2"}, {"3", ""}}; !found || !reflect.DeepEqual(header, []string{"a", "b"}) || !reflect.DeepEqual(rows, want) {
		t.Errorf("%v %v, found: %v", header, rows, found)
	}
	for _, begins := range []string{"| a | c |", "| a | d |"} {
		if header, rows, found := Table(page, begins); found {
			t.Errorf("%s: %v %v", begins, header, rows)
		}
	}
}
