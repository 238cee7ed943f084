package rollout

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// turns decides a few times, each from what the one before has left, and gives the writes of the last.
func (tab *table) turns(n int, elapsed time.Duration, nodes ...Node) (writes []string) {
	for range n {
		tab.world.Elapsed = elapsed
		plan, status := tab.decide(nodes...)
		tab.world.Seen, tab.world.Clocks, tab.pool.Status = plan.Seen, plan.Clocks, status
		writes = nil
		for i := range plan.Writes {
			writes = append(writes, plan.Writes[i].Node+" "+string(plan.Writes[i].Why))
		}
	}
	return writes
}

// On the way back a variant that the API server refuses holds up only the members that need it, and not even those where none is Ready.
func TestARefusedVariantOfADeadNodeHoldsNoWayBack(t *testing.T) {
	newer := func(n *Node) { n.Minor = "v1.37" }
	tab := newTable(t)
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110}`), gpuLayer(`{"maxPods":61}`)}
	tab.adopt() // completed once, in cohorts that are no more
	at := slices.IndexFunc(tab.kept, func(r Revision) bool { return r.Hash == tab.retry.Hash })
	tab.pool.Status.Stable = &v1alpha1.RevisionName{Revision: tab.kept[at].Number, Hash: tab.retry.Hash}
	for i := range tab.pool.Status.Revisions {
		tab.pool.Status.Revisions[i].Result = v1alpha1.ResultCompleted
	}
	tab.pool.Status.Wave = nil
	gpu, _ := newVariants(&tab.kept[len(tab.kept)-1]).variantFor(labels.Set{"pool": "a", "gpu": "true"})
	tab.world.RefusedVariants = map[string]string{variantOf(gpu.source): "quota exceeded"}
	nodes := []Node{tab.onT("p1", nodev1.ReasonActive, newer), tab.onT("p2", nodev1.ReasonActive, newer), tab.onT("dead", nodev1.ReasonActive, func(n *Node) {
		n.Labels, n.Ready, n.Minor = map[string]string{"pool": "a", "gpu": "true"}, false, "v1.37"
	})}
	for i := range nodes {
		tab.remembers(nodes[i], func(s *Seen) { s.AsksFor, s.WasReady, s.Minor = time.Hour, true, "v1.37" })
	}
	if got := tab.turns(2, time.Minute, nodes...); len(got) != 1 || got[0] != "p2 Move" && got[0] != "p1 Move" {
		t.Errorf("written are %q: %+v", got, tab.pool.Status.Conditions)
	}
}

// A canary that was not Ready when it was assigned is dead for its old cohort, too, when it is relabelled while it waits.
func TestADeadCanaryThatIsRelabelled(t *testing.T) {
	tab := newTable(t)
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":250}`), gpuLayer(`{"maxPods":61}`)}
	tab.t, tab.retry = tab.adopt()
	tab.pool.Spec.Rollout.Waves = wavesOf("100%")
	gpu := func(n *Node) { n.Labels = map[string]string{"pool": "a", "gpu": "true"} }
	v, _ := newVariants(&tab.kept[len(tab.kept)-1]).variantFor(labels.Set{"pool": "a", "gpu": "true"})
	nodes := []Node{tab.node("canary", func(n *Node) {
		tab.has(n, v.source, tab.retry, nodev1.ReasonWouldDisrupt)
		n.Ready, n.Mark.NotReady = false, true
	}), tab.node("g1", gpu), tab.node("g2", gpu), tab.node("g3", gpu)}
	for i := range nodes {
		tab.remembers(nodes[i], func(s *Seen) { s.AsksFor, s.WasReady = time.Hour, nodes[i].Ready })
	}
	if got := tab.turns(3, time.Hour, nodes...); len(got) != 1 || got[0] == "canary Move" {
		t.Errorf("written are %q: %+v", got, tab.pool.Status.Conditions)
	}
}
