//go:build linux

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// The control decides what a refusal is worth, and nothing else.
func TestWhatTheControlDecides(t *testing.T) {
	const (
		accepts = "echo '" + acceptedLine + "'; exit 1; "
		load    = `echo 'E0101 00:00:00.000000 1 run.go:1] "command failed" err="failed to load kubelet config file, path: x"' >&2; `
		refuses = "echo 'panic: no'; "
	)
	for name, row := range map[string]struct {
		candidate, control string // what a shell does
		want               kubeletconfig.Outcome
		load, again        bool
	}{
		"accepted, and the control is killed":            {accepts, "kill -9 $$", kubeletconfig.Accepted, false, false},
		"does not load":                                  {load + "exit 1", accepts, kubeletconfig.Refused, true, false},
		"does not load, and the control is killed":       {load + "exit 1", "kill -9 $$", kubeletconfig.Unknown, false, true},
		"does not load, and nor does the control":        {load + "exit 1", load + "exit 1", kubeletconfig.Environment, false, false},
		"refused, and the kubelet is replaced meanwhile": {refuses + "rm $0; exit 2", "", kubeletconfig.Environment, false, false},
		"does not load, and the kubelet is replaced":     {load + "rm $0; exit 2", "", kubeletconfig.Environment, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			script := executable(t, `case "$*" in *candidate*) `+row.candidate+`;; esac; `+row.control)
			preflight := Preflight{Kubelet: script, Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, "candidate", header)}, &Candidate{})
			if verdict.Outcome != row.want || verdict.Load != row.load || verdict.Unanswered != row.again {
				t.Errorf("got %+v", verdict)
			}
		})
	}
}

// What a file is asked about besides is told of one that is refused for its resolver, too; and flags that go before its fields are named.
func TestWhatIsToldBesideAVerdict(t *testing.T) {
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: 0, // the usual one
		Arguments: []string{"--config=" + written(t, "own.yaml", fake("mode: ok")), "--max-pods=5"}}
	refused := preflight.Check(t.Context(), Candidate{File: written(t, "k.yaml", fake("mode: ok")+"resolvConf: /nowhere\nmaxPodz: 1\n")}, nil)
	if refused.Outcome != kubeletconfig.Refused || !strings.Contains(strings.Join(refused.Warnings, "; "), "maxPodz") {
		t.Errorf("refused: %+v", refused)
	}
	accepted := preflight.Check(t.Context(), Candidate{File: written(t, "k.yaml", fake("mode: ok")+"maxPods: 7\n")}, nil)
	if accepted.Outcome != kubeletconfig.Accepted || len(accepted.Shadowed) != 1 || accepted.Shadowed[0].Field != "maxPods" {
		t.Errorf("accepted: %+v", accepted)
	}
}

// A file counts as the same only with the same place on the disk, size and time.
func TestUnchanged(t *testing.T) {
	then := time.Unix(1_700_000_000, 0)
	for name, row := range map[string]struct {
		change func(path string) error
		want   bool
	}{
		"nothing":                   {func(string) error { return nil }, true},
		"written, of the same size": {func(path string) error { return os.Chtimes(path, then, then.Add(1)) }, false},
		"of another size, with the time put back": {func(path string) error {
			if err := os.WriteFile(path, []byte("longer than it was"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, then, then)
		}, false},
		"another file of that size and time": {func(path string) error {
			other := path + "2"
			if err := os.WriteFile(other, []byte("as it is"), 0o600); err != nil {
				return err
			}
			if err := os.Chtimes(other, then, then); err != nil {
				return err
			}
			return os.Rename(other, path)
		}, false},
		"removed": {os.Remove, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, "file", "as it is")
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
			same := unchanged(path)
			if err := row.change(path); err != nil {
				t.Fatal(err)
			}
			if got := same(); got != row.want {
				t.Errorf("the same: %t", got)
			}
		})
	}
	absent := filepath.Join(t.TempDir(), "absent")
	same := unchanged(absent)
	if !same() {
		t.Error("it is as absent as it was")
	}
	write(t, absent, "now")
	if same() {
		t.Error("it has come")
	}
}

// One error is the other where it begins with it; none is like no error.
func TestSameFailure(t *testing.T) {
	for _, row := range []struct {
		words, control string
		want           bool
	}{
		{"maxPods -1", "maxPods -1", true},
		{"[maxPods -1, x -2]", "maxPods -1", true},
		{"maxPods -1", "[maxPods -1, x -2]", true},
		{"maxPods -1", "x -2", false},
		{"open /a/b: no", "open /c: no", true},
		{"", "maxPods -1", false},
		{"maxPods -1", "", false},
		{"", "", false},
	} {
		if got := sameFailure(row.words, row.control); got != row.want {
			t.Errorf("%q and %q: %t", row.words, row.control, got)
		}
	}
}

// A refusal without an error of a log is told by the last line that is one, and what a kubelet tells of itself counts in either stream.
func TestWhatAPreflightSays(t *testing.T) {
	const tells = `printf 'I1122 07:40:03.000001 4242 server.go:301] "KubeletConfiguration" configuration=<\n\t{"MaxPods": 33}\n >\n'`
	for name, row := range map[string]struct {
		script string
		want   kubeletconfig.Outcome
		words  string
		told   bool
	}{
		"its last line":                {"echo first; echo last words; exit 3", kubeletconfig.Refused, "last words", false},
		"behind it a log, and nothing": {"printf 'last words \r\nI0101 00:00:00.000000 1 a.go:1] x\n{}\n\t--flag\n > y\n \r\n\n'; exit 3", kubeletconfig.Refused, "last words", false},
		"a log alone":                  {"printf 'I0101 00:00:00.000000 1 a.go:1] x\n'; exit 3", kubeletconfig.Refused, "the kubelet exited without a word (exit status 3)", false},
		"it tells on its error stream": {tells + " >&2; echo '" + acceptedLine + "'; exit 1", kubeletconfig.Accepted, "", true},
		"it tells on its output":       {tells + "; echo '" + acceptedLine + "'; exit 1", kubeletconfig.Accepted, "", true},
		"it tells nothing":             {"echo '" + acceptedLine + "'; exit 1", kubeletconfig.Accepted, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: executable(t, row.script), Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, "k.yaml", header+"maxPods: 7\n")}, nil)
			want := "7" // our own reading
			if row.told {
				want = "33"
			}
			maxPods := verdict.Effective.Tree()["maxPods"]
			if verdict.Outcome != row.want || verdict.Words != row.words || row.want == kubeletconfig.Accepted && fmt.Sprint(maxPods) != want {
				t.Errorf("got %+v with maxPods %v", verdict, maxPods)
			}
		})
	}
}

// Without a folder for its certificates no kubelet is asked, and it may be asked again.
func TestAPreflightWithoutAFolder(t *testing.T) {
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: filepath.Join(t.TempDir(), "absent"), Timeout: time.Minute}
	if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != kubeletconfig.Unknown || !verdict.Unanswered || !strings.Contains(verdict.Words, "making a folder for its certificates") {
		t.Errorf("got %+v", verdict)
	}
}
