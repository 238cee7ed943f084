package config

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const refusal = "failed to validate kubelet configuration, error: "

// fake gives a configuration that makes the fake kubelet behave so.
func fake(behaviour string) string { return header + "fake: {" + behaviour + "}\n" }

func TestPreflightVerdicts(t *testing.T) {
	refuses := func(words string) string { return fake("mode: refuse, words: '" + words + "'") }
	good := fake("mode: ok")
	for name, test := range map[string]struct {
		candidate string
		control   string // "" is none
		want      Outcome
		load      bool
		words     string // what the words contain
	}{
		"accepted":                            {good, good, Accepted, false, ""},
		"accepted without a control":          {good, "", Accepted, false, ""},
		"refused":                             {refuses("maxPods -1"), good, Refused, false, refusal + "maxPods -1"},
		"refused without a control":           {refuses("maxPods -1"), "", Refused, false, refusal + "maxPods -1"},
		"refused by a panic":                  {fake("mode: panic, words: 'unrecognized feature gate: X'"), good, Refused, false, "panic: unrecognized feature gate: X"},
		"does not load":                       {header + "maxPods: many", good, Refused, true, "failed to load kubelet config file, path: KubeletConfiguration, error: failed to decode: "},
		"no kind: its content stays secret":   {"s3cret: x\n", good, Refused, true, "Object 'Kind' is missing in …"},
		"the control fails the same way":      {refuses("maxPods -1"), refuses("maxPods -1"), Environment, false, refusal + "maxPods -1"},
		"the same but for a path":             {refuses("open /a/b.crt: no such file"), refuses("open /c: no such file"), Environment, false, "open /a/b.crt"},
		"the same, and more":                  {refuses("[maxPods -1, x -2]"), refuses("maxPods -1"), Environment, false, "maxPods -1"},
		"both do not load, in the same way":   {header + "maxPods: many", header + "maxPods: few", Environment, false, "failed to decode"},
		"the control fails in another way":    {refuses("maxPods -1"), refuses("x -2"), Refused, false, "maxPods -1"},
		"the control panics":                  {refuses("maxPods -1"), fake("mode: panic, words: x"), Refused, false, "maxPods -1"},
		"the control gives no verdict":        {refuses("maxPods -1"), fake("mode: exitZero"), Refused, false, "maxPods -1"},
		"exit code 0":                         {fake("mode: exitZero"), good, Unknown, false, "exited with 0"},
		"a crash later is nothing it can see": {fake("mode: crash"), good, Accepted, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute}
			var control *Candidate
			if test.control != "" {
				control = &Candidate{File: written(t, "control.yaml", test.control)}
			}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, "candidate.yaml", test.candidate)}, control)
			if verdict.Outcome != test.want || verdict.Load != test.load || verdict.NoMorePreflight {
				t.Errorf("got %+v, want %v with load %v", verdict, test.want, test.load)
			}
			if !strings.Contains(verdict.Words, test.words) || (verdict.Words == "") != (test.want == Accepted) {
				t.Errorf("words %q, want %q in them", verdict.Words, test.words)
			}
			if strings.Contains(verdict.Words, "s3cret") {
				t.Errorf("words %q quote the payload", verdict.Words)
			}
		})
	}
}

func TestPreflightPastTheCheck(t *testing.T) {
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute}
	swallows := Candidate{File: written(t, "k.yaml", fake("mode: swallow"))}
	verdict := preflight.Check(t.Context(), swallows, nil)
	if verdict.Outcome != Unknown || !verdict.NoMorePreflight || !strings.Contains(verdict.Words, "went on to start") {
		t.Errorf("got %+v", verdict)
	}
	refused := Candidate{File: written(t, "k.yaml", fake("mode: refuse"))}
	if verdict := preflight.Check(t.Context(), refused, &swallows); verdict.Outcome != Refused || !verdict.NoMorePreflight {
		t.Errorf("as control: got %+v", verdict)
	}
}

func TestPreflightThatDoesNotEnd(t *testing.T) {
	hangs := Candidate{File: written(t, "k.yaml", fake("mode: hangPreflight"))}
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: 50 * time.Millisecond}
	if verdict := preflight.Check(t.Context(), hangs, nil); verdict.Outcome != Unknown || !strings.Contains(verdict.Words, "did not finish within 50ms") {
		t.Errorf("timed out: got %+v", verdict)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	preflight.Timeout = time.Minute
	if verdict := preflight.Check(ctx, hangs, &hangs); verdict.Outcome != Unknown || !strings.Contains(verdict.Words, "context canceled") {
		t.Errorf("cancelled: got %+v", verdict)
	}
}

func TestPreflightModes(t *testing.T) {
	script := executable(t, "exec "+fakeKubelet+` "$@"`)
	swallower := executable(t, "echo 'Acquiring file lock'; exec sleep 600")
	without := executable(t, `echo '"Creating Container Manager object based on Node Config" nodeConfig={}' >&2; exec sleep 600`)
	second := executable(t, `echo '"Standalone mode, no API client"' >&2; echo 'E0102 15:04:05.000000 1 server.go:1] "Failed to listen and serve"' >&2; exit 1`)
	for name, test := range map[string]struct {
		kubelet, mode string
		want          Outcome
		words         string
		noMore        bool
	}{
		"an ELF executable":              {fakeKubelet, PreflightAuto, Accepted, "", false},
		"auto is the default":            {fakeKubelet, "", Accepted, "", false},
		"a script":                       {script, PreflightAuto, Unknown, "is not an ELF executable", false},
		"a script, always":               {script, PreflightAlways, Accepted, "", false},
		"a script that swallows, always": {swallower, PreflightAlways, Unknown, "went on to start", true},
		"one that needs no lock, always": {without, PreflightAlways, Unknown, "went on to start", true},
		"one that dies soon after":       {second, PreflightAlways, Unknown, "went on to start", true},
		"never":                          {fakeKubelet, PreflightNever, Unknown, "turned off", false},
		"no kubelet, auto":               {fakeKubelet + ".none", PreflightAuto, Unknown, "is not an ELF executable", false},
		"no kubelet, always":             {fakeKubelet + ".none", PreflightAlways, Environment, "no such file", false},
		"not executable, always":         {written(t, "k", "x"), PreflightAlways, Environment, "permission denied", false},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: test.kubelet, Mode: test.mode, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{}, nil)
			if verdict.Outcome != test.want || !strings.Contains(verdict.Words, test.words) || verdict.NoMorePreflight != test.noMore {
				t.Errorf("got %+v, want %v with %q", verdict, test.want, test.words)
			}
		})
	}
}

// TestPreflightProcess looks at what the kubelet of a pre-flight gets to see.
func TestPreflightProcess(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	for name, value := range map[string]string{"FAKE_KUBELET_RECORD": record, "FAKE_KUBELET_MARKER": "kept",
		"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"} {
		t.Setenv(name, value)
	}
	temp := t.TempDir()
	preflight := Preflight{Kubelet: fakeKubelet, Arguments: []string{"--v=2", "--config", "/production"}, TempFolder: temp, Timeout: time.Minute}
	candidate := written(t, "candidate.yaml", fake("mode: refuse"))
	control := written(t, "control.yaml", fake("mode: ok"))
	if verdict := preflight.Check(t.Context(), Candidate{File: candidate}, &Candidate{File: control}); verdict.Outcome != Refused {
		t.Errorf("got %+v", verdict)
	}
	preflight.Check(t.Context(), Candidate{}, nil)

	type event struct {
		Event       string
		PID, PPID   int
		Argv        []string
		Environment map[string]string
	}
	var argvs [][]string
	file, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var seen event
		if err := json.Unmarshal(lines.Bytes(), &seen); err != nil {
			t.Fatal(err)
		}
		if seen.Event != "preflight" {
			continue
		}
		if diff := cmp.Diff(map[string]string{"FAKE_KUBELET_MARKER": "kept"}, seen.Environment); diff != "" || seen.PPID != os.Getpid() {
			t.Errorf("environment, or parent %d (-want +got):\n%s", seen.PPID, diff)
		}
		for i, word := range seen.Argv {
			if folder, found := strings.CutPrefix(word, "--cert-dir="+temp+"/"); found && folder != "" {
				seen.Argv[i] = "--cert-dir=TEMP"
			}
		}
		argvs = append(argvs, seen.Argv)
	}
	production, check := []string{"--v=2", "--config", "/production"}, []string{"--cert-dir=TEMP", "--lock-file=", "--exit-on-lock-contention=true"}
	want := [][]string{
		append(append(append([]string{}, production...), "--config="+candidate), check...),
		append(append(append([]string{}, production...), "--config="+control), check...),
		append(append([]string{}, production...), check...),
	}
	if diff := cmp.Diff(want, argvs); diff != "" {
		t.Errorf("command lines (-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPreflightOfAChattyKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   Outcome
		words  string
	}{
		"the mark between megabytes":    {"head -c 3000000 /dev/zero; echo; echo " + acceptedMark + "; head -c 3000000 /dev/zero; exit 1", Accepted, ""},
		"the mark on stderr, in pieces": {"printf 'cannot exit on lock file ' >&2; printf 'contention: no lock file specified' >&2; exit 1", Accepted, ""},
		"the error at the end":          {"yes | head -c 3000000; echo 'panic: at last'; exit 2", Refused, "panic: at last"},
		"the mark, but exit code 0":     {"echo " + acceptedMark, Unknown, "exited with 0"},
		"the mark, but a signal":        {"echo " + acceptedMark + "; kill -9 $$", Unknown, "signal: killed"},
		"not a word":                    {"exit 7", Refused, "the kubelet exited without a word (exit status 7)"},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: executable(t, test.script), Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{}, nil)
			if verdict.Outcome != test.want || !strings.Contains(verdict.Words, test.words) {
				t.Errorf("got %+v, want %v with %q", verdict, test.want, test.words)
			}
		})
	}
}

func TestPreflightWarns(t *testing.T) {
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute}
	verdict := preflight.Check(t.Context(), Candidate{File: written(t, "k.yaml", header+"maxPodz: 1")}, nil)
	if diff := cmp.Diff([]string{`field "maxPodz" is unknown to v0.37`}, verdict.Warnings); diff != "" || verdict.Outcome != Accepted {
		t.Errorf("got %+v (-want +got):\n%s", verdict, diff)
	}
}

func TestOutcomesInFiles(t *testing.T) {
	for outcome, want := range map[Outcome]string{Accepted: "accepted", Refused: "refused", Environment: "environment", Unknown: "unknown"} {
		text, err := outcome.MarshalText()
		if err != nil || string(text) != want {
			t.Errorf("%s is written as %s, %v", outcome, text, err)
		}
		var read Outcome
		if err := read.UnmarshalText(text); err != nil || read != outcome {
			t.Errorf("%s is read as %s, %v", text, read, err)
		}
	}
	for _, text := range []string{"", "1", "Accepted", "Outcome(0)", "accepted "} {
		var read Outcome
		if err := read.UnmarshalText([]byte(text)); err == nil || read != 0 {
			t.Errorf("%q is read as %s, %v", text, read, err)
		}
	}
	if text, err := Outcome(0).MarshalText(); err == nil {
		t.Errorf("no outcome is written as %s", text)
	}
}
