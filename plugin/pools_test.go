package plugin

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func poolsResource() schema.GroupVersionResource {
	return v1alpha1.GroupVersion().WithResource("kubeletpools")
}

func budgetsResource() schema.GroupVersionResource {
	return v1alpha1.GroupVersion().WithResource("kubeletrolloutbudgets")
}

func newFakePools() *dynamicfake.FakeDynamicClient {
	pools := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{poolsResource(): "KubeletPoolList",
		budgetsResource(): "KubeletRolloutBudgetList"})
	// The fake knows no server-side apply, of which pool diff asks for a dry run alone.
	pools.PrependReactor("patch", "kubeletpools", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if patch.PatchType != types.ApplyPatchType {
			return false, nil, nil
		}
		if !slices.Equal(patch.PatchOptions.DryRun, []string{metav1.DryRunAll}) {
			return true, nil, errors.New("this is no dry run")
		}
		return true, &unstructured.Unstructured{}, nil
	})
	return pools
}

// A fakePool is pool workers, of the nodes with the label pool=workers, and what the controller keeps of it. Its sources are those of its
// revisions, from 1.
type fakePool struct {
	*v1alpha1.KubeletPool
	kept    []rollout.Revision
	objects []runtime.Object
}

// newFakePool has a revision for each layer; all but the last were completed, and the last is the target.
func newFakePool(t *testing.T, layers ...string) *fakePool {
	t.Helper()
	p := &fakePool{KubeletPool: &v1alpha1.KubeletPool{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "KubeletPool"},
		ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 3}}}
	p.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
	p.Status.ObservedGeneration = 3
	for i, layer := range layers {
		p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", Inline: &runtime.RawExtension{Raw: []byte(layer)}}}
		plan := rollout.Decide(rollout.World{Now: noon, Synced: true, Pools: []rollout.Pool{rollout.ReadPool(p.KubeletPool, p.kept, time.LoadLocation)}})
		if len(plan.Revisions) != 1 {
			t.Fatalf("layer %s makes the revisions %v", layer, plan.Revisions)
		}
		r := plan.Revisions[0]
		p.keep(t, r, noon.Add(time.Duration(i-len(layers))*time.Hour))
		name := v1alpha1.RevisionName{Revision: r.Number, Hash: r.Hash}
		p.Status.Target = &v1alpha1.Target{RevisionName: name, Attempt: 1}
		entry := v1alpha1.RevisionStatus{RevisionName: name, Result: v1alpha1.ResultRolling}
		if i+1 < len(layers) {
			p.Status.Stable = &name
			entry.Result, entry.Proven, entry.ProvenIn = v1alpha1.ResultCompleted, 4, []v1alpha1.CohortProof{{Cohort: "v1.36/amd64/" + variantHash(&r)}}
			p.completes(name)
		}
		p.Status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.Status.Revisions...)
	}
	return p
}

// variantHash is that of what all nodes get of a revision.
func variantHash(r *rollout.Revision) string {
	source := strings.TrimSuffix(r.SourceFor(nil), "/"+rollout.VariantKey)
	return source[strings.LastIndexByte(source, '-')+1:]
}

func (p *fakePool) keep(t *testing.T, r rollout.Revision, made time.Time) {
	t.Helper()
	data, err := r.Data()
	if err != nil {
		t.Fatal(err)
	}
	p.kept = append(p.kept, rollout.ReadRevision(r.Pool, r.ObjectName(), data))
	p.objects = append(p.objects, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: r.ObjectName(),
		Labels: map[string]string{rollout.PoolLabel: r.Pool}, CreationTimestamp: metav1.NewTime(made)}, Revision: r.Number, Data: runtime.RawExtension{Raw: data}})
}

// says sets a condition.
func (p *fakePool) says(kind string, is bool, reason, message string) {
	state := metav1.ConditionFalse
	if is {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: state, Reason: reason, Message: message})
}

// completes notes that a revision was completed now.
func (p *fakePool) completes(name v1alpha1.RevisionName) {
	all := slices.DeleteFunc(p.Status.Completions, func(c v1alpha1.Completion) bool { return c.RevisionName == name })
	p.Status.Completions = append([]v1alpha1.Completion{{RevisionName: name}}, all...)
}

// completed has the target through.
func (p *fakePool) completed() *fakePool {
	name := p.Status.Target.RevisionName
	p.Status.Stable, p.Status.Wave = &name, nil
	p.completes(name)
	p.Status.Revisions[0].Result = v1alpha1.ResultCompleted
	p.says(v1alpha1.ConditionReady, true, rollout.ReasonCompleted, "revision 2")
	p.says(v1alpha1.ConditionProgressing, false, rollout.ReasonCompleted, "revision 2")
	return p
}

// undoes has the pool on its way back to a revision.
func (p *fakePool) undoes(revision int64) {
	p.Spec.Rollout.Pin = pinnedTo(revision)
	for _, r := range p.Status.Revisions {
		if r.Revision == revision {
			p.Status.Target.RevisionName = r.RevisionName
		}
	}
	p.says(v1alpha1.ConditionReady, false, rollout.ReasonRolling, "")
}

// stops has the target stopped by a node, in the first wave.
func (p *fakePool) stops(node string) *fakePool {
	t := p.Status.Target
	p.Status.Stops = []v1alpha1.Stop{{Hash: t.Hash, Revision: t.Revision, Attempt: t.Attempt, Node: node, Reason: "Refused",
		Message: "maxPods (--max-pods) -1 must not be a negative number"}}
	p.Status.Revisions[0].Result = v1alpha1.ResultStopped
	p.Status.Wave = &v1alpha1.WaveStatus{Number: 1, Goal: 1}
	words := "revision 2, attempt 1: " + node + " Refused: maxPods (--max-pods) -1 must not be a negative number"
	p.says(v1alpha1.ConditionReady, false, rollout.ReasonStopped, words)
	p.says(v1alpha1.ConditionProgressing, false, rollout.ReasonHeld, words)
	p.says(v1alpha1.ConditionStalled, true, rollout.ReasonStopped, words)
	return p
}

func (p *fakePool) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(p.KubeletPool)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return object
}

// set puts the pool into the fake API server as it is now.
func (b *bench) set(t *testing.T, p *fakePool) {
	t.Helper()
	object := p.object(t)
	if err := b.pools.Tracker().Update(poolsResource(), object, ""); err == nil {
		return
	}
	if err := b.pools.Tracker().Create(poolsResource(), object, ""); err != nil {
		t.Fatal(err)
	}
}

// pool reads the pool back.
func (b *bench) pool(t *testing.T) view.Pool {
	t.Helper()
	p, err := view.GetPool(t.Context(), b.pools.Resource(poolsResource()), "workers")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPoolBench is a cluster with the pool and nodes.
func newPoolBench(t *testing.T, p *fakePool, nodes ...*corev1.Node) *bench {
	t.Helper()
	objects := append([]runtime.Object{}, p.objects...)
	for _, n := range nodes {
		objects = append(objects, n)
	}
	b := newBench(t, objects...)
	b.set(t, p)
	return b
}

// member is a node that the pool has assigned a revision, in its first attempt, and that says a reason of it.
func (p *fakePool) member(name string, revision int, reason string) *corev1.Node {
	node := newNode(name)
	node.Status.NodeInfo.Architecture = "amd64"
	source := func(revision int) string { return p.kept[revision-1].SourceFor(node.Labels) }
	config := func(revision int) *corev1.ConfigMap {
		if revision == 0 {
			return nil
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: strings.Split(source(revision), "/")[1]}}
	}
	active, good, state, words := config(revision), config(revision), corev1.ConditionTrue, "using current; passed its trial"
	switch reason {
	case "InTrial":
		good, words = config(revision-1), "using current; the assigned configuration is on trial for 10m0s of health"
	case "Active":
	default:
		active, good, state, words = config(revision-1), config(revision-1), corev1.ConditionFalse, "using last-known-good; it is bad"
	}
	node.Annotations = map[string]string{
		nodev1.ConfigSourceAnnotation: source(revision), rollout.MarkAnnotation: rollout.Mark{Pool: p.Name, Assignment: source(revision), Attempt: 1}.String(),
		nodev1.RetryAnnotation: rollout.Retry{Pool: p.Name, Hash: p.kept[revision-1].Hash, Attempt: 1}.String(),
	}
	knowing(saying(node, source(revision), reason, state, words, active, good))
	if reason == "InTrial" {
		resaying(node, func(s *nodev1.Status) { s.Trial = &nodev1.Trial{Healthy: "0s", Of: "10m0s", Tries: 1} })
	}
	node.UID = types.UID("uid-of-" + name)
	return node
}
