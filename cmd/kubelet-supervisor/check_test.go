package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestCheck(t *testing.T) {
	folder := t.TempDir()
	local := written(t, filepath.Join(folder, "local.yaml"), fakenode.Configuration("mode: ok"))
	script := written(t, filepath.Join(folder, "script"), "#!/bin/sh\nexec "+fakeKubelet+" \"$@\"\n")
	for name, test := range map[string]struct {
		content        string
		flags          []string
		kubelet        []string
		code           int
		stdout, stderr string // in them; "" = nothing is said
	}{
		"accepted":           {fakenode.Configuration("mode: ok"), nil, []string{fakeKubelet, "--config=" + local}, 0, "is accepted by " + fakeKubelet, `warning: field "fake" is unknown`},
		"refused":            {fakenode.Configuration("mode: refuse, words: maxPods -1"), nil, []string{fakeKubelet, "--config=" + local}, 1, "", "is refused: failed to validate kubelet configuration, error: maxPods -1"},
		"does not decode":    {fakenode.Configuration("mode: ok") + "maxPods: many\n", nil, []string{fakeKubelet, "--config=" + local}, 1, "", "is refused: failed to load kubelet config file"},
		"is no YAML":         {"\t", nil, []string{fakeKubelet}, 1, "", "is refused: "},
		"is empty":           {"", nil, []string{fakeKubelet}, 1, "", "is refused: "},
		"is of another kind": {"apiVersion: v1\nkind: Pod\n", nil, []string{fakeKubelet}, 1, "", "is refused: "},
		"the command line itself fails": {fakenode.Configuration("mode: refuse, words: maxPods -1"), nil,
			[]string{fakeKubelet, "--config=" + written(t, filepath.Join(folder, "bad.yaml"), fakenode.Configuration("mode: refuse, words: maxPods -1"))}, 3, "", "the kubelet's own command line fails the same way"},
		"exits with code 0": {fakenode.Configuration("mode: exitZero"), nil, []string{fakeKubelet}, 3, "", "nothing can be said of "},
		"a script, in auto": {fakenode.Configuration("mode: ok"), nil, []string{script}, 3, "", "nothing can be said of "},
		"a script, always":  {fakenode.Configuration("mode: ok"), []string{"--preflight=always"}, []string{script}, 0, "is accepted by " + script, "warning: "},
	} {
		t.Run(name, func(t *testing.T) {
			file := written(t, filepath.Join(t.TempDir(), "kubelet.yaml"), test.content)
			line := append(append([]string{"check"}, test.flags...), file, "--")
			code, stdout, stderr := does(append(line, test.kubelet...)...)
			for _, said := range []struct{ what, got, want string }{{"stdout", stdout, test.stdout}, {"stderr", stderr, test.stderr}} {
				if !strings.Contains(said.got, said.want) || said.want == "" && said.got != "" {
					t.Errorf("%s is %q", said.what, said.got)
				}
			}
			if code != test.code {
				t.Errorf("code %d, want %d", code, test.code)
			}
		})
	}
}

// Each warning is said once, also when the pre-flight and the strict decoder both have it.
func TestCheckWarnsOnce(t *testing.T) {
	file := written(t, filepath.Join(t.TempDir(), "kubelet.yaml"), fakenode.Configuration("mode: ok")+"maxPodz: 1\n")
	if _, _, stderr := does("check", file, "--", fakeKubelet); strings.Count(stderr, "maxPodz") != 1 {
		t.Errorf("said %q", stderr)
	}
}
