//go:build e2e

package fleet

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// canaryAndAll is a canary, and all others after it; so many may be unavailable at once, and settle for so long.
func canaryAndAll(maxUnavailable int32, settle time.Duration) func(*v1alpha1.KubeletPool) {
	return func(p *v1alpha1.KubeletPool) {
		most := intstr.FromInt32(maxUnavailable)
		p.Spec.Rollout.MaxUnavailable, p.Spec.Rollout.Settle = &most, &metav1.Duration{Duration: settle}
		p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: intstr.FromString("100%")}}
	}
}

// Nodes that are NotReady or cordoned for other reasons count, each once, and are not moved: of four three are used up, so one moves at a time.
func TestOthersAreAway(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 12, nil)
	for i := range 2 {
		c.puppets[c.node(i+1).Name].ready(t.Context(), false)
		c.edit(i+2, `{"spec":{"unschedulable":true}}`)
	}
	c.f.steady(t)
	c.roll(canaryAndAll(4, time.Second))
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if n := p.Status.Nodes; n.Unavailable != 3 || n.Skipped != 2 || n.Late != 1 || n.Proven != 9 {
		t.Errorf("it counts %+v", n)
	}
	sent := c.assigned()
	if len(sent) != 9 {
		t.Errorf("patched were %v", sent)
	}
	c.checkUnavailable(sent, c.source(), time.Second, 1)
	for i := range 3 {
		if got := c.patched()[i+1]; got > 0 {
			t.Errorf("node %d was patched", i+1)
		}
	}
}

// Undone in the middle, a node that is away costs nothing: it goes back at once though the budget is used up, by it alone. The others go back
// meanwhile, one at a time: one may always.
func TestUndoWithANodeAway(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 8, nil)
	c.f.steady(t)
	c.roll(canaryAndAll(1, time.Second))
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	first := c.source()
	var trials atomic.Int64
	c.nature = func(_, payload string) string {
		if strings.Contains(payload, "249") && trials.Add(1) == 3 {
			return "NotReady"
		}
		return ""
	}
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":249}}]}}`)
	c.awaitReason(v1alpha1.ConditionProgressing, "Held", 60*time.Second)
	moved := c.patches()[8:]
	if len(moved) != 3 {
		t.Fatalf("moved were %v", moved)
	}
	away := c.puppets[moved[2].node]
	c.change(`{"spec":{"rollout":{"pin":{"revision":1}}}}`)
	c.awaitPatches(14, 30*time.Second)
	away.ready(t.Context(), true)
	if p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 30*time.Second); p.Status.Target.Revision != 1 {
		t.Errorf("its target is %+v", p.Status.Target)
	}
	c.checkBack(c.patches()[11:], 3, first, nodev1.ReasonActive, time.Second, 2) // that one, and another
}

// Undone in the middle of a wave, the nodes that were moved go back within the budget, and no other one is touched. It is over when the last of
// them has told that it is back.
func TestUndoInTheMiddle(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 20, nil)
	c.trial = 2 * time.Second
	c.f.steady(t)
	c.roll(canaryAndAll(3, time.Second))
	c.await("wave 2 is open", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Wave != nil && p.Status.Wave.Number == 2 && p.Status.Nodes.OnTrial > 2
	})
	c.change(`{"spec":{"rollout":{"pin":{"local":true}}}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	var moved []string
	all := c.patches()
	i := slices.IndexFunc(all, func(r request) bool {
		again := slices.Contains(moved, r.node)
		moved = append(moved, r.node)
		return again
	})
	if i < 4 || i > 15 {
		t.Fatalf("%d were moved before it was undone", i)
	}
	c.checkBack(all[i:], i, nodev1.Local, nodev1.ReasonLocal, time.Second, 3)
}

// checkBack: so many went back, each by one PATCH and within the budget, and have told so by now.
func (c *crew) checkBack(sent []request, count int, source, reason string, settle time.Duration, limit int) {
	c.t.Helper()
	own, now := c.requests(true), time.Now()
	if len(sent) != count {
		c.t.Errorf("%d went back: %v", len(sent), sent)
	}
	until, seen := map[string]time.Time{}, map[string]bool{}
	for _, r := range sent {
		if seen[r.node] {
			c.t.Errorf("%s was patched twice", r.node)
		}
		seen[r.node] = true
		done := c.toldAgain(own, r, reason, source).at
		if done.IsZero() || done.After(now) {
			c.t.Errorf("%s has not gone back when it is over", r.node)
		}
		if until[r.node] = done; reason == nodev1.ReasonActive { // on trial again, where it has proven something else since
			until[r.node] = cmp.Or(c.toldAgain(own, r, nodev1.ReasonInTrial, source).at, done)
		}
	}
	c.checkLimit(sent, until, settle, limit)
}
