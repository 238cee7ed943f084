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

func (tab *table) refusesVariant(source string) {
	tab.world.RefusedVariants = map[string]string{variantOf(source): quotaWords}
}

// layered gives the nodes of the label gpu a variant of their own, in a third revision.
func (tab *table) twoVariants() {
	tab.pool.Spec.Layers = append(tab.pool.Spec.Layers, gpuLayer(`{"maxPods":60}`))
	tab.t, tab.retry = tab.adopt()
}

func (tab *table) gpu(name string) Node {
	return tab.node(name, func(n *Node) { n.Labels = map[string]string{"pool": "a", "gpu": "true"} })
}

// gpuVariant is that of the target.
func (tab *table) gpuVariant() string {
	v, _ := newVariants(&tab.kept[len(tab.kept)-1]).variantFor(map[string]string{"gpu": "true"})
	return v.source
}

// newcomer was never assigned anything.
func newcomer(n *Node) {
	fresh(n)
	n.Source, n.Mark, n.Retry, n.Observed, n.RetryHeard, n.Active, n.Good, n.Reason = "", Mark{}, Retry{}, "", Retry{}, nodev1.Local, nodev1.Local, nodev1.ReasonLocal
}

// What the API server refuses holds up the way ahead, and nothing else.
func TestARefusedVariant(t *testing.T) {
	const quota = quotaWords
	for name, row := range map[string]struct {
		before func(*table)
		nodes  func(*table) []Node
		want   string
		says   string // by Progressing
	}{
		"nobody is moved": {func(w *table) { w.refusesVariant(w.t) }, func(w *table) []Node { return []Node{w.old("n1"), w.old("n2")} }, "", quota},
		"nobody is moved, although only some need it": {func(w *table) { w.twoVariants(); w.refusesVariant(w.gpuVariant()) },
			func(w *table) []Node { return []Node{w.old("n1"), w.gpu("n2")} }, "", quota},
		"a variant that nobody needs holds nothing": {func(w *table) { w.refusesVariant(w.s) },
			func(w *table) []Node { return []Node{w.old("n1")} }, "Move n1 T", "wave 1"},
		"nobody is drained": {func(w *table) { drains(w); w.refusesVariant(w.t) },
			func(w *table) []Node { return []Node{w.old("n1"), w.waits("n2", nil)} }, "", quota},
		"a verdict stops, and what has not begun is taken back": {func(w *table) { w.refusesVariant(w.t) },
			func(w *table) []Node {
				return []Node{w.old("n1"), w.onT("n2", nodev1.ReasonRejected, nil), w.silent("n3", 0)}
			}, "TakeBack n3 S", "n2 Rejected"},
		"what a node runs is taken back to, also where it is not there": {func(w *table) { w.refusesVariant(w.s) },
			func(w *table) []Node { return []Node{w.onT("n2", nodev1.ReasonRejected, nil), w.waits("n3", nil)} }, "TakeBack n3 S", "n2 Rejected"},
		"new nodes join": {func(w *table) { w.refusesVariant(w.t) },
			func(w *table) []Node { return []Node{w.old("n1"), w.node("n2", newcomer)} }, "Join n2 S", quota},
		"new nodes wait for what they join with, and the others are moved": {func(w *table) { w.refusesVariant(w.s) },
			func(w *table) []Node { return []Node{w.old("n1"), w.node("n2", newcomer)} }, "Move n1 T", quota},
		"who can goes back": {func(w *table) {
			w.pool.Spec.Layers = append([]v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)}, gpuLayer(`{"maxPods":60}`))
			w.s, w.oldRetry = w.adopt()
			w.pool.Status.Stable = &v1alpha1.RevisionName{Revision: 3, Hash: w.oldRetry.Hash}
			w.completedT()
			w.refusesVariant(w.gpuVariant())
		}, func(w *table) []Node {
			return []Node{w.onT("n1", nodev1.ReasonInTrial, nil), w.onT("n2", nodev1.ReasonInTrial, func(n *Node) { n.Labels = map[string]string{"pool": "a", "gpu": "true"} })}
		}, "Back n1 S", quota},
		"who needs it for another attempt": {func(w *table) {
			w.pool.Status.Stops = []v1alpha1.Stop{{Hash: w.retry.Hash, Revision: 2, Attempt: 1, Node: "n1", Reason: nodev1.ReasonRejected}}
			w.pool.Spec.Rollout.Retry = "again"
			w.refusesVariant(w.t)
		}, func(w *table) []Node { return []Node{w.onT("n1", nodev1.ReasonRejected, nil)} }, "", quota},
		"who waits for its pods needs it no more": {func(w *table) { drains(w); w.refusesVariant(w.t) },
			func(w *table) []Node { return []Node{w.waits("n2", nil), w.proven("n1")} }, "Drain n2 workers T", ""},
		"a paused pool says that it is paused": {func(w *table) { w.pool.Spec.Rollout.Paused = true; w.refusesVariant(w.t) },
			func(w *table) []Node { return []Node{w.old("n1")} }, "", "spec.rollout.paused"},
		"who needs it is away, and holds up nobody": {func(w *table) { w.twoVariants(); w.refusesVariant(w.gpuVariant()) },
			func(w *table) []Node {
				away := w.gpu("n2")
				away.Ready = false
				return []Node{w.old("n1"), away}
			}, "Move n1 T", "wave 1"},
		"a new node that refuses S, and T's variant is refused": {func(w *table) {
			w.twoVariants()
			w.pool.Status.Wave = &v1alpha1.WaveStatus{Number: 2}
			w.refusesVariant(w.gpuVariant())
		}, func(w *table) []Node {
			joins := w.refusesS("n2")
			joins.Labels = map[string]string{"pool": "a", "gpu": "true"}
			return []Node{w.proven("n1"), w.proven("n3"), joins}
		}, "", quota},
		"who goes back consents": {func(w *table) {
			allowed(w)
			w.pool.Spec.Layers = append([]v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)}, gpuLayer(`{"maxPods":60}`))
			w.s, w.oldRetry = w.adopt()
			w.completedT()
			w.refusesVariant(w.gpuVariant())
		}, func(w *table) []Node {
			asks := w.waits("n1", nil)
			w.has(&asks, w.s, w.oldRetry, nodev1.ReasonWouldDisrupt)
			asks.Active, asks.Good = w.t, w.t
			return []Node{asks, w.onT("n2", nodev1.ReasonInTrial, func(n *Node) { n.Labels = map[string]string{"pool": "a", "gpu": "true"} })}
		}, "Consent n1 0123456789ab+any", quota},
		"one that is completed says so, and that it waits": {func(w *table) { w.completeT(); w.refusesVariant(w.t) },
			func(w *table) []Node { return []Node{w.proven("n1"), w.old("n2")} }, "", quota},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			row.before(w)
			plan, status := w.decide(row.nodes(w)...)
			if got := w.written(plan); got != row.want {
				t.Errorf("it writes %q, not %q", got, row.want)
			}
			for _, write := range plan.Writes {
				if w.world.RefusedVariants[variantOf(write.Source)] != "" && !strings.HasPrefix(row.want, "TakeBack") {
					t.Errorf("%s gets what is not there", write.Node)
				}
			}
			if needed := len(plan.Variants) > len(plan.Writes); needed != (row.says == quota) && row.want == "" {
				t.Errorf("it asks for %d variants", len(plan.Variants))
			}
			held := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			if !strings.Contains(held.Message, row.says) || row.says == quota && (held.Reason != ReasonHeld || !plan.Clocks["workers"].Barred && plan.Clocks["workers"].Wave > 0 && row.want == "") {
				t.Errorf("it says %s: %q, not %q; clock %+v", held.Reason, held.Message, row.says, plan.Clocks["workers"])
			}
		})
	}
}

// A revision that the API server refuses is no target yet; the pool says what it waits for, and is not Ready.
func TestARefusedRevision(t *testing.T) {
	w := newTable(t)
	w.completeT()
	w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":300}`)}
	w.pool.Generation++
	plan, _ := w.decide(w.proven("n1"))
	if len(plan.Revisions) != 1 {
		t.Fatalf("revisions: %v", plan.Revisions)
	}
	w.world.RefusedRevisions = map[string]string{plan.Revisions[0].ObjectName(): quotaWords}
	before := w.pool.Status.Target
	plan, status := w.decide(w.proven("n1"), w.old("n2"))
	if len(plan.Writes) > 0 || len(plan.Revisions) != 1 || *status.Target != *before || status.ObservedGeneration != w.pool.Generation {
		t.Errorf("it writes %s, %d revisions, target %v, observed %d", w.written(plan), len(plan.Revisions), status.Target, status.ObservedGeneration)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c.Reason != ReasonHeld || c.Message != quotaWords {
		t.Errorf("it says %s: %s", c.Reason, c.Message)
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Error("it says that it is Ready with what the spec does not say")
	}
}

// forgetsT: somebody has deleted the target's ControllerRevision, and the API server does not take it again.
func (tab *table) forgetsT() {
	last := len(tab.kept) - 1
	tab.world.RefusedRevisions = map[string]string{tab.kept[last].ObjectName(): quotaWords}
	tab.kept = tab.kept[:last]
}

// The revision that is rolled out is known, also where what keeps it is gone and is refused: verdicts count, and waves do not fall.
func TestTheRevisionOfTheTargetIsRefused(t *testing.T) {
	begins := func() *table {
		w := newTable(t)
		w.pool.Status.Wave = &v1alpha1.WaveStatus{Number: 2}
		w.forgetsT()
		return w
	}
	w := begins()
	plan, status := w.decide(w.old("n1"), w.onT("n2", nodev1.ReasonRejected, nil), w.silent("n3", 0))
	if got := w.written(plan); got != "TakeBack n3 S" || len(status.Stops) != 1 || len(plan.Revisions) != 1 {
		t.Errorf("after a verdict it writes %q, stops %v, %d revisions", got, status.Stops, len(plan.Revisions))
	}
	w = begins()
	plan, status = w.decide(w.old("n1"), w.onT("n2", nodev1.ReasonInTrial, nil))
	held := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	if len(plan.Writes) > 0 || status.Wave == nil || status.Wave.Number != 2 || held.Reason != ReasonHeld || held.Message != quotaWords {
		t.Errorf("it writes %q, wave %+v, %s: %s", w.written(plan), status.Wave, held.Reason, held.Message)
	}
	w = newTable(t)
	w.completeT()
	w.forgetsT()
	plan, status = w.decide(w.proven("n1"), w.node("n2", newcomer))
	if got := w.written(plan); got != "Join n2 T" || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("with T completed it writes %q, %+v", got, status.Conditions[0])
	}
}

// Who is on the way back goes on, although the spec asks for another revision by now, which is refused.
func TestTheWayBackWhileARevisionIsRefused(t *testing.T) {
	w := newTable(t)
	w.pool.Spec.Rollout.Pin = pinned(1)
	nodes := []Node{w.onT("n1", nodev1.ReasonInTrial, nil), w.onT("n2", nodev1.ReasonInTrial, notReady)}
	_, w.pool.Status = w.decide(nodes...)
	w.pool.Spec.Rollout.Pin = nil
	w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":300}`)}
	plan, _ := w.decide(nodes...)
	w.world.RefusedRevisions = map[string]string{plan.Revisions[0].ObjectName(): quotaWords}
	if plan, _ = w.decide(nodes...); w.written(plan) != "Back n1 S, Back n2 S" {
		t.Errorf("it writes %q", w.written(plan))
	}
}

// A pool without a target says why it has none, and keeps no pods from new nodes.
func TestWithoutATarget(t *testing.T) {
	layer := []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet", Key: "kubelet"}}}
	for name, before := range map[string]func(w *table){
		"a layer is not there": func(w *table) {
			w.pool.Spec.Layers = layer
			w.world.Layers = map[Ref]Layer{{Name: "fleet", Key: "kubelet"}: {Missing: true}}
		},
		"a layer is not known": func(w *table) { w.pool.Spec.Layers = layer },
		"the spec is invalid":  func(w *table) { w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"staticPodPath":"relative"}`)} },
		"the revision is refused": func(w *table) {
			w.kept = nil
			plan, _ := w.decide(w.old("n1"))
			w.world.RefusedRevisions = map[string]string{plan.Revisions[0].ObjectName(): quotaWords}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.pool.Status, w.pool.Spec.JoinTaint = v1alpha1.KubeletPoolStatus{}, "join"
			before(w)
			plan, status := w.decide(w.node("n2", func(n *Node) { newcomer(n); n.Taints = []string{"join"} }))
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c.Reason != ReasonHeld || c.Message == "" {
				t.Errorf("it says %s: %q", c.Reason, c.Message)
			}
			if got := w.written(plan); got != "Join n2 -join" {
				t.Errorf("it writes %q", got)
			}
		})
	}
}

// The cure of what was stopped is refused: the pool says that, and not the stop again.
func TestTheCureIsRefused(t *testing.T) {
	w := newTable(t)
	w.pool.Status.Stops = []v1alpha1.Stop{{Hash: w.retry.Hash, Revision: 2, Attempt: 1, Node: "n1", Reason: nodev1.ReasonRejected}}
	w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":300}`)}
	plan, _ := w.decide(w.old("n1"))
	w.world.RefusedRevisions = map[string]string{plan.Revisions[0].ObjectName(): quotaWords}
	_, status := w.decide(w.old("n1"))
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c.Message != quotaWords || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("it says %+v", status.Conditions)
	}
}

// A clock that stands is not waited for.
func TestAClockThatStands(t *testing.T) {
	for name, stands := range map[string]func(w *table){
		"paused":  func(w *table) { w.pool.Spec.Rollout.Paused = true },
		"refused": func(w *table) { w.refusesVariant(w.t) },
		"closed":  closed,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.world.Clocks = map[string]Clock{"workers": {Retry: w.retry, Wave: 1, Elapsed: persist - time.Millisecond, Barred: true}}
			stands(w)
			if plan, _ := w.decide(w.old("n1")); plan.Look > 0 && plan.Look < time.Second {
				t.Errorf("it looks again after %v", plan.Look)
			}
		})
	}
}

// A layer that is not known yet is not observed: who waits for Ready waits on.
func TestALayerThatIsNotKnownIsNotObserved(t *testing.T) {
	w := newTable(t)
	w.completeT()
	w.pool.Generation++
	w.pool.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet", Key: "kubelet"}}}
	_, status := w.decide(w.proven("n1"))
	for _, c := range status.Conditions {
		if status.ObservedGeneration == w.pool.Generation || c.ObservedGeneration == w.pool.Generation {
			t.Errorf("%s of generation %d, the status %d", c.Type, c.ObservedGeneration, status.ObservedGeneration)
		}
	}
}

// A ConfigMap that nodes have, and that cannot be made anew, is told.
func TestARefusedRepairIsTold(t *testing.T) {
	w := newTable(t)
	w.refusesVariant(w.s)
	w.world.Broken = []Broken{{Name: variantOf(w.s)}}
	_, status := w.decide(w.old("n1"))
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); c.Reason != ReasonRevisionTampered || !strings.Contains(c.Message, quotaWords) {
		t.Errorf("it says %s: %s", c.Reason, c.Message)
	}
}

// A pool that waits for the API server takes no room from another: of a budget, of the control planes, or of a plan.
func TestARefusedPoolTakesNoRoom(t *testing.T) {
	for name, waits := range map[string]func(w *table){
		"its variant": func(w *table) { w.refusesVariant(w.t) },
		"its status":  func(w *table) { w.world.Mute = map[string]bool{"workers": true} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			waits(w)
			w.budget("all", func(b *v1alpha1.KubeletRolloutBudgetSpec) { b.MaxUnavailable = amountOf("1") })
			plane := func(n *Node) { n.ControlPlane = true }
			nodes := []Node{w.node("o1", func(n *Node) {
				newcomer(n)
				n.Ready, n.Created = true, tableNow.Add(-24*time.Hour)
				n.Labels, n.ControlPlane = map[string]string{"pool": "b"}, true
			})}
			for i := range 2 * rate {
				nodes = append(nodes, w.node(string(rune('a'+i)), plane))
			}
			w.decide(nodes...)
			other := newPool("zother", func(p *v1alpha1.KubeletPool) {
				p.Spec.Selector.MatchLabels = map[string]string{"pool": "b"}
				p.Spec.Rollout.Settle = durationOf(0)
			})
			w.world.Pools = append(w.world.Pools, ReadPool(other, nil, time.LoadLocation))
			plan := Decide(w.world)
			if got := w.written(plan); !strings.HasPrefix(got, "Move o1 ") || len(plan.Writes) != 1 {
				t.Errorf("it writes %q", got)
			}
		})
	}
}

// A pool whose status cannot be written does nothing, but that cordons of ours are lifted.
func TestAMutePool(t *testing.T) {
	w := newTable(t)
	drains(w)
	w.world.Mute = map[string]bool{"workers": true}
	proven := w.onT("n1", nodev1.ReasonActive, func(n *Node) { n.Draining, n.Drain = true, Drain{Pool: "workers", Hash: w.retry.Hash} })
	plan, _ := w.decide(proven, w.old("n2"), w.silent("n4", 0), w.drained("n5", nil))
	if got := w.written(plan); strings.Contains(got, ",") || !strings.HasPrefix(got, "Undrain n1") || len(plan.Drains) > 0 {
		t.Errorf("it writes %q, and drains %v", got, plan.Drains)
	}
}

// A pool that was made anew does not change what nodes run.
func TestAPoolMadeAnewTakesNothingBackToLocal(t *testing.T) {
	w := newTable(t)
	nodes := []Node{w.waits("n1", nil), w.waits("n2", nil), w.onT("n3", nodev1.ReasonActive, nil)}
	w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":300}`)}
	w.pool.Status = v1alpha1.KubeletPoolStatus{}
	for range 3 {
		plan, status := w.decide(nodes...)
		if i := slices.IndexFunc(plan.Writes, func(write Write) bool { return write.Source == nodev1.Local }); i >= 0 {
			t.Errorf("%s runs %s, and gets local", plan.Writes[i].Node, w.s)
		}
		w.pool.Status = status
	}
}
