//go:build e2e

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// node gets a puppet's Node.
func (c *crew) node(i int) *corev1.Node {
	c.t.Helper()
	var n corev1.Node
	if err := c.f.admin.Get(c.t.Context(), types.NamespacedName{Name: fmt.Sprintf("%s-%d", c.pool, i)}, &n); err != nil {
		c.t.Fatal(err)
	}
	return &n
}

// edit patches a puppet's Node as a person with all rights.
func (c *crew) edit(i int, patch string) {
	c.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.pool, i)}}
	if err := c.f.admin.Patch(c.t.Context(), n, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
}

// patched tells which of the first nodes the controller has patched.
func (c *crew) patched() map[int]int {
	c.t.Helper()
	times := map[int]int{}
	for _, r := range c.patches() {
		var i int
		if _, err := fmt.Sscanf(strings.TrimPrefix(r.node, c.pool+"-"), "%d", &i); err == nil && r.code == 200 {
			times[i]++
		}
	}
	return times
}

// What a person assigns, resets or holds is left alone, and so is who is cordoned.
func TestHandsOff(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 12, nil)
	c.edit(1, `{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"kubelet-config/by-hand/kubelet"}}}`)
	c.edit(2, `{"metadata":{"labels":{"kubelet-supervisor.io/rollout":"hold"}}}`)
	c.edit(3, `{"metadata":{"labels":{"kubelet-supervisor.io/pool":"none"}}}`)
	c.edit(4, `{"spec":{"unschedulable":true}}`)
	c.f.steady(t)
	three := intstr.FromInt32(3) // the one that is cordoned takes one of them
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = &three })
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if n := p.Status.Nodes; n.Manual != 1 || n.Held != 1 || n.Skipped != 1 || n.Selected != 11 || n.Proven != 8 {
		t.Errorf("it counts %+v", n)
	}
	// One that a person resets is a person's from then on.
	c.edit(5, `{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":null}}}`)
	c.await("the node is manual", 10*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Manual == 2 })
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":249}}]}}`)
	c.await("another revision is through", 60*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Stable.Revision == 2
	})
	times := c.patched()
	for i := 1; i <= 12; i++ {
		want := 2
		switch i {
		case 1, 2, 3, 4:
			want = 0
		case 5:
			want = 1
		}
		if times[i] != want {
			t.Errorf("node %d was patched %d times, not %d", i, times[i], want)
		}
	}
	// Who is let go comes late, and moves by itself.
	c.edit(2, `{"metadata":{"labels":{"kubelet-supervisor.io/rollout":null}}}`)
	c.edit(4, `{"spec":{"unschedulable":false}}`)
	c.await("they have come, too", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Proven == 9 })
}

// Paused in the middle of a wave nothing moves; undone, all go back, and nobody is restarted twice.
func TestPauseAndUndo(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 20, nil)
	c.f.steady(t)
	c.roll(quick, func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: intstr.FromString("50%"), Soak: &metav1.Duration{Duration: 5 * time.Second}},
			{Nodes: intstr.FromString("100%")}}
	})
	c.await("wave 2 is open", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Wave != nil && p.Status.Wave.Number == 2 && p.Status.Nodes.Proven > 2
	})
	c.change(`{"spec":{"rollout":{"paused":true}}}`)
	c.awaitReason(v1alpha1.ConditionProgressing, "Paused", 10*time.Second)
	before := len(c.patches())
	c.quiet(8 * time.Second)
	if now := len(c.patches()); now != before {
		t.Errorf("paused it sent %d", now-before)
	}
	c.change(`{"spec":{"rollout":{"paused":false,"pin":{"local":true}}}}`)
	c.await("all have gone back", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Target.Local && p.Status.Nodes.Proven == 20 && p.Status.Nodes.Unavailable == 0
	})
	c.change(`{"spec":{"rollout":{"pin":null}}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	c.change(`{"spec":{"rollout":{"pin":{"local":true}}}}`)
	c.await("all have gone back once more", 60*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Stable.Local && p.Status.Target.Local && p.Status.Nodes.Proven == 20
	})
}
