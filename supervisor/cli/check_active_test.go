//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// keeps leaves checkpoints that are assigned and last known good, as an earlier supervisor would; "" for local.
func (n *node) keeps(assigned, lastKnownGood string) {
	n.t.Helper()
	s, err := store.Open(n.stateDir)
	if err != nil {
		n.t.Fatal(err)
	}
	for pointer, content := range map[store.Pointer]string{store.Assigned: assigned, store.LastKnownGood: lastKnownGood} {
		var c *corev1.ConfigMapNodeConfigSource
		if content != "" {
			c = source(string(pointer)).ConfigMap
			c.ResourceVersion = string(pointer)
			err = errors.Join(err, s.SaveCheckpoint(*c, map[string]string{"kubelet": content}))
		}
		err = errors.Join(err, s.SaveSource(pointer, c))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		n.t.Fatal(err)
	}
}

// upgrade is the fake kubelet as a later version, which is not installed yet.
func (n *node) upgrade() string {
	n.t.Helper()
	path := filepath.Join(n.folder, "upgrade", "kubelet-new")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Link(fakeKubelet, path)); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// Contents that the kubelet in use, the later one, or neither accepts.
var (
	fits     = fakenode.Configuration("mode: ok")
	outdated = fakenode.Configuration("mode: refuse, as: kubelet-new, words: no such gate")
	bad      = fakenode.Configuration("mode: refuse, words: maxPods -1")
)

func TestCheckActive(t *testing.T) {
	const lkgFits = "last known good, kube-system/last-known-good/kubelet: accepted\n"
	for name, test := range map[string]struct {
		assigned, lastKnownGood, local string
		flags                          []string // UPGRADE is the later kubelet, here and in stdout
		code                           int
		stdout                         string
	}{
		"nothing is assigned": {"", "", fits, nil, 0, "local: accepted\n"},
		"all fit":             {fits, "# other\n" + fits + "maxPods: 9\n", fits, []string{"--kubelet=UPGRADE"}, 0, "assigned, kube-system/assigned/kubelet: accepted\n" + lkgFits + "local: accepted\n"},
		"equal ones once":     {fits, "# other\n" + fits, fits, nil, 0, "assigned and last known good, kube-system/assigned/kubelet: accepted\nlocal: accepted\n"},
		"the upgrade refuses what is assigned": {outdated, fits, fits, []string{"--kubelet=UPGRADE"}, 1,
			"assigned, kube-system/assigned/kubelet: refused: failed to validate kubelet configuration, error: no such gate\n" + lkgFits + "local: accepted\n"},
		"the kubelet in use does not": {outdated, "", fits, nil, 0, "assigned, kube-system/assigned/kubelet: accepted\nlocal: accepted\n"},
		"the upgrade refuses local":   {"", "", outdated, []string{"--kubelet=UPGRADE"}, 1, "local: refused: failed to validate kubelet configuration, error: no such gate\n"},
		"both refuse it": {bad, "", fits, []string{"--kubelet=UPGRADE"}, 3,
			"assigned, kube-system/assigned/kubelet: refused, and by KUBELET too: failed to validate kubelet configuration, error: maxPods -1\nlocal: accepted\n"},
		"the kubelet in use refuses it": {bad, "", fits, nil, 1, "assigned, kube-system/assigned/kubelet: refused: failed to validate kubelet configuration, error: maxPods -1\nlocal: accepted\n"},
		"no kubelet could have it":      {"kind: Pod", "", fits, nil, 1, "assigned, kube-system/assigned/kubelet: refused: key \"kubelet\" is of another kind than KubeletConfiguration\nlocal: accepted\n"},
		"nor could the other": {"kind: Pod", outdated, fits, []string{"--kubelet=UPGRADE"}, 1,
			"assigned, kube-system/assigned/kubelet: refused, and by KUBELET too: key \"kubelet\" is of another kind than KubeletConfiguration\n" +
				"last known good, kube-system/last-known-good/kubelet: refused: failed to validate kubelet configuration, error: no such gate\nlocal: accepted\n"},
		"one that does not run here": {"", "", fits, []string{"--kubelet=/bin/false"}, 3, "local: unknown, for /bin/false does not run here: the kubelet exited without a word (exit status 1)\n"},
		"no pre-flight with it":      {"", "", fits, []string{"--kubelet=SCRIPT"}, 3, "local: unknown: no pre-flight: SCRIPT is not an ELF executable, and a wrapper that swallows its arguments would start a second kubelet; if it hands them on, use --preflight=always\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.keeps(test.assigned, test.lastKnownGood)
			written(t, n.local, test.local)
			in := strings.NewReplacer("UPGRADE", n.upgrade(), "SCRIPT", written(t, n.path("script"), "#!/bin/sh\n"), "KUBELET", n.kubelet[0])
			words := []string{"check", "--active", "--state-dir=" + n.stateDir}
			for _, flag := range test.flags {
				words = append(words, in.Replace(flag))
			}
			code, stdout, stderr := does(append(append(words, "--"), n.kubelet...)...)
			if want := in.Replace(test.stdout); stdout != want || stderr != "" || code != test.code {
				t.Errorf("code %d, said %q and %q; want %d, %q", code, stdout, stderr, test.code, want)
			}
		})
	}
}

// What cannot be read is unknown, and stays where it is: only the supervisor sets things aside.
func TestCheckActiveOfABrokenCheckpoint(t *testing.T) {
	n := newNode(t)
	n.keeps(fits, "")
	files, err := filepath.Glob(filepath.Join(n.stateDir, "checkpoints", "*", "*", "kubelet"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	written(t, files[0], bad)
	code, stdout, _ := does(append([]string{"check", "--active", "--state-dir=" + n.stateDir, "--"}, n.kubelet...)...)
	if code != checkUnknown || !strings.Contains(stdout, "assigned, kube-system/assigned/kubelet: unknown: ") || !strings.Contains(stdout, "does not match its checksum") || !exists(files[0]) {
		t.Errorf("code %d, said %q", code, stdout)
	}
}

// A running supervisor is not disturbed, and knows the command line and the state folder.
func TestCheckActiveBesideASupervisor(t *testing.T) {
	n := newNode(t)
	n.keeps(outdated, "")
	p := n.run()
	before := p.awaitHealthy()
	code, stdout, stderr := does("check", "--active", "--run-dir="+n.runDir, "--kubelet="+n.upgrade())
	if code != checkRefused || stderr != "" || !strings.HasPrefix(stdout, "assigned, kube-system/assigned/kubelet: refused: ") || !strings.Contains(stdout, "\nlocal: accepted\n") {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
	if after := p.awaitHealthy(); after.Child.PID != before.Child.PID {
		t.Error("the kubelet was restarted")
	}
	other := newNode(t)
	code, stdout, _ = does("check", "--active", "--run-dir="+n.runDir, "--state-dir="+other.stateDir, "--kubelet="+other.upgrade())
	if code != exitOK || stdout != "local: accepted\n" {
		t.Errorf("with another state folder: code %d, said %q", code, stdout)
	}
}

// The kill switch is on: the process is the kubelet itself, and the configurations wait for the next start.
func TestCheckActiveBesideAKubeletAlone(t *testing.T) {
	n := newNode(t)
	n.keeps(outdated, "")
	recorded := n.path("record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	p := n.run("--kill-switch=" + written(t, n.path("disabled"), ""))
	n.awaitAlone(p, recorded)
	code, stdout, stderr := does("check", "--active", "--run-dir="+n.runDir, "--state-dir="+n.stateDir, "--kubelet="+n.upgrade())
	if code != checkRefused || !strings.Contains(stdout, "no such gate") || !strings.Contains(stdout, "\nlocal: accepted\n") {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
}

func TestCheckActiveUsage(t *testing.T) {
	n := newNode(t)
	for name, test := range map[string]struct {
		words []string
		want  string
	}{
		"nothing is known":      {[]string{"--active", "--run-dir=" + n.runDir}, "no supervisor runs with --run-dir=" + n.runDir + ", so this node's kubelet flags are not known: give its command line behind the other words, as in -- /usr/bin/kubelet"},
		"a file":                {[]string{"--active", n.local}, "is given with --active, which takes no FILE"},
		"a file and a kubelet":  {[]string{"--active", n.local, "--", fakeKubelet}, "is given with --active, which takes no FILE"},
		"no kubelet":            {[]string{"--active", "--"}, "the kubelet's command line is missing"},
		"no such kubelet":       {[]string{"--active", "--kubelet=/nowhere", "--", fakeKubelet}, "the kubelet /nowhere cannot be run"},
		"a relative folder":     {[]string{"--active", "--state-dir=state", "--", fakeKubelet}, `--state-dir="state" is not an absolute path`},
		"a relative run folder": {[]string{"--active", "--run-dir=run"}, `--run-dir="run" is not an absolute path`},
		"without --active":      {[]string{"--kubelet=" + fakeKubelet, n.local, "--", fakeKubelet}, "--kubelet is only for --active"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := does(append([]string{"check"}, test.words...)...)
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}
