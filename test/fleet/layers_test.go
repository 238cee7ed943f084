//go:build e2e

package fleet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// layered takes the crew's layer from its ConfigMap.
func (c *crew) layered(p *v1alpha1.KubeletPool) {
	p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "layer-" + c.pool}}}
}

func (c *crew) layer(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: "layer-" + c.pool}, Data: map[string]string{"kubelet": text}}
}

// make creates an object, as its client.
func (c *crew) make(as client.Client, object client.Object) {
	c.t.Helper()
	if err := as.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) remove(as client.Client, object client.Object) {
	c.t.Helper()
	if err := as.Delete(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// editLayer patches the layer's ConfigMap.
func (c *crew) editLayer(patch string) {
	c.t.Helper()
	if err := c.f.admin.Patch(c.t.Context(), c.layer(""), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
}

// An edit of a layer in its place goes through the waves as another revision; one of its labels, its comments or its order moves nothing.
func TestALayerIsEdited(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 10, nil)
	c.make(c.f.admin, c.layer("maxPods: 250\npodPidsLimit: 4000\n"))
	c.f.steady(t)
	c.roll(quick, c.layered)
	before := c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	first := c.source()
	c.editLayer(`{"metadata":{"labels":{"team":"nodes"},"annotations":{"why":"because"}}}`)
	c.editLayer(`{"data":{"kubelet":"podPidsLimit: 4000 # enough\nmaxPods: 250\n"}}`)
	c.quiet(3 * time.Second)
	if p := c.now(); p.ResourceVersion != before.ResourceVersion || len(c.patches()) != 10 {
		t.Errorf("an edit of nothing wrote %v, and the status is %+v", c.patches()[10:], p.Status)
	}
	c.editLayer(`{"data":{"kubelet":"maxPods: 249\n"}}`)
	c.await("it is through", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Stable.Revision == 2 })
	sent := c.patches()[10:]
	second := c.source()
	if len(sent) != 10 || first == second {
		t.Errorf("sent were %v, and nodes run %s", sent, second)
	}
	c.checkWavesOf(sent, second, 0, 1, 1, 1, 5, 10)
}

// A layer that is deleted in the middle of a rollout holds it: nothing is sent, nothing is reset. Made again, it goes on where it was.
func TestALayerIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 10, nil)
	c.make(c.f.admin, c.layer("maxPods: 250\n"))
	c.f.steady(t)
	c.roll(quick, inThreeWaves, c.layered)
	c.await("wave 2 is open", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Wave != nil && p.Status.Wave.Number == 2 })
	c.remove(c.f.admin, c.layer(""))
	p := c.awaitReason(v1alpha1.ConditionReady, "LayerMissing", 10*time.Second)
	if is := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(is.Message, "layer-"+c.pool) {
		t.Errorf("it says %q", is.Message)
	}
	before := c.patches()
	if len(before) == 10 {
		t.Fatal("all had been sent before")
	}
	c.quiet(4 * time.Second)
	if sent := c.patches()[len(before):]; len(sent) > 0 {
		t.Errorf("without the layer it sent %v", sent)
	}
	c.make(c.f.admin, c.layer("maxPods: 250\n"))
	p = c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if p.Status.Stable.Revision != 1 {
		t.Errorf("its status is %+v", p.Status)
	}
	c.checkWaves(c.source(), 0, 2, 1, 5, 10)
}
