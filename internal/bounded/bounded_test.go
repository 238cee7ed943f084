package bounded

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		text     string
		limit    int
		expected string
	}{
		{"", 0, ""},
		{"kubelet", 7, "kubelet"},
		{"kubelets", 7, "kube…"},
		{"éééé", 8, "éééé"},
		{"éééé", 7, "éé…"},
		{"éééé", 6, "é…"},
		{"kubelet", 3, "…"},
		{"kubelet", 0, "…"}, // that it was cut is never left out
	} {
		if got := Text(test.text, test.limit); got != test.expected {
			t.Errorf("Text(%q, %d) = %q, not %q", test.text, test.limit, got, test.expected)
		}
	}
}

func TestLine(t *testing.T) {
	for text, expected := range map[string]string{
		"":                             "",
		" a  b ":                       "a b",
		"a\nb\r\n\tc\x00d\x1b[31me":    "a b c d [31me",
		"no\u00a0break\u2028separator": "no break separator",
		"hid\u200bden\u202e":           "hid den",
		"bro\xffken":                   "bro\uFFFDken",
		"Ångström 界":                   "Ångström 界",
	} {
		if got := Line(text); got != expected {
			t.Errorf("Line(%q) = %q, not %q", text, got, expected)
		}
	}
}

func FuzzTextOfALine(f *testing.F) {
	f.Add("bad\xff\n", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, len(Ellipsis)), 1<<20)
		got := Text(Line(text), limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("got %q", got)
		}
	})
}

func TestRead(t *testing.T) {
	if content, err := Read(strings.NewReader("abc"), 3); string(content) != "abc" || err != nil {
		t.Errorf("got %q, %v", content, err)
	}
	var tooLong *TooLongError
	if content, err := Read(strings.NewReader("abcd"), 3); content != nil || !errors.As(err, &tooLong) || tooLong.Limit != 3 {
		t.Errorf("got %q, %v", content, err)
	}
	broken := errors.New("broken")
	if content, err := Read(iotest.ErrReader(broken), 3); content != nil || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", content, err)
	}
}
