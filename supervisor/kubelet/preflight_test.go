//go:build linux

package kubelet

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
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
		want      kubeletconfig.Outcome
		load      bool
		words     string // what the words contain
	}{
		"accepted":                            {good, good, kubeletconfig.Accepted, false, ""},
		"accepted without a control":          {good, "", kubeletconfig.Accepted, false, ""},
		"refused":                             {refuses("maxPods -1"), good, kubeletconfig.Refused, false, refusal + "maxPods -1"},
		"refused without a control":           {refuses("maxPods -1"), "", kubeletconfig.Refused, false, refusal + "maxPods -1"},
		"refused by a panic":                  {fake("mode: panic, words: 'unrecognized feature gate: X'"), good, kubeletconfig.Refused, false, "panic: unrecognized feature gate: X"},
		"does not load":                       {header + "maxPods: many", good, kubeletconfig.Refused, true, "failed to load kubelet config file, path: KubeletConfiguration, error: failed to decode: "},
		"no kind: its content stays secret":   {"s3cret: x\n", good, kubeletconfig.Refused, true, "Object 'Kind' is missing in …"},
		"the control fails the same way":      {refuses("maxPods -1"), refuses("maxPods -1"), kubeletconfig.Environment, false, refusal + "maxPods -1"},
		"the same but for a path":             {refuses("open /a/b.crt: no such file"), refuses("open /c: no such file"), kubeletconfig.Environment, false, "open /a/b.crt"},
		"the same, and more":                  {refuses("[maxPods -1, x -2]"), refuses("maxPods -1"), kubeletconfig.Environment, false, "maxPods -1"},
		"both do not load, in the same way":   {header + "maxPods: many", header + "maxPods: few", kubeletconfig.Environment, false, "failed to decode"},
		"the control fails in another way":    {refuses("maxPods -1"), refuses("x -2"), kubeletconfig.Refused, false, "maxPods -1"},
		"the control panics":                  {refuses("maxPods -1"), fake("mode: panic, words: x"), kubeletconfig.Refused, false, "maxPods -1"},
		"the control gives no verdict":        {refuses("maxPods -1"), fake("mode: exitZero"), kubeletconfig.Refused, false, "maxPods -1"},
		"exit code 0":                         {fake("mode: exitZero"), good, kubeletconfig.Unknown, false, "exited with 0"},
		"a crash later is nothing it can see": {fake("mode: crash"), good, kubeletconfig.Accepted, false, ""},
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
			if !strings.Contains(verdict.Words, test.words) || (verdict.Words == "") != (test.want == kubeletconfig.Accepted) {
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
	if verdict.Outcome != kubeletconfig.Unknown || !verdict.NoMorePreflight || !strings.Contains(verdict.Words, "went on to start") {
		t.Errorf("got %+v", verdict)
	}
	refused := Candidate{File: written(t, "k.yaml", fake("mode: refuse"))}
	if verdict := preflight.Check(t.Context(), refused, &swallows); verdict.Outcome != kubeletconfig.Refused || !verdict.NoMorePreflight {
		t.Errorf("as control: got %+v", verdict)
	}
}

func TestPreflightThatDoesNotEnd(t *testing.T) {
	hangs := Candidate{File: written(t, "k.yaml", fake("mode: hangPreflight"))}
	preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: 50 * time.Millisecond}
	if verdict := preflight.Check(t.Context(), hangs, nil); verdict.Outcome != kubeletconfig.Unknown || !verdict.Unanswered || !strings.Contains(verdict.Words, "did not finish within 50ms") {
		t.Errorf("timed out: got %+v", verdict)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	preflight.Timeout = time.Minute
	if verdict := preflight.Check(ctx, hangs, &hangs); verdict.Outcome != kubeletconfig.Unknown || verdict.Unanswered || !strings.Contains(verdict.Words, "context canceled") {
		t.Errorf("cancelled: got %+v", verdict)
	}
}

// Which of those without a verdict may be asked again: what was killed, or ran out of time, has not answered yet.
func TestPreflightThatIsAskedAgain(t *testing.T) {
	const refuses = "case \"$*\" in *candidate*) echo 'panic: no'; exit 2;; esac; "
	for name, test := range map[string]struct {
		script string
		want   kubeletconfig.Outcome
		again  bool
	}{
		"killed":                     {"kill -9 $$", kubeletconfig.Unknown, true},
		"killed by its own fault":    {"kill -SEGV $$", kubeletconfig.Unknown, true},
		"out of time":                {"exec sleep 600", kubeletconfig.Unknown, true},
		"exit code 0":                {"exit 0", kubeletconfig.Unknown, false},
		"past the check":             {"echo '\"Acquiring file lock\" path=\"/l\"'; exec sleep 600", kubeletconfig.Unknown, false},
		"refused, the control dies":  {refuses + "kill -9 $$", kubeletconfig.Unknown, true},
		"refused, the control hangs": {refuses + "exec sleep 600", kubeletconfig.Unknown, true},
		"refused, the control too":   {"echo 'panic: no'; exit 2", kubeletconfig.Environment, false},
		"refused":                    {refuses + "echo " + acceptedLine + "; exit 1", kubeletconfig.Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: executable(t, test.script), Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			if strings.Contains(test.script, "sleep") && test.again {
				preflight.Timeout = time.Second
			}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, "candidate", header)}, &Candidate{})
			if verdict.Outcome != test.want || verdict.Unanswered != test.again {
				t.Errorf("got %+v, want %v, asked again: %v", verdict, test.want, test.again)
			}
		})
	}
	for tries, want := range map[int]time.Duration{-1: 5 * time.Second, 0: 5 * time.Second, 1: 10 * time.Second, 3: 40 * time.Second, 4: time.Minute, 1 << 30: time.Minute} {
		if got := PreflightTimeout(tries); got != want {
			t.Errorf("after %d tries %s, want %s", tries, got, want)
		}
	}
}

func TestPreflightModes(t *testing.T) {
	script := executable(t, "exec "+fakeKubelet+` "$@"`)
	swallower := executable(t, "echo '\"Acquiring file lock\" path=\"/l\"'; exec sleep 600")
	without := executable(t, `echo '"Creating Container Manager object based on Node Config" nodeConfig={}' >&2; exec sleep 600`)
	second := executable(t, `echo '"Standalone mode, no API client"' >&2; echo 'E0102 15:04:05.000000 1 server.go:1] "Failed to listen and serve"' >&2; exit 1`)
	for name, test := range map[string]struct {
		kubelet, mode string
		want          kubeletconfig.Outcome
		words         string
		noMore        bool
	}{
		"an ELF executable":              {fakeKubelet, PreflightAuto, kubeletconfig.Accepted, "", false},
		"auto is the default":            {fakeKubelet, "", kubeletconfig.Accepted, "", false},
		"a script":                       {script, PreflightAuto, kubeletconfig.Unknown, "is not an ELF executable", false},
		"a script, always":               {script, PreflightAlways, kubeletconfig.Accepted, "", false},
		"a script that swallows, always": {swallower, PreflightAlways, kubeletconfig.Unknown, "went on to start", true},
		"one that needs no lock, always": {without, PreflightAlways, kubeletconfig.Unknown, "went on to start", true},
		"one that dies soon after":       {second, PreflightAlways, kubeletconfig.Unknown, "went on to start", true},
		"never":                          {fakeKubelet, PreflightNever, kubeletconfig.Unknown, "turned off", false},
		"no kubelet, auto":               {fakeKubelet + ".none", PreflightAuto, kubeletconfig.Environment, "no such file", false},
		"no kubelet, always":             {fakeKubelet + ".none", PreflightAlways, kubeletconfig.Environment, "no such file", false},
		"not executable, always":         {written(t, "k", "x"), PreflightAlways, kubeletconfig.Environment, "permission denied", false},
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
	if verdict := preflight.Check(t.Context(), Candidate{File: candidate}, &Candidate{File: control}); verdict.Outcome != kubeletconfig.Refused {
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
	production, check := []string{"--v=2", "--config", "/production"}, []string{"--cert-dir=TEMP", "--lock-file=", "--exit-on-lock-contention=true", "--v=5"}
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
		want   kubeletconfig.Outcome
		words  string
	}{
		"the mark between megabytes":    {"head -c 3000000 /dev/zero; echo; echo " + acceptedLine + "; head -c 3000000 /dev/zero; exit 1", kubeletconfig.Accepted, ""},
		"the mark on stderr, in pieces": {"printf 'Error: failed to run Kubelet: cannot exit on lock file ' >&2; printf 'contention: no lock file specified' >&2; exit 1", kubeletconfig.Accepted, ""},
		"the error at the end":          {"yes | head -c 3000000; echo 'panic: at last'; exit 2", kubeletconfig.Refused, "panic: at last"},
		"the mark, but exit code 0":     {"echo " + acceptedLine, kubeletconfig.Unknown, "exited with 0"},
		"the mark, but a signal":        {"echo " + acceptedLine + "; kill -9 $$", kubeletconfig.Unknown, "signal: killed"},
		"not a word":                    {"exit 7", kubeletconfig.Refused, "the kubelet exited without a word (exit status 7)"},
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
	if diff := cmp.Diff([]string{`field "maxPodz" is unknown to v0.37`}, verdict.Warnings); diff != "" || verdict.Outcome != kubeletconfig.Accepted {
		t.Errorf("got %+v (-want +got):\n%s", verdict, diff)
	}
}

// A kubelet says its version just before the check, in its log's format; of one that refuses, the control does.
func TestPreflightHearsTheVersion(t *testing.T) {
	const info = `I1121 11:37:54.819051 2055 server.go:545] "Kubelet version" kubeletVersion="v1.29.6"`
	const refuses = `case "$*" in *bad*) echo 'E1121 11:37:54.819051 2055 run.go:74] failed' >&2; exit 1;; esac; `
	for name, test := range map[string]struct {
		script string
		file   string
		want   string
	}{
		"text":              {"echo '" + info + "' >&2; echo " + acceptedLine + "; exit 1", "good", "v1.29.6"},
		"JSON":              {`echo '{"msg":"Kubelet version","v":0,"kubeletVersion":"v1.37.0-rc.1"}'; echo ` + acceptedLine + "; exit 1", "good", "v1.37.0-rc.1"},
		"none":              {"echo " + acceptedLine + "; exit 1", "good", ""},
		"of no release":     {"echo " + strings.ReplaceAll("'"+info+"'", "v1.29.6", "v0.0.0-master+$Format:%H$") + "; echo " + acceptedLine + "; exit 1", "good", ""},
		"refused, by both":  {"echo 'E1121 11:37:54.819051 2055 run.go:74] failed' >&2; exit 1", "bad", ""},
		"refused, by it":    {refuses + "echo '" + info + "' >&2; echo " + acceptedLine + "; exit 1", "bad", "v1.29.6"},
		"went past and all": {"echo '" + info + "'; echo '\"Acquiring file lock\" path=\"/l\"'; sleep 600", "good", ""},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: executable(t, test.script), Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, test.file, header+"podLogsDir: /l")}, &Candidate{})
			if verdict.Version != test.want || verdict.Minor != kubeletconfig.Minor(test.want) {
				t.Errorf("got %+v, want %s", verdict, test.want)
			}
			if newer := slices.Contains(verdict.Warnings, `field "podLogsDir" is newer than kubelet 1.29: it came with 1.30`); newer != (test.want == "v1.29.6") {
				t.Errorf("the warnings are %q", verdict.Warnings)
			}
		})
	}
}

// A verdict is about the file that was asked about. Where that is removed or changed under the kubelet, there is none, and it is asked again.
func TestPreflightOfAFileThatChanges(t *testing.T) {
	good := written(t, "good.yaml", fake("mode: ok"))
	refused := fake("mode: refuse, words: maxPods -1")
	for name, test := range map[string]struct {
		candidate, does string // what a shell does with $file before the kubelet reads it
		want            kubeletconfig.Outcome
	}{
		"removed":                  {fake("mode: ok"), `rm "$file"`, kubeletconfig.Unknown},
		"emptied":                  {fake("mode: ok"), `: >"$file"`, kubeletconfig.Unknown},
		"replaced by a good one":   {refused, `cp ` + good + ` "$file.new"; mv "$file.new" "$file"`, kubeletconfig.Unknown},
		"refused, and as it was":   {refused, ``, kubeletconfig.Refused},
		"accepted, and as it was":  {fake("mode: ok"), ``, kubeletconfig.Accepted},
		"not there from the start": {"", ``, kubeletconfig.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "candidate.yaml")
			if test.candidate != "" {
				file = written(t, "candidate.yaml", test.candidate)
			}
			script := written(t, "kubelet", "#!/bin/sh\nfor word; do file=${word#--config=}; [ \"$file\" = \"$word\" ] || [ \"$file\" = "+good+" ] || { "+test.does+
				"\n:\n}; done\nexec "+fakeKubelet+" \"$@\"\n")
			if err := os.Chmod(script, 0o700); err != nil {
				t.Fatal(err)
			}
			preflight := Preflight{Kubelet: script, Mode: PreflightAlways, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), Candidate{File: file}, &Candidate{File: good})
			if verdict.Outcome != test.want || verdict.Unanswered != (test.want == kubeletconfig.Unknown) {
				t.Errorf("got %+v", verdict)
			}
			preflight.Arguments = []string{"--config=" + file} // of the node's own file, too
			if test.want == kubeletconfig.Unknown {
				if err := os.WriteFile(file, []byte(test.candidate), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != test.want {
				t.Errorf("on the command line: %+v", verdict)
			}
		})
	}
}

// A resolv.conf that this node does not have is refused before any start, though the kubelet accepts it.
func TestPreflightLooksAtTheResolver(t *testing.T) {
	good := "nameserver 10.0.0.1\n"
	own := "resolvConf: " + written(t, "own.conf", good) + "\n"
	stub := "resolvConf: " + written(t, "stub.conf", "nameserver 127.0.0.53\n") + "\n"
	const gone = "resolvConf: /nowhere/resolv.conf\n"
	for name, test := range map[string]struct {
		own, candidate string
		mode           string
		want           kubeletconfig.Outcome
		words, warns   string // what they contain
	}{
		"as it is":                     {own, own, "ok", kubeletconfig.Accepted, "", ""},
		"another one":                  {own, "resolvConf: " + written(t, "other.conf", good) + "\n", "ok", kubeletconfig.Accepted, "", ""},
		"one that is not there":        {own, gone, "ok", kubeletconfig.Refused, "resolvConf names /nowhere/resolv.conf, and this node does not have that file", ""},
		"a folder":                     {own, "resolvConf: " + t.TempDir() + "\n", "ok", kubeletconfig.Refused, ", and on this node that is a directory, not a file, so that no pod could be started", ""},
		"as little as the node's own":  {gone, gone, "ok", kubeletconfig.Accepted, "", ""},
		"none":                         {own, "resolvConf: ''\n", "ok", kubeletconfig.Accepted, "", ""},
		"a loopback address":           {own, stub, "ok", kubeletconfig.Accepted, "", "whose only name server is the loopback address 127.0.0.53"},
		"the same as the node's own":   {stub, stub, "ok", kubeletconfig.Accepted, "", ""},
		"the kubelet's words go first": {own, gone, "refuse, words: maxPods -1", kubeletconfig.Refused, "maxPods -1", ""},
		"the kubelet does not tell":    {own, gone, "exitZero", kubeletconfig.Unknown, "exited with 0", "this node does not have that file"},
	} {
		t.Run(name, func(t *testing.T) {
			preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute,
				Arguments: []string{"--config=" + written(t, "own.yaml", fake("mode: ok")+test.own)}}
			verdict := preflight.Check(t.Context(), Candidate{File: written(t, "candidate.yaml", fake("mode: "+test.mode)+test.candidate)}, &Candidate{})
			if verdict.Outcome != test.want || !strings.Contains(verdict.Words, test.words) || test.words == "" && verdict.Words != "" {
				t.Errorf("got %v: %s", verdict.Outcome, verdict.Words)
			}
			if !strings.Contains(verdict.Resolver, test.warns) || test.warns == "" && verdict.Resolver != "" {
				t.Errorf("warns %q", verdict.Resolver)
			}
			if verdict.Load || test.want == kubeletconfig.Refused && verdict.Effective.Known() {
				t.Errorf("got %+v", verdict)
			}
		})
	}
	t.Run("the node's own is never refused for it", func(t *testing.T) {
		preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute, Arguments: []string{"--config=" + written(t, "own.yaml", fake("mode: ok")+gone)}}
		if verdict := preflight.Check(t.Context(), Candidate{}, nil); verdict.Outcome != kubeletconfig.Accepted {
			t.Errorf("got %+v", verdict)
		}
	})
}
