//go:build e2e

package fleet

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// Of two pools the one with the higher priority owns a node; at a tie none does, both say so, and nothing is written.
func TestTwoPools(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 4, nil)
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Paused = true })
	other := smallPool(c.pool + "-other")
	other.Spec.Selector.MatchLabels[poolLabel] = c.pool
	if err := c.f.admin.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	c.f.steady(t)
	both := []*crew{c, {t: t, f: c.f, pool: other.Name}}
	c.change(`{"spec":{"rollout":{"paused":false}}}`)
	for _, each := range both {
		p := each.awaitReason(v1alpha1.ConditionReady, "Conflict", 20*time.Second)
		if is := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); p.Status.Nodes.Conflict != 4 ||
			!strings.Contains(is.Message, c.pool+", "+other.Name) {
			t.Errorf("%s counts %+v, and says %q", p.Name, p.Status.Nodes, is.Message)
		}
	}
	c.quiet(2 * time.Second)
	if sent := c.patches(); len(sent) > 0 {
		t.Errorf("at a tie it patched %v", sent)
	}
	c.change(`{"spec":{"priority":1}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if got := c.assigned(); len(got) != 4 {
		t.Errorf("patched were %v", got)
	}
	c.checkMarks(1, 4, c.pool)
	if p := both[1].awaitReason(v1alpha1.ConditionReady, "Completed", 10*time.Second); p.Status.Nodes.Selected != 0 {
		t.Errorf("the lower one counts %+v", p.Status.Nodes)
	}
}

// checkMarks: these nodes are marked by the pool.
func (c *crew) checkMarks(from, to int, pool string) {
	c.t.Helper()
	for i := from; i <= to; i++ {
		if mark := rollout.ParseMark(c.node(i).Annotations[rollout.MarkAnnotation]); mark.Pool != pool {
			c.t.Errorf("node %d is marked by %q", i, mark.Pool)
		}
	}
}

// Labels move three nodes from one pool to another at once. The new owner moves them by its own budget, one at a time, and the pool that they
// left sends nothing, and stays completed. The new one is completed again when they are its own.
func TestALabelMovesNodes(t *testing.T) {
	t.Parallel()
	from, to := newCrew(t, "moves-from", 5, nil), newCrew(t, "moves-to", 4, nil)
	from.f.steady(t)
	from.roll(quick)
	to.roll(canaryAndAll(1, time.Second), func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":249}`) })
	for _, c := range []*crew{from, to} {
		c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	}
	source := to.source()
	for i := range 3 {
		from.edit(i+1, `{"metadata":{"labels":{"`+poolLabel+`":"moves-to"}}}`)
	}
	to.await("they are its own", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Proven == 7 })
	to.awaitReason(v1alpha1.ConditionReady, "Completed", 10*time.Second)
	if p := from.awaitReason(v1alpha1.ConditionReady, "Completed", time.Second); p.Status.Nodes.Selected != 2 {
		t.Errorf("the old owner counts %+v", p.Status.Nodes)
	}
	from.checkMarks(1, 3, "moves-to")
	from.checkMarks(4, 5, "moves-from")
	moves := from.patches()[5:]
	if len(moves) != 3 {
		t.Errorf("sent were %v", moves)
	}
	from.checkUnavailable(moves, source, time.Second, 1)
}
