package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

const poolHeader = "apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: workers}\n"

const poolSpec = `spec:
  selector: {matchLabels: {pool: workers}}
  layers:
`

// What a pool in a file would do, and that nothing is sent to tell it.
func TestPoolDiff(t *testing.T) {
	for name, row := range map[string]struct {
		content string
		pool    func(*fakePool)
		fresh   bool // there is no pool yet
		code    int
		golden  string
		want    []string
	}{
		"another revision": {poolSpec + `  - {name: fleet, inline: {maxPods: 60, evictionHard: {memory.available: 500Mi}, authorization: {mode: AlwaysAllow}}}
  - {name: shared, configMap: {name: shared}, nodeSelector: {matchLabels: {gpu: "yes"}}}
`, nil, false, 1, "pool-diff.txt", nil},
		"the same": {poolSpec + "  - {name: fleet, inline: {maxPods: 250}}\n", nil, false, 0, "", []string{"workers: revision 2, as it is now\n  Nothing would move.\n"}},
		"other nodes": {"spec:\n  selector: {matchExpressions: [{key: pool, operator: Exists}]}\n  layers:\n  - {name: fleet, inline: {maxPods: 250}}\n", nil, false, 1, "",
			[]string{"workers: revision 2, as it is now", "nodes that come: outside"}},
		"what was completed before": {poolSpec + "  - {name: fleet, inline: {maxPods: 110}}\n", nil, false, 1, "",
			[]string{"workers: revision 1, against revision 2:", "maxPods 250 → 110", "4 nodes, at most 1 unavailable", "wave 1 100%", "all of them, since all kinds of nodes have completed it before"}},
		"what was completed before, by other kubelets": {poolSpec + "  - {name: fleet, inline: {maxPods: 110}}\n", func(p *fakePool) { p.Status.Revisions[1].ProvenIn = nil }, false, 1, "",
			[]string{"workers: revision 1, against revision 2:", "wave 1 canary       1 node", "wave 4 100%"}},
		"what was stopped": {poolSpec + "  - {name: fleet, inline: {maxPods: 250}}\n", func(p *fakePool) { p.stops("n4") }, false, 0, "",
			[]string{"warning: this content was stopped before: n4 Refused: maxPods", "kubectl kubelet rollout retry workers"}},
		"a pool that is pinned and paused": {poolSpec + "  - {name: fleet, inline: {maxPods: 60}}\n", func(p *fakePool) { p.Spec.Rollout.Pin, p.Spec.Rollout.Paused = pinnedTo(1), true },
			false, 1, "", []string{"workers: revision 3", "warning: the pool is pinned to revision 1, so its layers have no effect; kubectl kubelet rollout unpin workers", "warning: the pool is paused"}},
		"a new pool": {poolSpec + "  - {name: fleet, inline: {maxPods: 60}}\n", nil, true, 1, "",
			[]string{"workers: revision 1, against the nodes' own configuration:", "maxPods 60 (layer fleet)", "at most 1 unavailable at once", "v1.36/amd64/fleet", "wave 1 canary", "not moved: manual n1, n2"}},
		"windows and zones": {poolSpec + "  - {name: fleet, inline: {maxPods: 60}}\n  rollout:\n    windows: [{schedule: \"0 22 * * *\", duration: 1h}]\n" +
			"    topology: {key: zone}\n", nil, false, 1, "", []string{"no window is open before 2026-11-21T", "not proven in at most 1 at a time of zone: a (1 node), without the label (3 nodes)"}},
		"a time zone that is none": {poolSpec + "  - {name: fleet, inline: {maxPods: 60}}\n  rollout:\n    windows: [{schedule: \"0 22 * * *\", duration: 1h, timeZone: Europe/Atlantis}]\n",
			nil, false, 2, "", []string{"spec.rollout.windows[0].timeZone"}},
		"a value that nodes refuse": {poolSpec + "  - {name: fleet, inline: {maxPods: many}}\n", nil, false, 1, "", []string{"warning: layer fleet", "maxPods"}},
		"no layer there":            {poolSpec + "  - {name: x, configMap: {name: nowhere}}\n", nil, false, 2, "", []string{"pool workers: ConfigMap kubelet-config/nowhere/kubelet is not there"}},
		"a fault":                   {poolSpec + "  - {name: x, inline: {kind: Pod}}\n", nil, false, 2, "", []string{"pool workers: spec.layers[x]: inline: its kind is not KubeletConfiguration"}},
		"a field that is none":      {"spec:\n  select: {}\n", nil, false, 2, "", []string{"is no KubeletPool", "select"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePool(t, few, many)
			if row.pool != nil {
				row.pool(p)
			}
			outside := p.member("outside", 1, "Active")
			outside.Labels = map[string]string{"pool": "others"}
			fresh := p.member("n4", 1, "Active")
			fresh.Annotations = knowing(localNode("n4")).Annotations
			gpu := p.member("n3", 1, "Active")
			gpu.Labels["gpu"], gpu.Labels["zone"] = "yes", "a"
			b := newPoolBench(t, p, p.member("n1", 2, "Active"), p.member("n2", 1, "Active"), gpu, fresh, outside)
			if err := b.Tracker().Add(configMapOf("shared", "cpuManagerPolicy: static\n")); err != nil {
				t.Fatal(err)
			}
			if row.fresh {
				if err := b.pools.Tracker().Delete(poolsResource(), "", "workers"); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"n1", "n2", "n3"} {
					n := b.node(t, name)
					delete(n.Annotations, rollout.MarkAnnotation) // by hand, from before there was a pool
					if err := b.Tracker().Update(nodesResource(), n, ""); err != nil {
						t.Fatal(err)
					}
				}
				b.removeRevisions(t)
			}
			b.pools.ClearActions()
			file := filepath.Join(t.TempDir(), "pool.yaml")
			if err := os.WriteFile(file, []byte(poolHeader+row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := b.run(t, "pool", "diff", "workers", "-f", file)
			if code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			contains(t, stdout+stderr, row.want...)
			if row.golden != "" {
				golden(t, row.golden, stdout)
			}
			for _, action := range append(b.pools.Actions(), b.Actions()...) {
				if verb := action.GetVerb(); verb != "get" && verb != "list" && !isDryRun(action) {
					t.Errorf("it sends %v", action)
				}
			}
		})
	}
}

func isDryRun(action clienttesting.Action) bool {
	patch, is := action.(clienttesting.PatchActionImpl)
	return is && slices.Equal(patch.PatchOptions.DryRun, []string{metav1.DryRunAll})
}

// The API server has the last word on a file; who may not ask it is told so, and sees the rest.
func TestPoolDiffAsksTheServer(t *testing.T) {
	resource := schema.GroupResource{Group: "kubelet-supervisor.io", Resource: "kubeletpools"}
	invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "rollout", "waves"), "[]", "the last wave is 100%")}
	for name, row := range map[string]struct {
		answer error
		code   int
		want   string
	}{
		"it refuses":          {apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "KubeletPool"}, "workers", invalid), 2, "the API server does not take pool workers: "},
		"it may not be asked": {apierrors.NewForbidden(resource, "workers", errors.New("no")), 0, "warning: the API server was not asked whether it takes the file: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPoolBench(t, newFakePool(t, few, many))
			b.pools.PrependReactor("patch", "kubeletpools", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, row.answer })
			b.input.WriteString(poolHeader + poolSpec + "  - {name: fleet, inline: {maxPods: 250}}\n")
			code, _, stderr := b.run(t, "pool", "diff", "workers", "-f", "-")
			if code != row.code {
				t.Errorf("exit code %d", code)
			}
			contains(t, stderr, row.want)
		})
	}
}

// A pool as kubectl get prints it is one that a person sends back, and not a version of it: what the API server sets is not sent to it.
func TestPoolDiffOfWhatWasExported(t *testing.T) {
	b := newPoolBench(t, newFakePool(t, few, many).completed())
	var sent unstructured.Unstructured
	b.pools.PrependReactor("patch", "kubeletpools", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := sent.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()); err != nil {
			t.Error(err)
		}
		return true, &unstructured.Unstructured{}, nil
	})
	b.input.WriteString(`apiVersion: kubelet-supervisor.io/v1alpha1
kind: KubeletPool
metadata:
  name: workers
  labels: {team: x}
  annotations: {kubernetes.io/change-cause: more}
  creationTimestamp: "2026-11-20T00:00:00Z"
  generation: 3
  managedFields: [{manager: kubectl, operation: Apply}]
  resourceVersion: "17"
  selfLink: /apis/x
  uid: 00000000-0000-0000-0000-000000000001
` + poolSpec + "  - {name: fleet, inline: {maxPods: 250}}\nstatus: {observedGeneration: 3}\n")
	b.do(t, "pool", "diff", "workers", "-f", "-")
	metadata, _, _ := unstructured.NestedMap(sent.Object, "metadata")
	want := map[string]any{"name": "workers", "labels": map[string]any{"team": "x"}, "annotations": map[string]any{"kubernetes.io/change-cause": "more"}}
	if !reflect.DeepEqual(metadata, want) || sent.Object["status"] != nil || sent.Object["spec"] == nil {
		t.Errorf("it sends %v", sent.Object)
	}
}

// The status of a pool that was exported says nothing of one that is not there.
func TestPoolDiffOfAPoolOfAnotherCluster(t *testing.T) {
	p := newFakePool(t, few, many).completed()
	b := newPoolBench(t, p, knowing(localNode("n1")))
	exported, err := yaml.Marshal(p.KubeletPool)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.pools.Tracker().Delete(poolsResource(), "", "workers"); err != nil {
		t.Fatal(err)
	}
	b.removeRevisions(t)
	b.input.Write(exported)
	code, stdout, stderr := b.run(t, "pool", "diff", "workers", "-f", "-")
	if code != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	contains(t, stdout, "workers: revision 1, against the nodes' own configuration:", "wave 1 canary")
}

func TestPoolDiffRefuses(t *testing.T) {
	b := newPoolBench(t, newFakePool(t, few, many))
	for _, test := range []struct {
		arguments []string
		input     string
		want      string
	}{
		{[]string{"workers"}, "", "name a file with -f"},
		{[]string{"workers", "-f", "-"}, "kind: Pod\n", "is no KubeletPool"},
		{[]string{"others", "-f", "-"}, poolHeader, `is of pool "workers", not of "others"`},
		{nil, "", "accepts 1 arg(s)"},
	} {
		b.input.Reset()
		b.input.WriteString(test.input)
		code, _, stderr := b.run(t, append([]string{"pool", "diff"}, test.arguments...)...)
		if code != 2 {
			t.Errorf("%v: exit code %d", test.arguments, code)
		}
		contains(t, stderr, test.want)
	}
}

func nodesResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

func (b *bench) removeRevisions(t *testing.T) {
	t.Helper()
	kept, err := view.ReadRevisions(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range kept {
		if err := b.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), rollout.Namespace, r.ObjectName()); err != nil {
			t.Fatal(err)
		}
	}
}
