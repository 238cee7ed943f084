//go:build linux

package cli

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
	resolving := written(t, filepath.Join(folder, "resolving.yaml"), fakenode.Configuration("mode: ok")+
		"resolvConf: "+written(t, filepath.Join(folder, "real.conf"), "nameserver 10.0.0.1\n")+"\n")
	written(t, filepath.Join(folder, "stub.conf"), "nameserver 127.0.0.53\n")
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
		"names a resolv.conf that is not there": {fakenode.Configuration("mode: ok") + "resolvConf: " + folder + "/gone.conf\n", nil, []string{fakeKubelet, "--config=" + resolving}, 1, "",
			"is refused: resolvConf names " + folder + "/gone.conf, and this node does not have that file"},
		"names a folder": {fakenode.Configuration("mode: ok") + "resolvConf: " + folder + "\n", nil, []string{fakeKubelet, "--config=" + resolving}, 1, "",
			"is refused: resolvConf names " + folder + ", and on this node that is a directory, not a file"},
		"names one that is not there either": {fakenode.Configuration("mode: ok") + "resolvConf: gone.conf\n", nil, []string{fakeKubelet}, 1, "", "/gone.conf, and this node does not have that file"},
		"names a resolver that loops": {fakenode.Configuration("mode: ok") + "resolvConf: " + folder + "/stub.conf\n", nil, []string{fakeKubelet, "--config=" + resolving}, 0, "is accepted by",
			"warning: DNS of new pods that use the node's resolver will loop, CoreDNS's too: resolvConf is " + folder + "/stub.conf"},
		"needs no resolv.conf": {fakenode.Configuration("mode: ok") + "resolvConf: \"\"\n", nil, []string{fakeKubelet, "--config=" + resolving}, 0, "is accepted by", `warning: field "fake" is unknown`},
		"exits with code 0":    {fakenode.Configuration("mode: exitZero"), nil, []string{fakeKubelet}, 3, "", "nothing can be said of "},
		"a script, in auto":    {fakenode.Configuration("mode: ok"), nil, []string{script}, 3, "", "nothing can be said of "},
		"a script, always":     {fakenode.Configuration("mode: ok"), []string{"--preflight=always"}, []string{script}, 0, "is accepted by " + script, "warning: "},
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

func TestCheckWarns(t *testing.T) {
	folder := t.TempDir()
	file := written(t, filepath.Join(folder, "kubelet.yaml"), fakenode.Configuration("mode: ok")+"maxPods: 60\n")
	silent := written(t, filepath.Join(folder, "silent"), "#!/bin/sh\necho 'Flag --old has been deprecated, will be removed in 1.40'\n"+
		"echo 'Error: failed to run Kubelet: cannot exit on lock file contention: no lock file specified'\nexit 1\n")
	const own = " (our own reading of flags and drop-in files: this kubelet does not tell)"
	script := written(t, filepath.Join(folder, "script"), "#!/bin/sh\n")
	for name, test := range map[string]struct {
		mode, kubelet string
		want          []string
	}{
		"a kubelet that tells":          {"auto", fakeKubelet, []string{"shadowed: maxPods (60) by --max-pods (20)\n"}},
		"one that does not":             {"always", silent, []string{"shadowed: maxPods (60) by --max-pods (20)" + own + "\n", "--old goes away in a later version: will be removed in 1.40\n"}},
		"one that cannot even be asked": {"auto", script, []string{"shadowed: maxPods (60) by --max-pods (20)" + own + "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, stderr := does("check", "--preflight="+test.mode, file, "--", test.kubelet, "--max-pods=20")
			for _, want := range test.want {
				if !strings.Contains(stderr, "warning: "+want) {
					t.Errorf("said %q, which lacks %q", stderr, want)
				}
			}
		})
	}
}
