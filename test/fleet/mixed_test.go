//go:build e2e && long

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

// A release is what a commit gives.
type release struct{ version, supervisor, controller, manifests string }

// releaseOf builds the programs of a commit.
func releaseOf(t *testing.T, commit string, programs ...string) release {
	t.Helper()
	tree := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", `git -C ../.. archive "$1" | tar -x -C "$2"`, "bash", commit, tree)
	if output, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("reading commit %s, which takes the project's history: %v\n%s", commit, err, output)
	}
	return builtIn(t, tree, commit, programs...)
}

func builtIn(t *testing.T, tree, version string, programs ...string) release {
	t.Helper()
	bin := t.TempDir()
	words := []string{"build", "-C", tree, "-trimpath", "-ldflags=-X main.version=" + version, "-o", bin + "/"}
	for _, program := range programs {
		words = append(words, "./cmd/"+program)
	}
	build := exec.CommandContext(t.Context(), "go", words...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", version, err, output)
	}
	return release{version, filepath.Join(bin, "kubelet-supervisor"), filepath.Join(bin, "kubelet-supervisor-controller"), filepath.Join(tree, "deploy", "manifests")}
}

// mixed is a fleet whose supervisors are of several releases, each above a fake kubelet, and one pool of all of them.
type mixed struct {
	t       *testing.T
	f       *fleet
	folders []string // of the nodes; each has state/, run/ and program

	machines *scale.Machines
}

const mixedPool = "mixed"

// mix starts the nodes, each with a supervisor of its release, and waits until all have said that they run their own configuration.
func (f *fleet) mix(t *testing.T, releases ...release) *mixed {
	t.Helper()
	m := &mixed{t: t, f: f}
	fake := filepath.Join(t.TempDir(), "fakekubelet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", fake, "../fakekubelet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the fake kubelet: %v\n%s", err, output)
	}
	programs := t.TempDir()
	o := scale.Options{Nodes: len(releases), Processes: true, FakeKubelet: fake, Trial: 2 * time.Second, Log: t.Output()}
	for i, r := range releases {
		o.Binaries = append(o.Binaries, filepath.Join(programs, fmt.Sprint(i)))
		m.install(o.Binaries[i], r)
	}
	machines, err := scale.MakeMachines(t.Context(), f.Cluster, o)
	if err != nil {
		t.Fatal(err)
	}
	m.machines, m.folders = machines, machines.Folders()
	for i := range releases {
		m.makeMember(i)
		if err := os.Symlink(o.Binaries[i], filepath.Join(m.folders[i], "program")); err != nil {
			t.Fatal(err)
		}
	}
	if err := machines.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machines.Stop(); err != nil {
			t.Error(err)
		}
	})
	for i := range releases {
		m.awaitNode(i, "it runs its own configuration", func(n rollout.Node) bool { return n.Supervised && n.Reason == "Local" })
	}
	return m
}

// install puts a release's supervisor in the place of another, as packages do.
func (m *mixed) install(program string, r release) {
	m.t.Helper()
	content, err := os.ReadFile(r.supervisor)
	if err := errors.Join(err, os.WriteFile(program+".new", content, 0o755), os.Rename(program+".new", program)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mixed) name(i int) string { return filepath.Base(m.folders[i]) }

// makeMember gives a Node what its kubelet would, and the pool's label.
func (m *mixed) makeMember(i int) {
	m.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name(i)}}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, poolLabel, mixedPool)
	status := []byte(`{"status":{"nodeInfo":{"kubeletVersion":"v1.36.3","architecture":"amd64","bootID":"boot-1"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`)
	err := m.f.admin.Patch(m.t.Context(), n, client.RawPatch(types.MergePatchType, label))
	if err = errors.Join(err, m.f.admin.Status().Patch(m.t.Context(), n, client.RawPatch(types.StrategicMergePatchType, status))); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mixed) awaitNode(i int, what string, holds func(rollout.Node) bool) rollout.Node {
	m.t.Helper()
	var n corev1.Node
	for deadline := time.Now().Add(5 * time.Minute); ; wait(m.t.Context(), 100*time.Millisecond) {
		err := m.f.admin.Get(m.t.Context(), types.NamespacedName{Name: m.name(i)}, &n)
		if is := rollout.ReadNode(&n); err == nil && holds(is) {
			return is
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(m.folders[i], "log"))
			m.t.Fatalf("waited in vain until %s: %v, %v %+v\n%.8000s", what, err, n.Annotations, n.Status.Conditions, log)
		}
	}
}

// known is what one node's supervisor knows, and must not lose.
type knownOfNode struct {
	kubelet int // its process
	config  corev1.NodeConfigStatus
	reason  string
	source  string // of the Node
	mark    rollout.Mark
}

func (m *mixed) known(i int) knownOfNode {
	m.t.Helper()
	r := m.record(i)
	if r.Child == nil {
		m.t.Fatalf("node %d has no kubelet: %+v", i, r)
	}
	n := m.awaitNode(i, "it is there", func(rollout.Node) bool { return true })
	return knownOfNode{r.Child.PID, r.Config, r.Condition.Reason, n.Source, n.Mark}
}

func (m *mixed) record(i int) supervisor.Record {
	m.t.Helper()
	r, _, err := supervisor.ReadRecord(filepath.Join(m.folders[i], "run"))
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *mixed) all() (all []knownOfNode) {
	m.t.Helper()
	for i := range m.folders {
		all = append(all, m.known(i))
	}
	return all
}

// becomes replaces a supervisor in place. The kubelet and what is known stay.
func (m *mixed) becomes(i int, r release) {
	m.t.Helper()
	before := m.known(i)
	if output, err := m.reload(i, r); err != nil {
		m.t.Fatalf("node %d does not become %s: %v: %s", i, r.version, err, output)
	}
	if now := m.record(i).Version; now != r.version {
		m.t.Errorf("node %d is of %s, not of %s", i, now, r.version)
	}
	if after := m.known(i); !reflect.DeepEqual(after, before) {
		m.t.Errorf("node %d knows %+v as %s, and knew %+v", i, after, r.version, before)
	}
}

// reload installs a release's supervisor on a node, and asks the one that runs to become it, as packages do.
func (m *mixed) reload(i int, r release) (said string, err error) {
	m.t.Helper()
	program, err := os.Readlink(filepath.Join(m.folders[i], "program"))
	if err != nil {
		m.t.Fatal(err)
	}
	m.install(program, r)
	output, err := m.f.Command(program, "reload", "--run-dir="+filepath.Join(m.folders[i], "run")).CombinedOutput()
	return string(output), err
}

// restarts replaces a supervisor that is too old to be replaced in place: it says so, and goes on. A restart takes the new one.
func (m *mixed) restarts(i int, r release) {
	m.t.Helper()
	before, version := m.known(i), m.record(i).Version
	said, err := m.reload(i, r)
	if err == nil || !strings.Contains(said, "restart instead of reloading") {
		m.t.Errorf("node %d, of %s, takes %s in place: %v: %s", i, version, r.version, err, said)
	}
	if after := m.known(i); !reflect.DeepEqual(after, before) || m.record(i).Version != version {
		m.t.Errorf("after a refused reload node %d knows %+v as %s, and knew %+v as %s", i, after, m.record(i).Version, before, version)
	}
	if err := m.machines.Restart(i); err != nil {
		m.t.Fatal(err)
	}
	m.awaitNode(i, "it runs its own configuration, and knows layers", func(n rollout.Node) bool { return n.Layered && n.Reason == "Local" })
}

// apply applies a release's manifests, and waits until the API server serves the pools as that defines them.
func (f *fleet) apply(t *testing.T, r release) {
	t.Helper()
	for _, words := range [][]string{{"apply", "--server-side", "-k", r.manifests}, {"apply", "--server-side", "-k", filepath.Join(r.manifests, "controller")},
		{"wait", "--for=condition=Established", "crd/kubeletpools.kubelet-supervisor.io", "--timeout=120s"}} {
		if _, err := f.Kubectl(t.Context(), words...); err != nil {
			t.Fatalf("%s: %v", r.version, err)
		}
	}
	if err := f.bindControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	crd, err := os.ReadFile(filepath.Join(r.manifests, "controller", "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	drains := strings.Contains(string(crd), "WhenHeld")
	until(t, "the API server serves the definition of "+r.version, 2*time.Minute, func() bool {
		// A pool that is not kept shows what is served: fields that are not known are refused.
		probe := filepath.Join(scratch, "probe.yaml")
		text := "apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: probe}\n" +
			"spec: {selector: {matchLabels: {a: b}}, layers: [{name: a, inline: {maxPods: 1}}], rollout: {drain: {when: WhenHeld}}}\n"
		if err := os.WriteFile(probe, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Kubectl(t.Context(), "create", "--dry-run=server", "--validate=strict", "-f", probe)
		return (err == nil) == drains && (err == nil || strings.Contains(err.Error(), "spec.rollout.drain"))
	})
}

// pool is what is kept of it: its identity, spec and status as the API server gives them.
type keptPool struct {
	uid          string
	spec, status map[string]any
}

func (m *mixed) pool() keptPool {
	m.t.Helper()
	text, err := m.f.Kubectl(m.t.Context(), "get", "kpool", mixedPool, "-o", "json")
	if err != nil {
		m.t.Fatal(err)
	}
	var p struct {
		Metadata     struct{ UID string }
		Spec, Status map[string]any
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		m.t.Fatal(err)
	}
	return keptPool{p.Metadata.UID, p.Spec, p.Status}
}

// drain takes the field out that one release knows and the other does not, and gives it.
func (p keptPool) drain() any {
	rollout := p.spec["rollout"].(map[string]any)
	drain := rollout["drain"]
	delete(rollout, "drain")
	return drain
}

// isKept compares the pool, but for the field that one of the releases does not know.
func (m *mixed) isKept(after string, before, now keptPool) {
	m.t.Helper()
	before.drain()
	now.drain()
	if !reflect.DeepEqual(before, now) {
		m.t.Errorf("after %s the pool is\n%+v\nand was\n%+v", after, now, before)
	}
}

// change patches the pool, and waits until the controller has looked at that.
func (m *mixed) change(patch string) *v1alpha1.KubeletPool {
	m.t.Helper()
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: mixedPool}}
	if err := m.f.admin.Patch(m.t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.t.Fatal(err)
	}
	return m.await("the controller has looked at "+patch, func(*v1alpha1.KubeletPool) bool { return true })
}

func (m *mixed) await(what string, holds func(*v1alpha1.KubeletPool) bool) *v1alpha1.KubeletPool {
	m.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; wait(m.t.Context(), 100*time.Millisecond) {
		var p v1alpha1.KubeletPool
		err := m.f.admin.Get(m.t.Context(), types.NamespacedName{Name: mixedPool}, &p)
		if err == nil && p.Status.ObservedGeneration == p.Generation && holds(&p) {
			return &p
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(p, "", " ")
			m.t.Fatalf("waited in vain until %s: %v: %s", what, err, text)
		}
	}
}

// completed waits until a revision has reached so many nodes, and the others are known to be without a supervisor for it.
func (m *mixed) completed(revision int64, proven, unsupervised int32) *v1alpha1.KubeletPool {
	m.t.Helper()
	p := m.await(fmt.Sprintf("revision %d is proven on %d nodes", revision, proven), func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Stable != nil && p.Status.Stable.Revision == revision && p.Status.Nodes.Proven == proven && p.Status.Nodes.Unsupervised == unsupervised &&
			meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
	})
	if len(p.Status.Stops) > 0 || len(p.Status.Failures) > 0 {
		m.t.Errorf("it has stops %+v and failures %+v", p.Status.Stops, p.Status.Failures)
	}
	return p
}
