package bounded

import (
	"encoding/json"
	"strings"
	"testing"
)

// What comes out is printable, in lines that end, wherever the text is cut into writes.
func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext → ü\n":                             "plain\n\ttext → ü\n",
		"\x1b[2Jred\x1b\r\a\x7f1":                         " [2Jred    1",
		"a\u202eb\u200bc\ufeffd\U000e0041e\ufe0ff\u0085g": "a b c d e f g",
		"0123456789abcdef\nnext":                          "0123456789abc…\nnext",
		"ääääääääääää\nnext":                              "ääääää…\nnext",
		"half \xe2\x82\nnext":                             "half \uFFFD\uFFFD\nnext",
	} {
		for size := 1; size <= len(text); size++ {
			var got strings.Builder
			w := NewWriter(&got, 16)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if wrote, err := w.Write([]byte(rest[:n])); err != nil || wrote != n {
					t.Fatalf("%d written of %d: %v", wrote, n, err)
				}
				rest = rest[n:]
			}
			if got.String() != want || !Shows(got.String()) {
				t.Errorf("%q in pieces of %d becomes %q, want %q", text, size, got.String(), want)
			}
		}
	}
}

// A document says the same with escapes as without.
func TestDocuments(t *testing.T) {
	const text = "a\u202eb\u200bc\U000e0041d\x7fe\ue000\n\t→"
	var document strings.Builder
	if err := json.NewEncoder(&document).Encode(map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	if Shows(document.String()) {
		t.Fatalf("encoding/json escapes all of it by now: %s", document.String())
	}
	escaped := JSON(document.String())
	var read map[string]string
	if err := json.Unmarshal([]byte(escaped), &read); err != nil || read[text] != text || !Shows(escaped) {
		t.Errorf("%v: %q from %s", err, read, escaped)
	}
	if flow := FlowYAML(document.String()); !Shows(flow) || !strings.Contains(flow, `\U000e0041`) {
		t.Errorf("YAML is %s", flow)
	}
}
