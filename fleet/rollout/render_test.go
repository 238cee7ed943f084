package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// What is content, and what is not: equal content is no new revision.
func TestARevisionIsItsContent(t *testing.T) {
	base := func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110,"evictionHard":{"memory.available":"500Mi","nodefs.available":"10%"}}`), gpuLayer(`{"maxPods":60}`)}
	}
	hash := func(change func(*v1alpha1.KubeletPool)) string {
		p := newPool("a", base)
		if change != nil {
			change(p)
		}
		plan := Decide(World{Synced: true, Pools: []Pool{ReadPool(p, nil, time.LoadLocation)}, Layers: map[Ref]Layer{
			{"fleet", "kubelet"}: ReadLayer(map[string]string{"kubelet": "# a comment\nevictionHard:\n  nodefs.available: 10%\n  memory.available: 500Mi\nmaxPods: 110\n"}, "kubelet", "17")}})
		if len(plan.Revisions) != 1 {
			t.Fatalf("%v: %v", plan.Status["a"].Conditions, plan.Revisions)
		}
		return plan.Revisions[0].Hash
	}
	same := hash(nil)
	for name, row := range map[string]struct {
		change func(*v1alpha1.KubeletPool)
		same   bool
	}{
		"a label of the pool": {func(p *v1alpha1.KubeletPool) { p.Labels = map[string]string{"a": "b"} }, true},
		"a layer's name":      {func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Name = "renamed" }, true},
		"the order of keys": {func(p *v1alpha1.KubeletPool) {
			p.Spec.Layers[0] = inline("fleet", `{"evictionHard":{"nodefs.available":"10%","memory.available":"500Mi"},"maxPods":110}`)
		}, true},
		"a ConfigMap with comments": {func(p *v1alpha1.KubeletPool) {
			p.Spec.Layers[0] = v1alpha1.Layer{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet"}}
		}, true},
		"a selector that says more": {func(p *v1alpha1.KubeletPool) { p.Spec.Layers[1].NodeSelector = nil }, false},
		"the waves":                 {func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Waves = wavesOf("100%") }, true},
		"another value":             {func(p *v1alpha1.KubeletPool) { p.Spec.Layers[1] = gpuLayer(`{"maxPods":61}`) }, false},
		"a null":                    {func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Unset = []string{"registerWithTaints"} }, false},
		"the order of layers":       {func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0], p.Spec.Layers[1] = p.Spec.Layers[1], p.Spec.Layers[0] }, false},
		"the base":                  {func(p *v1alpha1.KubeletPool) { p.Spec.Base = v1alpha1.BaseNone }, false},
	} {
		if got := hash(row.change); (got == same) != row.same {
			t.Errorf("%s: %s and %s", name, same, got)
		}
	}
}

// What CEL cannot know: the previous target goes on, and the condition names the field.
func TestInvalidSpec(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*table)
		reason string
		words  string
	}{
		"a layer that does not decode": {func(w *table) { w.pool.Spec.Layers[0] = inline("fleet", `{`) }, ReasonInvalidSpec, "spec.layers[fleet]: inline"},
		"a relative path": {func(w *table) {
			w.pool.Spec.Layers[0] = inline("fleet", `{"authentication":{"x509":{"clientCAFile":"ca.crt"}}}`)
		}, ReasonInvalidSpec, "authentication.x509.clientCAFile is a relative path"},
		"another kind": {func(w *table) { w.pool.Spec.Layers[0] = inline("fleet", `{"kind":"Pod"}`) }, ReasonInvalidSpec, "its kind is not KubeletConfiguration"},
		"no field that any kubelet knows": {func(w *table) {
			w.pool.Spec.Layers[0] = inline("fleet", `{"kubeletConfig":{"maxPods":500}}`)
		}, ReasonInvalidSpec, "no kubelet knows any of its fields (kubeletConfig)"},
		"too large": {func(w *table) { w.pool.Spec.Layers[0] = inline("fleet", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`) }, ReasonInvalidSpec, "1 MiB"},
		"too large together": {func(w *table) {
			half := `{"clusterDomain":"` + strings.Repeat("x", 1<<19) + `"}`
			w.pool.Spec.Layers = []v1alpha1.Layer{inline("one", half), inline("two", half)}
		}, ReasonInvalidSpec, "1 MiB"},
		"two layers of one name": {func(w *table) {
			w.pool.Spec.Layers = append(w.pool.Spec.Layers, w.pool.Spec.Layers[0])
		}, ReasonInvalidSpec, "spec.layers[fleet]: two layers have this name"},
		"unset below a value":       {func(w *table) { w.pool.Spec.Layers[0].Unset = []string{"maxPods.a"} }, ReasonInvalidSpec, "unset maxPods.a"},
		"a pin that is not there":   {func(w *table) { w.pool.Spec.Rollout.Pin = pinned(9) }, ReasonInvalidSpec, "there is no revision 9"},
		"a layer that is not there": {func(w *table) { w.fromConfigMap(Layer{Missing: true}) }, ReasonLayerMissing, "kubelet-config/fleet/kubelet"},
		"a layer with a mask": {func(w *table) {
			w.fromConfigMap(ReadLayer(map[string]string{"kubelet": "staticPodURL: <masked>"}, "kubelet", "1"))
		}, ReasonInvalidSpec, "staticPodURL is masked"},
		"a layer without the key":       {func(w *table) { w.fromConfigMap(ReadLayer(nil, "kubelet", "1")) }, ReasonInvalidSpec, `it has no key "kubelet"`},
		"a layer that is not known yet": {func(w *table) { w.fromConfigMap(); w.world.Layers = nil }, ReasonRolling, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			row.change(w)
			plan, status := w.decide(w.onT("n1", nodev1.ReasonActive, nil), w.node("n2", func(n *Node) { unassign(n); fresh(n) }), w.node("n3", nil))
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			if c.Reason != row.reason || !strings.Contains(c.Message, row.words) {
				t.Errorf("%s: %s", c.Reason, c.Message)
			}
			if status.Target.Hash != w.retry.Hash || status.Nodes.Proven != 1 {
				t.Errorf("the target is %v, with %d proven", status.Target, status.Nodes.Proven)
			}
			if row.reason != ReasonRolling && slices.ContainsFunc(plan.Writes, func(one Write) bool { return one.Why == WhyAdvance }) {
				t.Errorf("what was the target before goes on: %v", plan.Writes)
			}
			if len(plan.Writes) == 0 || plan.Writes[0].Node != "n2" || plan.Writes[0].Source != w.s {
				t.Errorf("the new node gets nothing: %v", plan.Writes)
			}
		})
	}
}

func (tab *table) fromConfigMap(layers ...Layer) {
	tab.pool.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet"}}}
	tab.world.Layers = map[Ref]Layer{}
	for _, layer := range layers {
		tab.world.Layers[Ref{"fleet", "kubelet"}] = layer
	}
}

func TestUnset(t *testing.T) {
	got, err := readPatch([]byte("maxPods: 5\nevictionHard: {a: 1}\n"), []string{"evictionHard.x", "registerWithTaints", "crashLoopBackOff.maxContainerRestartPeriod"})
	want := `{"crashLoopBackOff":{"maxContainerRestartPeriod":null},"evictionHard":{"a":1,"x":null},"maxPods":5,"registerWithTaints":null}`
	if err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}

// A variant that was edited by hand is noticed by its name; a name of a layer is no content.
func TestTampered(t *testing.T) {
	w := newTable(t)
	v, err := newVariants(&w.kept[1]).object(1)
	if err != nil || sourceOf(v.Name) != w.t {
		t.Fatal(v, err)
	}
	for name, row := range map[string]struct {
		data map[string]string
		want bool
	}{
		"as it was made":     {map[string]string{"kubelet": v.Payload}, false},
		"another layer name": {map[string]string{"kubelet": strings.Replace(v.Payload, `"fleet"`, `"other"`, 1)}, false},
		"another value":      {map[string]string{"kubelet": strings.Replace(v.Payload, "250", "251", 1)}, true},
		"another base":       {map[string]string{"kubelet": strings.Replace(v.Payload, `"Local"`, `"None"`, 1)}, true},
		"another key":        {map[string]string{"kubelet": v.Payload, "b": ""}, true},
		"nothing":            {nil, true},
	} {
		if got := Tampered("workers", v.Name, row.data); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A field that flags or files of the nodes override is named, and on how many.
func TestWhatNodesOverride(t *testing.T) {
	w := newTable(t)
	w.completeT()
	over := func(n *Node) { n.Shadows = []Shadow{{"maxPods", "40-nodeadm.conf"}} }
	_, status := w.decide(w.onT("n1", nodev1.ReasonActive, over), w.onT("n2", nodev1.ReasonActive, over), w.proven("n3"))
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if c.Reason != ReasonCompleted || c.Message != "revision 2; on 2 of 3 nodes maxPods is overridden, such as by 40-nodeadm.conf" {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
}

// A field that no kubelet knows, and that kubelets ignore, is named, be the layer inline or a ConfigMap.
func TestWhatNoKubeletKnows(t *testing.T) {
	s := newScript(2, string(good), func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{inline("base", `{"maxPods":7}`), inline("fleet", `{"maxPod":7,"podsPerCore":3}`)}
	})
	s.until(s.completed, time.Hour)
	s.run(time.Minute)
	c := meta.FindStatusCondition(s.pool().Status.Conditions, v1alpha1.ConditionReady)
	if c.Reason != ReasonCompleted || c.Message != "revision 1; no kubelet knows maxPod of layer fleet" {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	if layer := ReadLayer(map[string]string{"kubelet": "maxPod: 7\npodsPerCore: 3\n"}, "kubelet", "1"); layer.Unknown != "maxPod" || layer.Fault != "" {
		t.Errorf("%+v", layer)
	}
}
