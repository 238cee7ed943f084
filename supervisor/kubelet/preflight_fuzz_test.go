//go:build linux

package kubelet

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// However a kubelet's output arrives in pieces, the mark that it accepts is seen, its error is found, and little is kept.
func FuzzPreflightOutput(f *testing.F) {
	f.Add("E1121 11:37:54.929500    2075 run.go:72] \"command failed\" err=\"failed to run Kubelet: ", "no lock file specified\"\n", uint16(7), false)
	f.Add(infoHeader+"\"Starting ", "kubelet\"\n", uint16(3), true)
	f.Add("{\"msg\":\"Acquiring file", " lock\"}\n", uint16(5), false)
	f.Add("panic: [", "/etc/kubernetes/a: [x]]", uint16(1), true)
	f.Fuzz(func(t *testing.T, before, after string, piece uint16, marked bool) {
		text := before + after
		if marked {
			text = before + "\n" + acceptedLine + "\n" + after
		}
		marks := &marks{past: func() {}}
		r := &attempt{status: "exit status 1"}
		r.stdout.marks, r.stderr.marks = marks, marks
		for chunk := range slices.Chunk([]byte(text), int(piece)+1) {
			if n, err := r.stderr.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, len(chunk), err)
			}
		}
		r.stderr.end()
		accepted, pastCheck := marks.seen()
		whole := marksIn(text, len(text)+1)
		if accepted != whole.accepted || pastCheck != whole.pastCheck {
			t.Errorf("accepted %t and past %t, in one piece %t and %t", accepted, pastCheck, whole.accepted, whole.pastCheck)
		}
		if plain := !slices.ContainsFunc([]string{"panic: ", "fatal error: ", "Error: failed to ", "KubeletConfiguration\""}, func(words string) bool { return strings.Contains(before, words) }); marked && plain && !accepted {
			t.Error("the mark is not seen")
		}
		if accepted && !strings.Contains(text, "no lock file specified") && !strings.Contains(text, "\\") {
			t.Error("a mark is seen that is not there")
		}
		if len(r.stderr.head)+len(r.stderr.tail) > 3*keptOutput {
			t.Errorf("kept %d bytes", len(r.stderr.head)+len(r.stderr.tail))
		}
		words, _ := r.words("/run/candidate.yaml")
		if !utf8.ValidString(words) || len(words) > 512 || strings.ContainsFunc(words, unicode.IsControl) {
			t.Fatalf("not fit to be shown: %q", words)
		}
		if words != "" && neutral(words) != "" && !sameFailure(words, words) {
			t.Errorf("%q is not the same failure as itself", words)
		}
	})
}
