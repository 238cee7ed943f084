//go:build linux

package supervisor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// assign brings the loop an assignment of a payload, as a session with the API server does.
func (l *loop) assign(t *testing.T, name, payload string) corev1.ConfigMapNodeConfigSource {
	t.Helper()
	files := map[string]string{"kubelet": payload}
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: "uid-" + "x", ResourceVersion: name, KubeletConfigKey: "kubelet"}
	if err := l.payloads.keeper.checkpoint(l.payloads.store, source, files); err != nil {
		t.Fatal(err)
	}
	l.send(t.Context(), core.Assigned{Version: core.Version{Source: source, Content: kubeletconfig.Content(files, "kubelet")}, Text: "kube-system/" + name + "/kubelet", NodeUID: "node"})
	return source
}

// What a flag goes before restarts nothing, and is said; what it does not restarts the kubelet.
func TestAShadowedEdit(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.Arguments = append(n.options.Arguments, "--max-pods=20")
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"maxPods: 60\n")
	loops := make(chan *loop, 1)
	r := n.runChanged(func(l *loop) { loops <- l })
	l := <-loops
	first := r.awaitHealthy()
	if diff := cmp.Diff([]nodev1.ShadowedField{{Field: "maxPods", Value: "60", By: "--max-pods", Effective: "20"}}, first.Status.Shadowed); diff != "" {
		t.Error(diff)
	}

	b := l.assign(t, "b", fakenode.Configuration("mode: ok")+"maxPods: 61\n")
	record := r.await("b is active", func(record Record) bool { return record.Config.Active != nil && *record.Config.Active.ConfigMap == b })
	if record.Child.PID != first.Child.PID || !strings.Contains(record.Condition.Message, "Shadowed: maxPods (61) by --max-pods (20)") || record.Trial == nil {
		t.Errorf("recorded %+v", record)
	}
	l.assign(t, "c", fakenode.Configuration("mode: ok")+"maxPods: 61\npodsPerCore: 1\n")
	r.await("another kubelet", func(record Record) bool {
		return record.Healthy && runsOf(record) == "c" && record.Child.PID != first.Child.PID
	})
	if got := n.events("preflight", "start"); got != "preflight start preflight preflight start" {
		t.Errorf("the kubelets: %s", got)
	}
}

// The checkpoint that the running kubelet was started from stays, whatever it is taken for.
func TestTheCheckpointOfAKubeletThatIsTakenForAnother(t *testing.T) {
	a := core.Version{Source: corev1.ConfigMapNodeConfigSource{Name: "a"}}
	var l loop
	l.state.Child = core.Child{Alive: true, Version: &core.Version{Source: corev1.ConfigMapNodeConfigSource{Name: "b"}}, From: &a}
	kept := fmt.Sprint(versionsInUse(&l.state, core.Durable{}))
	for _, name := range []string{"{ a ", "{ b "} {
		if !strings.Contains(kept, name) {
			t.Errorf("%s is not kept: %s", name, kept)
		}
	}
}

// So do those of what is held, and of an edit of it that waits for quiet.
func TestCheckpointsOfWhatWaits(t *testing.T) {
	var l loop
	l.state.Pending = &core.Assigned{Version: core.Version{Source: corev1.ConfigMapNodeConfigSource{Name: "held"}}}
	l.state.Edit = &core.Assigned{Version: core.Version{Source: corev1.ConfigMapNodeConfigSource{Name: "edited"}}}
	kept := fmt.Sprint(versionsInUse(&l.state, core.Durable{}))
	for _, name := range []string{"{ held ", "{ edited "} {
		if !strings.Contains(kept, name) {
			t.Errorf("%s is not kept: %s", name, kept)
		}
	}
}

// A merged configuration has the secrets of flags and files in it: no file of ours and no line of the log has them, but for the payload itself.
func TestEffectiveConfigurationsAreNotWritten(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.Arguments = append(n.options.Arguments, "--max-pods=20", "--manifest-url=https://me:flags3cret@host")
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"maxPods: 60\nstaticPodURL: https://me:s3cret@host\n")
	r := n.run()
	r.await("what is shadowed", func(record Record) bool { return record.Healthy && len(record.Status.Shadowed) == 2 })
	if err := r.end(); err != nil {
		t.Error(err)
	}
	payload := map[string]bool{"effective/kubelet.yaml": true, "checkpoints/uid-a/1/kubelet": true}
	for _, folder := range []string{n.options.RunDir, n.options.StateDir} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			name, _ := filepath.Rel(folder, path)
			if err != nil || !entry.Type().IsRegular() || payload[name] {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), "s3cret") {
				t.Errorf("%s has it: %s", path, content)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if log := r.log.String(); strings.Contains(log, "s3cret") {
		t.Errorf("the log has it:\n%s", log)
	}
}

// toldOf is what a kubelet told of a configuration with these fields.
func toldOf(t *testing.T, fields map[string]any) kubeletconfig.Effective {
	t.Helper()
	effective := kubeletconfig.ToldEffective(fields, nil, "", "/none")
	if !effective.Told {
		t.Fatal("it is not known")
	}
	return effective
}

// The policies that state files are compared with are those that the kubelet told; where it told none, our own reading.
func TestPoliciesOfTheEffectiveConfiguration(t *testing.T) {
	root := t.TempDir()
	written(t, root, cpuState, stateOf("none"))
	file := written(t, root, "kubelet.yaml", fakenode.Configuration("mode: ok")+"cpuManagerPolicy: static\n")
	l := wire(Options{Arguments: []string{"--root-dir", root}})
	told, other := core.Version{Content: "told"}, core.Version{Content: "other"}
	l.prover.effectives.keep("told", kubeletconfig.Identity{Binary: "b"}, toldOf(t, map[string]any{"cpuManagerPolicy": "none", "memoryManagerPolicy": "None"}), false)
	for name, test := range map[string]struct {
		start core.Start
		file  string
		want  int
	}{
		"told":                        {core.Start{Version: &told, Kubelet: kubeletconfig.Identity{Binary: "b"}}, file, 0},
		"another content":             {core.Start{Version: &other, Kubelet: kubeletconfig.Identity{Binary: "b"}}, file, 1},
		"another kubelet":             {core.Start{Version: &told, Kubelet: kubeletconfig.Identity{Binary: "c"}}, file, 1},
		"local, told":                 {core.Start{Local: "told", Kubelet: kubeletconfig.Identity{Binary: "b"}}, "", 0},
		"local without a file":        {core.Start{Local: "x"}, "", 0},
		"not looked at a second time": {core.Start{Version: &other, Unchecked: true}, file, 0},
	} {
		if got := l.runner.stateFilesInTheWay(test.start, test.file); len(got) != test.want {
			t.Errorf("%s: in the way are %v, want %d", name, got, test.want)
		}
	}
}

// What a kubelet told while the files changed is nobody's: which of them it read is not known.
func TestToldWhileFilesChanged(t *testing.T) {
	folder := t.TempDir()
	file := written(t, folder, "kubelet.yaml", fakenode.Configuration("mode: ok"))
	dropIns := filepath.Join(folder, "drop-ins")
	l := wire(Options{Kubelet: written(t, folder, "kubelet", "a kubelet"), Arguments: []string{"--config=" + file, "--config-dir=" + dropIns}})
	told := toldOf(t, map[string]any{"maxPods": 1})
	explained := func(before core.LocalChanged) core.Proved {
		proved := core.Proved{Proof: core.Proof{Content: before.Local, Kubelet: before.Kubelet}}
		l.prover.explain(&proved, core.Prove{Kubelet: before.Kubelet, Local: before.Local}, kubelet.Verdict{Outcome: kubeletconfig.Accepted, Effective: told})
		return proved
	}
	for name, change := range map[string]func(){
		"nothing": func() {},
		"a drop-in file": func() {
			written(t, folder, "drop-ins/10.conf", fakenode.Configuration("mode: ok"))
		},
		"the file": func() { written(t, folder, "kubelet.yaml", fakenode.Configuration("mode: slow")) },
	} {
		before, err := l.lookLocal()
		if err != nil {
			t.Fatal(err)
		}
		l.prover.effectives = effectives{}
		change()
		proved := explained(before)
		if kept := l.prover.effectives.find(before.Local, before.Kubelet).Known(); kept != (name == "nothing") || (proved.Effective != "") != kept {
			t.Errorf("%s changed: the digest is %q, in memory: %v", name, proved.Effective, kept)
		}
	}
}

// Flags are no matter of a configuration.
func TestGatesOf(t *testing.T) {
	if got := fmt.Sprint(gatesOf([]string{"--old goes away", "and 3 more", "featureGates.A goes away"})); got != "[featureGates.A goes away]" {
		t.Error(got)
	}
}

func TestEffectivesAreBounded(t *testing.T) {
	var e effectives
	newest := fmt.Sprint(3*keptEffective - 1)
	e.keep("older local", kubeletconfig.Identity{}, toldOf(t, map[string]any{"maxPods": 1}), true)
	e.keep("local", kubeletconfig.Identity{}, toldOf(t, map[string]any{"maxPods": 2}), true)
	for i := range 3 * keptEffective {
		e.keep(fmt.Sprint(i), kubeletconfig.Identity{}, toldOf(t, map[string]any{"maxPods": i}), false)
		e.keep(fmt.Sprint(i), kubeletconfig.Identity{}, toldOf(t, map[string]any{"maxPods": i + 100}), false)
	}
	if got := string(e.find("local", kubeletconfig.Identity{}).JSON()); got != `{"maxPods":2}` || e.find("older local", kubeletconfig.Identity{}).Known() {
		t.Errorf("of local %s is kept", got)
	}
	if len(e.list) != keptEffective {
		t.Errorf("%d are kept", len(e.list))
	}
	if got := string(e.find(newest, kubeletconfig.Identity{}).JSON()); got != `{"maxPods":108}` {
		t.Errorf("the newest is %s", got)
	}
	if e.find("0", kubeletconfig.Identity{}).Known() || e.find(newest, kubeletconfig.Identity{Local: "x"}).Known() {
		t.Error("what was not kept is found")
	}
	e.keep("large", kubeletconfig.Identity{}, toldOf(t, map[string]any{"clusterDomain": strings.Repeat("x", keptEffectiveSize)}), true)
	e.keep("own", kubeletconfig.Identity{}, kubeletconfig.ReadEffective([]string{"--max-pods=1"}, ""), false)
	if e.find("large", kubeletconfig.Identity{}).Known() || e.find("own", kubeletconfig.Identity{}).Known() {
		t.Error("what is too large, or not told, is kept")
	}
}

// What the running kubelet was started with is known for as long as it lives, whatever is asked about meanwhile, also by the program that takes
// over at a reload.
func TestWhatRunsStaysKnown(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	begin := func() *loop {
		l, err := newLoop(n.options)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := begin()
	runs := kubeletconfig.Identity{Binary: "b"}
	maxPods := func(l *loop, do core.Foresee) string {
		now, _, _ := l.prover.bothEffective(t.Context(), do)
		return string(now.JSON())
	}
	for name, row := range map[string]struct {
		isLocal bool
		do      core.Foresee
	}{
		"the node's own file, which was edited": {true, core.Foresee{Change: core.Change{Runs: "was", RunsKubelet: runs, Content: "new", Kubelet: runs}, Local: "edited"}},
		"the kubelet's program was replaced":    {false, core.Foresee{Change: core.Change{Runs: "was", RunsKubelet: runs, Content: "new", Kubelet: kubeletconfig.Identity{Binary: "c"}}}},
	} {
		l.prover.effectives = effectives{}
		l.prover.effectives.keep("was", runs, toldOf(t, map[string]any{"maxPods": 7, "cpuManagerPolicy": "none"}), row.isLocal)
		l.prover.effectives.begin("was", runs)
		for i := range 2 * keptEffective {
			l.prover.effectives.keep(fmt.Sprint(i), row.do.Kubelet, toldOf(t, map[string]any{"maxPods": i}), false)
		}
		l.prover.effectives.keep("edited", row.do.Kubelet, toldOf(t, map[string]any{"maxPods": 8}), true)
		if got := maxPods(l, row.do); got != `{"cpuManagerPolicy":"none","maxPods":7}` {
			t.Errorf("%s: what runs is %s", name, got)
		}
		handed := handedOver(t, l)
		l.close()
		l = begin()
		if err := l.inherit(&handed); err != nil {
			t.Fatal(err)
		}
		if got := maxPods(l, row.do); got != `{"cpuManagerPolicy":"none","maxPods":7}` {
			t.Errorf("%s: after a reload what runs is %s", name, got)
		}
		l.prover.effectives.begin("another", runs)
		if got := maxPods(l, row.do); !row.isLocal && got != "" {
			t.Errorf("%s: what has ended is taken for what runs: %s", name, got)
		}
	}
	l.close()
}

// A kubelet that has ended tells nothing of its successor.
func TestALateAnswerAboutWhatRan(t *testing.T) {
	var e effectives
	e.begin("a", kubeletconfig.Identity{})
	_, child := e.running()
	e.begin("b", kubeletconfig.Identity{})
	e.learnRunning(child, toldOf(t, map[string]any{"maxPods": 1}))
	if runs, _ := e.running(); runs.Known() {
		t.Errorf("what runs is said to be %s", runs.JSON())
	}
	_, child = e.running()
	e.learnRunning(child, toldOf(t, map[string]any{"maxPods": 2}))
	e.learnRunning(child, kubeletconfig.Effective{})
	if runs, _ := e.running(); string(runs.JSON()) != `{"maxPods":2}` {
		t.Errorf("what runs is said to be %s", runs.JSON())
	}
}

// A supervisor that starts a kubelet by a kept verdict, without a pre-flight, learns what it runs with all the same.
func TestWhatRunsIsLearntInQuietTimes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.Disruption, n.options.HealthThatCounts = core.Hold, 100*time.Millisecond
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"maxPods: 60\n")
	r := n.run()
	const before = "preflight preflight" // of what is assigned, and of local
	n.await("both verdicts", func() bool { return n.events("preflight") == before })
	r.await("both are kept", func(record Record) bool { return record.Healthy && record.Phase == "Running" })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	loops := make(chan *loop, 1)
	r = n.runChanged(func(l *loop) { loops <- l })
	l := <-loops
	r.awaitHealthy()
	n.await("what runs", func() bool { runs, _ := l.prover.effectives.running(); return runs.Known() })
	if runs, _ := l.prover.effectives.running(); !strings.Contains(string(runs.JSON()), `"maxPods":60`) {
		t.Errorf("what runs is %s", runs.JSON())
	}
	if after := n.events("preflight"); after != before+" preflight" {
		t.Errorf("pre-flights before: %s; after: %s", before, after)
	}
}
