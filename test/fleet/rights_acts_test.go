//go:build e2e

package fleet

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// act is a request of somebody.
type act func(*person) error

// acts are the rows.
func (r *rights) acts() map[string]act {
	all := map[string]act{}
	for _, some := range []map[string]act{r.actsOnPools(), r.actsOnBudgets(), r.actsOnNodes(), r.actsOnRevisions(), r.actsOnPods(), r.actsOnIdentities()} {
		for name, do := range some {
			all[name] = do
		}
	}
	return all
}

// merge sends a patch, of a subresource if one is named.
func (r *rights) merge(object client.Object, body string, subresource ...string) act {
	return func(who *person) error {
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		if len(subresource) > 0 {
			return who.SubResource(subresource[0]).Patch(r.t.Context(), object.DeepCopyObject().(client.Object), patch, client.DryRunAll)
		}
		return who.Patch(r.t.Context(), object.DeepCopyObject().(client.Object), patch, client.DryRunAll)
	}
}

func (r *rights) create(object client.Object) act {
	return func(who *person) error {
		return who.Create(r.t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func (r *rights) delete(object client.Object) act {
	return func(who *person) error {
		return who.Delete(r.t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func (r *rights) actsOnPools() map[string]act {
	pool := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: r.pool}}
	return map[string]act{
		"read a pool": func(who *person) error {
			return who.Get(r.t.Context(), client.ObjectKeyFromObject(pool), &v1alpha1.KubeletPool{})
		},
		"make a pool":            r.create(smallPool("rights-more")),
		"change its spec":        r.merge(pool, `{"spec":{"priority":7}}`),
		"give it a change cause": r.merge(pool, `{"metadata":{"annotations":{"kubernetes.io/change-cause":"approved"}}}`),
		"give it a finalizer":    r.merge(pool, `{"metadata":{"finalizers":["example.com/stay"]}}`),
		"label it":               r.merge(pool, `{"metadata":{"labels":{"a":"b"}}}`),
		"delete it":              r.delete(pool),
		"write its status":       r.merge(pool, `{"status":{"observedGeneration":77}}`, "status"),
	}
}

func (r *rights) actsOnNodes() map[string]act {
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node(1)}}
	into := `{"metadata":{"labels":{"` + poolLabel + `":"debug"}}}`
	return map[string]act{
		"put n1 into a pool":                 r.merge(n1, into),
		"put n1 into a pool by nodes/status": r.merge(n1, into, "status"),
		"take n1 out of its pool":            r.merge(n1, `{"metadata":{"labels":{"`+poolLabel+`":null}}}`),
		"release n1":                         r.merge(n1, `{"metadata":{"labels":{"`+rollout.PoolLabel+`":"none"}}}`),
		"hold n1":                            r.merge(n1, `{"metadata":{"labels":{"`+rollout.RolloutLabel+`":"hold"}}}`),
		"make a Node in a pool":              r.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rights-made", Labels: map[string]string{poolLabel: "debug"}}}),
		"make n1 a control plane":            r.merge(n1, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`),
		"make n1 a host of the controller":   r.merge(n1, `{"metadata":{"labels":{"kubelet-supervisor.io/controller":""}}}`),
		"forge n1's condition":               r.merge(n1, `{"status":{"conditions":[{"type":"KubeletConfigOk","status":"False","reason":"Rejected"}]}}`, "status"),
		"forge n1's verdict":                 r.merge(n1, `{"metadata":{"annotations":{"`+nodev1.StatusAnnotation+`":"{}"}}}`, "status"),
		"label n1 otherwise":                 r.merge(n1, `{"metadata":{"labels":{"example.com/rack":"7"}}}`),
		"mark n1":                            r.merge(n1, `{"metadata":{"annotations":{"`+rollout.MarkAnnotation+`":"p - 1"}}}`),
	}
}

// What is there: a rendered ConfigMap, a revision and a record, which the controller itself leaves alone because it has not made them, and a layer.
const (
	renderedName = "pool-rights-aaaaaaaaaa"
	recordName   = "pool-rights-gone"
	layerName    = "rights-layer"

	goneLabel = "kubelet-supervisor.io/gone-pool"
)

// render makes them.
func (r *rights) render(controller client.Client) {
	r.t.Helper()
	meta := metav1.ObjectMeta{Namespace: deploy.Namespace, Name: renderedName, Labels: map[string]string{rollout.PoolLabel: "rights"}}
	record := metav1.ObjectMeta{Namespace: deploy.Namespace, Name: recordName, Labels: map[string]string{goneLabel: "rights"}}
	layer := metav1.ObjectMeta{Namespace: deploy.Namespace, Name: layerName}
	for _, object := range []client.Object{&corev1.ConfigMap{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: record}, &corev1.ConfigMap{ObjectMeta: layer},
		&appsv1.ControllerRevision{ObjectMeta: meta, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}} {
		if err := controller.Create(r.t.Context(), object); err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = controller.Delete(context.Background(), object) })
	}
}

func (r *rights) actsOnRevisions() map[string]act {
	named := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: deploy.Namespace, Name: name, Labels: labels}
	}
	ofPool := map[string]string{rollout.PoolLabel: "rights"}
	rendered, layer := &corev1.ConfigMap{ObjectMeta: named(renderedName, nil)}, &corev1.ConfigMap{ObjectMeta: named(layerName, nil)}
	record, revision := &corev1.ConfigMap{ObjectMeta: named(recordName, nil)}, &appsv1.ControllerRevision{ObjectMeta: named(renderedName, nil)}
	return map[string]act{
		"give a ConfigMap that label":            r.merge(layer, `{"metadata":{"labels":{"`+rollout.PoolLabel+`":"rights"}}}`),
		"take that label from a rendered one":    r.merge(rendered, `{"metadata":{"labels":{"`+rollout.PoolLabel+`":null}}}`),
		"give a rendered one an owner":           r.merge(rendered, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gone","uid":"1"}]}}`),
		"give a layer a finalizer":               r.merge(layer, `{"metadata":{"finalizers":["example.com/stay"]}}`),
		"delete a rendered one":                  r.delete(rendered),
		"delete a revision":                      r.delete(revision),
		"make a layer `pool-rights-production`":  r.create(&corev1.ConfigMap{ObjectMeta: named("pool-rights-production", nil)}),
		"make a record that a pool is gone":      r.create(&corev1.ConfigMap{ObjectMeta: named("pool-rights-too-gone", nil)}),
		"give a ConfigMap the label of a record": r.merge(layer, `{"metadata":{"labels":{"`+goneLabel+`":"rights"}}}`),
		"take the label from a record":           r.merge(record, `{"metadata":{"labels":{"`+goneLabel+`":null}}}`),
		"delete a record":                        r.delete(record),
		"make a rendered ConfigMap":              r.create(&corev1.ConfigMap{ObjectMeta: named("pool-rights-0123456789", nil)}),
		"make a ConfigMap labelled so":           r.create(&corev1.ConfigMap{ObjectMeta: named("layer", ofPool)}),
		"make a revision":                        r.create(&appsv1.ControllerRevision{ObjectMeta: named("rights-0123456789", ofPool), Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}),
	}
}

func (r *rights) actsOnPods() map[string]act {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: r.crew.pool + "-web"}}
	return map[string]act{
		"evict a pod": func(who *person) error {
			return who.SubResource("eviction").Create(r.t.Context(), pod.DeepCopy(), &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		},
		"delete a pod": r.delete(pod),
	}
}
