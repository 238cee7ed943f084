//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// layersOf is a payload that sets two fields, one after the other, over the node's own file.
const layersOf = "kind: KubeletConfigurationLayers\napiVersion: kubelet-supervisor.io/v1alpha1\nlayers:\n" +
	"- {name: fleet, from: KubeletPool workers, patch: {maxPods: 250, evictionHard: {memory.available: 500Mi}}}\n- {name: gpu, patch: {maxPods: 60, registerWithTaints: null}}\n"

var own = fakenode.Configuration("mode: ok") + "maxPods: 110\nregisterWithTaints: [{key: a}]\n"

const explainedMaxPods = "maxPods: 60 ← layer gpu; disrupts-pods\n    over 250 ← layer fleet (KubeletPool workers)\n    over 110 ← local file\n"

// Without a supervisor it goes by what is on disk.
func TestExplain(t *testing.T) {
	const assigned = "kube-system/assigned/kubelet, which is assigned (no supervisor runs):\n"
	for name, test := range map[string]struct {
		assigned, lastKnownGood string
		words, kubelet          []string
		code                    int
		stdout                  string // its end
		stderr                  string
	}{
		"local":                 {"", "", []string{"maxPods"}, nil, 0, "the local configuration (no supervisor runs):\nmaxPods: 110 ← local file; disrupts-pods\n    a change: ", ""},
		"layers":                {layersOf, layersOf, []string{"maxPods"}, nil, 0, assigned + explainedMaxPods, ""},
		"of another good one":   {layersOf, fits, []string{"maxPods"}, nil, 0, assigned + explainedMaxPods, "note: it is not the last known good one, which is kube-system/last-known-good/kubelet\n"},
		"on trial from local":   {layersOf, "", []string{"maxPods"}, nil, 0, assigned + explainedMaxPods, "note: it is not the last known good one, which is local\n"},
		"a key of a map":        {layersOf, layersOf, []string{"evictionHard.memory.available"}, nil, 0, assigned + "evictionHard.memory.available: \"500Mi\" ← layer fleet (KubeletPool workers); disrupts-pods\n", ""},
		"as push --set has it":  {layersOf, layersOf, []string{`evictionHard.memory\.available`}, nil, 0, assigned + "evictionHard.memory.available: \"500Mi\" ← layer fleet", ""},
		"what it is in":         {layersOf, layersOf, []string{"evictionHard"}, nil, 0, assigned + "evictionHard.memory.available: \"500Mi\" ← layer fleet", ""},
		"a null":                {layersOf, layersOf, []string{"registerWithTaints"}, nil, 0, "registerWithTaints: the kubelet's default; inert; since kubelet 1.23\n    null ← layer gpu\n    took away [{\"key\":\"a\"}] ← local file\n", ""},
		"a flag":                {layersOf, layersOf, []string{"maxPods"}, []string{"--max-pods=20"}, 0, assigned + "maxPods: 20 ← flag --max-pods; disrupts-pods\n    shadows 60 ← layer gpu\n", ""},
		"nobody sets it":        {layersOf, layersOf, []string{"podsPerCore"}, nil, 0, assigned + "it is not set: the kubelet's default applies\n", ""},
		"no such field":         {layersOf, layersOf, []string{"maxPodz"}, nil, 2, "", `there is no field "maxPodz"; do you mean maxPods?`},
		"nor one that is near":  {layersOf, layersOf, []string{"somethingElseAltogether"}, nil, 2, "", `there is no field "somethingElseAltogether"; docs/reference/fields.md has them all`},
		"a flag's name":         {layersOf, layersOf, []string{"max-pods"}, nil, 2, "", "do you mean maxPods?"},
		"what nobody knows":     {fakenode.Configuration("mode: ok") + "maxPodz: 1\n", fakenode.Configuration("mode: ok") + "maxPodz: 1\n", []string{"maxPodz"}, nil, 0, "maxPodz: 1 ← assigned file; no kubelet knows this field\n", ""},
		"another output":        {"", "", []string{"-o", "yaml"}, nil, 2, "", `--output="yaml" is not json`},
		"what cannot be":        {"kind: Pod", "", nil, nil, 3, "", `kube-system/assigned/kubelet, which is assigned (no supervisor runs) cannot be explained: key "kubelet" is of another kind`},
		"a folder that is none": {"", "", []string{"--state-dir=x"}, nil, 2, "", `--state-dir="x" is not an absolute path`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			written(t, n.local, own)
			n.keeps(test.assigned, test.lastKnownGood)
			if test.assigned == test.lastKnownGood {
				n.promoted()
			}
			words := append([]string{"explain", "--state-dir=" + n.stateDir, "--run-dir=" + n.runDir}, test.words...)
			code, stdout, stderr := does(append(append(append(words, "--"), n.kubelet...), test.kubelet...)...)
			if code != test.code || !strings.Contains(stdout, test.stdout) || test.stdout == "" && stdout != "" || !strings.Contains(stderr, test.stderr) || test.stderr == "" && stderr != "" {
				t.Errorf("code %d, said %q and %q; want %d, %q and %q", code, stdout, stderr, test.code, test.stdout, test.stderr)
			}
		})
	}
}

// promoted makes what is assigned the last known good one.
func (n *node) promoted() {
	n.t.Helper()
	s, err := store.Open(n.stateDir)
	if err != nil {
		n.t.Fatal(err)
	}
	source, err := s.LoadSource(store.Assigned)
	if err == nil && source != nil {
		var own []byte
		own, err = os.ReadFile(n.local)
		err = errors.Join(err, s.SaveBase(*source, kubeletconfig.LocalContent(n.kubelet[1:]), own))
	}
	if err = errors.Join(err, s.SaveSource(store.LastKnownGood, source), s.Close()); err != nil {
		n.t.Fatal(err)
	}
}

func TestExplainForMachines(t *testing.T) {
	n := newNode(t)
	written(t, n.local, own)
	n.keeps(layersOf, layersOf)
	code, stdout, _ := does(append([]string{"explain", "--state-dir=" + n.stateDir, "--run-dir=" + n.runDir, "-o", "json", "maxPods", "evictionHard", "--"}, n.kubelet...)...)
	var said struct {
		Explained string
		Fields    []struct {
			Field string
			Value any
			SetBy struct{ Kind, Name, From string }
			Over  []struct{ Value any }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != 0 || len(said.Fields) != 2 {
		t.Fatalf("code %d, %v: %s", code, err, stdout)
	}
	if f := said.Fields[1]; f.Field != "maxPods" || f.Value != 60.0 || f.SetBy.Name != "gpu" || len(f.Over) != 2 || f.Over[1].Value != 110.0 {
		t.Errorf("%s", stdout)
	}
}

// What runs is what the supervisor says, and the flags are those that it gave the kubelet.
func TestExplainBesideASupervisor(t *testing.T) {
	n := newNode(t)
	written(t, n.local, own)
	n.keeps(layersOf, layersOf)
	n.promoted()
	n.kubelet = append(n.kubelet, "--max-pods=20")
	p := n.run()
	fakenode.Await(t, "what is assigned runs", func() bool { return p.awaitHealthy().Runs != nil })
	code, stdout, stderr := does("explain", "--run-dir="+n.runDir, "maxPods")
	if code != 0 || !strings.Contains(stdout, " runs now:\nmaxPods: 20 ← flag --max-pods; disrupts-pods\n    shadows 60 ← layer gpu\n    shadows 250 ← layer fleet (KubeletPool workers)\n    shadows 110 ← local file\n") {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
	written(t, n.local, own+"podsPerCore: 3\n")
	fakenode.Await(t, "the supervisor sees the edit", func() bool { return p.awaitHealthy().LocalPending })
	if code, stdout, stderr = does("explain", "--run-dir="+n.runDir, "maxPods"); code == exitOK && !strings.Contains(stderr, "local files were changed since it was started") {
		t.Errorf("after an edit: code %d, said %q and %q", code, stdout, stderr)
	}
}

// A checkpoint that the disk has spoilt is named, and never explained.
func TestExplainOfASpoiltCheckpoint(t *testing.T) {
	n := newNode(t)
	written(t, n.local, own)
	n.keeps(layersOf, layersOf)
	files, err := filepath.Glob(filepath.Join(n.stateDir, "checkpoints", "*", "assigned", "kubelet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	written(t, files[0], strings.Replace(layersOf, "250", "251", 1))
	code, stdout, stderr := does(append([]string{"explain", "--state-dir=" + n.stateDir, "--run-dir=" + n.runDir, "maxPods", "--"}, n.kubelet...)...)
	if code != checkUnknown || stdout != "" || !strings.Contains(stderr, "reading the checkpoint of /api/v1/namespaces/kube-system/configmaps/assigned: ") || !strings.Contains(stderr, "checksum") {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
}

func TestExplainWithoutAnything(t *testing.T) {
	n := newNode(t)
	code, _, stderr := does("explain", "--run-dir="+n.runDir, "--state-dir="+n.stateDir)
	if code != exitUsage || !strings.Contains(stderr, "this node's kubelet flags are not known: give its command line") {
		t.Errorf("code %d, said %q", code, stderr)
	}
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "kubelet-supervisor-explain-*"))
	if err != nil || len(files) > 0 {
		t.Errorf("it leaves %v behind (%v)", files, err)
	}
}

// check says where layers may do something else than people think.
func TestCheckWarnsOfTraps(t *testing.T) {
	n := newNode(t)
	written(t, n.local, fits+"clusterDNS: [a]\n")
	file := written(t, n.path("layers.yaml"), layersOf+"- {name: dns, patch: {clusterDNS: [b]}}\n")
	_, _, stderr := does(append([]string{"check", file, "--"}, n.kubelet...)...)
	for _, want := range []string{"warning: layer dns: the list clusterDNS replaces that of the node's own file, it is not added\n", "warning: layer fleet: with evictionHard, thresholds that neither"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in %q", want, stderr)
		}
	}
}
