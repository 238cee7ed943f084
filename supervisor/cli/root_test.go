//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	file := written(t, filepath.Join(folder, "kubelet.yaml"), fakenode.Configuration("mode: ok"))
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is well in every line comes first, so that it is the thing in question that is refused.
	run := func(more ...string) []string {
		return append([]string{"run", "--state-dir=" + folder + "/state", "--run-dir=" + folder + "/run"}, more...)
	}
	kubelet := []string{"--", fakeKubelet}
	for name, test := range map[string]struct {
		line []string
		want string
	}{
		"an unknown command":                  {[]string{"start"}, `unknown command "start"`},
		"an unknown flag":                     {[]string{"--verbose"}, "unknown flag: --verbose"},
		"an unknown flag of a command":        {run("--verbose"), "unknown flag: --verbose, see kubelet-supervisor run --help"},
		"a flag of the kubelet before --":     {run("--config=/etc/kubelet.yaml"), "unknown flag: --config"},
		"words for version":                   {[]string{"version", "now"}, `takes no arguments, and was given "now"`},
		"words for status":                    {[]string{"status", "now"}, `takes no arguments, and was given "now"`},
		"words for reload":                    {[]string{"reload", "now"}, `takes no arguments, and was given "now"`},
		"words for retry":                     {[]string{"retry", "now"}, `takes no arguments, and was given "now"`},
		"run: no kubelet":                     {run(), "the kubelet's command line is missing"},
		"run: no kubelet after --":            {run("--"), "the kubelet's command line is missing"},
		"run: no --":                          {run(fakeKubelet), "the kubelet's command line is missing"},
		"run: a kubelet that is absent":       {run("--", folder+"/absent"), "absent cannot be run: "},
		"run: a kubelet not executable":       {run("--", plain), "plain cannot be run: "},
		"run: a kubelet that is a folder":     {run("--", folder), " cannot be run: "},
		"status: another output":              {[]string{"status", "--output=yaml"}, `--output="yaml" is not json`},
		"status: a relative run folder":       {[]string{"status", "--run-dir=run"}, `--run-dir="run" is not an absolute path`},
		"reload: an empty run folder":         {[]string{"reload", "--run-dir="}, `--run-dir="" is not an absolute path`},
		"check: nothing":                      {[]string{"check"}, "give one FILE before --"},
		"check: no kubelet":                   {[]string{"check", file}, "give one FILE before --"},
		"check: no kubelet after --":          {[]string{"check", file, "--"}, "the kubelet's command line is missing"},
		"check: no file":                      {append([]string{"check"}, kubelet...), "give one FILE before --"},
		"check: two files":                    {append([]string{"check", file, file}, kubelet...), "give one FILE before --"},
		"check: a file that is absent":        {append([]string{"check", folder + "/absent"}, kubelet...), "the configuration cannot be read: "},
		"check: a file that is a folder":      {append([]string{"check", folder}, kubelet...), "the configuration cannot be read: "},
		"check: a kubelet that is absent":     {[]string{"check", file, "--", folder + "/absent"}, "absent cannot be run: "},
		"check: an invalid --preflight":       {append([]string{"check", "--preflight=maybe", file}, kubelet...), `--preflight="maybe" is `},
		"check: no pre-flight makes no sense": {append([]string{"check", "--preflight=never", file}, kubelet...), `--preflight="never" is `},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := does(test.line...)
			if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubelet-supervisor: ") || !strings.Contains(stderr, test.want) {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
			if strings.Count(stderr, "\n") != 1 {
				t.Errorf("not one line: %q", stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, line := range [][]string{{}, {"--help"}, {"help"}, {"help", "run"}, {"run", "--help"}, {"check", "--help"}} {
		code, stdout, stderr := does(line...)
		if code != exitOK || !strings.Contains(stdout, "Usage:\n") || stderr != "" {
			t.Errorf("%q: code %d, said %q and %q", line, code, stdout, stderr)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, stderr := does("completion", shell); code != exitOK || !strings.Contains(stdout, "kubelet-supervisor") || stderr != "" {
			t.Errorf("%s: code %d, %d bytes, %q", shell, code, len(stdout), stderr)
		}
	}
	code, stdout, _ := does("__complete", "re")
	if code != exitOK || !strings.Contains(stdout, "reload\t") || !strings.Contains(stdout, "retry\t") {
		t.Errorf("code %d: %q", code, stdout)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := does("version")
	if code != exitOK || !strings.HasPrefix(stdout, "kubelet-supervisor "+testVersion+" (go1.") || stderr != "" {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
	if want := "tried with kubelets " + oldestKubelet + " to " + newestKubelet + " and API servers " + oldestServer + " to " + newestServer + "; files of kubelet-supervisor.io/v1\n"; !strings.HasSuffix(stdout, "\n"+want) {
		t.Errorf("said %q, not %q", stdout, want)
	}
	if code, flag, stderr := does("--version"); code != exitOK || flag != stdout || stderr != "" {
		t.Errorf("--version: code %d, said %q and %q", code, flag, stderr)
	}
}

// The page of what was tried begins with the oldest kubelet and API server, and ends with the newest.
func TestKubeletsAndAPIServersOfTheVersion(t *testing.T) {
	page, err := os.ReadFile("../../docs/evidence/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for line, said := range map[string][2]string{
		`(?m)^- \*\*(1\.\d+)\.\d+\*\*: all \d+ steps work`: {oldestKubelet, newestKubelet},
		`(?m)^\| (1\.\d+)\.\d+ +\| 1\.\d+\.\d+ +\| ok`:     {oldestServer, newestServer},
	} {
		tried := regexp.MustCompile(line).FindAllStringSubmatch(string(page), -1)
		if len(tried) < 2 || tried[0][1] != said[0] || tried[len(tried)-1][1] != said[1] {
			t.Errorf("the page has %q; version says %s to %s", tried, said[0], said[1])
		}
	}
}
