package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func (tab *table) budget(name string, change func(*v1alpha1.KubeletRolloutBudgetSpec)) {
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&b.Spec)
	tab.world.Budgets = append(tab.world.Budgets, ReadBudget(b, time.LoadLocation))
}

func inZone(zone string) func(*Node) {
	return func(n *Node) { n.Labels = map[string]string{"pool": "a", "zone": zone} }
}

func zonal(most int32) func(*table) {
	return func(w *table) { w.pool.Spec.Rollout.Topology = &v1alpha1.Topology{Key: "zone", MaxDomains: most} }
}

// tableNow is at noon.
var (
	nightly = []v1alpha1.Window{windowOf("0 22 * * *", 6*time.Hour, "")}
	atNoon  = []v1alpha1.Window{windowOf("0 12 * * *", time.Hour, "")}
)

func closed(w *table) { w.pool.Spec.Rollout.Windows = nightly }

// With disruption: Allow.
func allowed(w *table) { w.pool.Spec.Rollout.Disruption = v1alpha1.DisruptionAllow }

func (tab *table) waits(name string, change func(*Node)) Node {
	return tab.onT(name, nodev1.ReasonWouldDisrupt, func(n *Node) {
		n.Asks, n.Holds = "0123456789ab", "default/web (OutOfpods)"
		if change != nil {
			change(n)
		}
	})
}

// joined: it is new, and was given the stable revision a moment ago.
func (tab *table) joined(n *Node, zone string) {
	inZone(zone)(n)
	n.Created, n.Reason, n.Good = tableNow.Add(-5*time.Minute), nodev1.ReasonInTrial, nodev1.Local
}

// What windows, topologies and budgets let through, beyond waves and the pool's own maxUnavailable, and what the pool says when nobody is let
// through.
func TestGates(t *testing.T) {
	type spec = v1alpha1.KubeletRolloutBudgetSpec
	all := func(set ...func(*table)) func(*table) {
		return func(w *table) {
			for _, one := range set {
				one(w)
			}
		}
	}
	limited := func(change func(*spec)) func(*table) { return func(w *table) { w.budget("nights", change) } }
	frozen := limited(func(b *spec) { b.Frozen = true })
	pin := func(n int64) func(*table) { return func(w *table) { w.pool.Spec.Rollout.Pin = pinned(n) } }
	joins := func(n *Node) { unassign(n); fresh(n) }
	two := func(w *table) []Node {
		return []Node{w.proven("n0"), w.node("a1", inZone("a")), w.node("b1", inZone("b"))}
	}
	many := func(w *table) []Node {
		return append([]Node{w.proven("n0")}, w.many(4, "n1", w.old)...)
	}
	for name, row := range map[string]struct {
		set   func(*table)
		nodes func(*table) []Node
		want  string
		says  string
	}{
		"no topology":                {func(*table) {}, two, "Move a1 T, Move b1 T", ""},
		"a zone after the other":     {zonal(1), two, "Move a1 T", ""},
		"two zones at a time":        {zonal(2), two, "Move a1 T, Move b1 T", ""},
		"the zone in use":            {zonal(1), func(w *table) []Node { return append(two(w), w.onT("b2", nodev1.ReasonInTrial, inZone("b"))) }, "Move b1 T", ""},
		"a zone is no longer in use": {zonal(1), func(w *table) []Node { return append(two(w), w.onT("b2", nodev1.ReasonActive, inZone("b"))) }, "Move a1 T", ""},
		"who waits uses no zone":     {zonal(1), func(w *table) []Node { return append(two(w), w.waits("b2", inZone("b"))) }, "Move a1 T", ""},
		"no label is a zone as well": {zonal(1), func(w *table) []Node { return append(two(w), w.onT("n2", nodev1.ReasonInTrial, nil)) }, "", ""},
		"late ones, zone by zone":    {all(zonal(1), (*table).completeT), two, "Late a1 T", ""},
		"going back, all zones": {all(zonal(1), pin(1)), func(w *table) []Node {
			return []Node{w.onT("a1", nodev1.ReasonActive, inZone("a")), w.onT("b1", nodev1.ReasonActive, inZone("b"))}
		}, "Back a1 S, Back b1 S", ""},
		"a new node opens no zone": {zonal(1), func(w *table) []Node {
			return append(two(w), w.onT("a2", nodev1.ReasonInTrial, inZone("a")), w.node("b2", func(n *Node) { w.joined(n, "b") }))
		}, "Move a1 T", ""},
		"a new node closes none": {zonal(1), func(w *table) []Node {
			return append(two(w), w.node("b2", func(n *Node) { w.joined(n, "b") }))
		}, "Move a1 T", ""},
		"a new node closes none before it has passed its first trial": {zonal(1), func(w *table) []Node {
			return append(two(w), w.node("b2", func(n *Node) { w.joined(n, "b"); n.Created = tableNow.Add(-25 * time.Minute) }))
		}, "Move a1 T", ""},
		"one that was late is no new node": {all(zonal(1), (*table).completeT), func(w *table) []Node {
			late := func(n *Node) { n.Created, n.Good = tableNow.Add(-25*time.Minute), nodev1.Local }
			a1 := w.onT("a1", nodev1.ReasonInTrial, func(n *Node) { inZone("a")(n); late(n) })
			w.remembers(a1, func(s *Seen) { s.Assigned = time.Minute })
			return []Node{w.proven("n0"), a1, w.node("b1", func(n *Node) { newcomer(n); inZone("b")(n); late(n); n.Ready = true })}
		}, "", ""},
		"one that is late opens no zone": {zonal(1), func(w *table) []Node {
			return append(two(w), w.onT("a2", nodev1.ReasonInTrial, inZone("a")), w.node("b2", func(n *Node) { w.joined(n, "b"); n.Created = tableNow.Add(-time.Hour) }))
		}, "Move a1 T", ""},
		"the zone of one that is late is no zone more": {zonal(1), func(w *table) []Node {
			return append(two(w), w.node("b2", func(n *Node) { w.joined(n, "b"); n.Created = tableNow.Add(-time.Hour) }))
		}, "Move b1 T, Move b2 T", ""},
		"the zone of a drain stays open": {zonal(1), func(w *table) []Node {
			return append(two(w), w.node("b2", func(n *Node) { inZone("b")(n); n.Draining = true }),
				w.node("a2", func(n *Node) { w.joined(n, "a"); n.Created = tableNow.Add(-time.Hour) }))
		}, "Move b1 T, Move b2 T", ""},
		"late ones wait for no new node": {all(zonal(1), (*table).completeT), func(w *table) []Node {
			return append(two(w), w.onT("b2", nodev1.ReasonInTrial, func(n *Node) { fresh(n); inZone("b")(n) }))
		}, "Late a1 T", ""},
		"released at night, of a revision that nobody remembers": {all(closed, (*table).completeT), func(w *table) []Node {
			return []Node{w.proven("n0"), w.forgotten("n1", nodev1.ReasonActive, nil)}
		}, "", ""},
		"somebody else uses the zone": {zonal(1), func(w *table) []Node {
			return append(two(w), w.onT("c", nodev1.ReasonInTrial, func(n *Node) { hand(n); n.Labels["zone"] = "c" }))
		}, "", "WaitsForZone: it has nodes under way in 1 of at most 1 domains of zone"},

		"the window is open":                  {func(w *table) { w.pool.Spec.Rollout.Windows = atNoon }, two, "Move a1 T, Move b1 T", ""},
		"the window is closed":                {closed, two, "", "WindowClosed: it has no window open before 2026-11-22T22:00:00Z"},
		"late ones wait for the window":       {all(closed, (*table).completeT), two, "", ""},
		"going back does not":                 {all(closed, pin(1)), two, "Back n0 S", ""},
		"new nodes do not":                    {closed, func(w *table) []Node { return []Node{w.onT("n0", nodev1.ReasonInTrial, nil), w.node("n1", joins)} }, "Join n1 S", ""},
		"nor does what is taken back":         {closed, func(w *table) []Node { return []Node{w.onT("n1", nodev1.ReasonRefused, nil), w.silent("n2", 0)} }, "TakeBack n2 S", ""},
		"a new node that refuses S, at night": {closed, func(w *table) []Node { return []Node{w.proven("n1"), w.proven("n3"), w.old("n4"), w.refusesS("n2")} }, "", ""},

		"frozen":                      {frozen, two, "", "BudgetExhausted: KubeletRolloutBudget nights is frozen"},
		"frozen, the way back":        {all(frozen, pin(1)), two, "", "BudgetExhausted: KubeletRolloutBudget nights is frozen"},
		"frozen, a new node":          {frozen, func(w *table) []Node { return []Node{w.onT("n0", nodev1.ReasonInTrial, nil), w.node("n1", joins)} }, "Join n1 S", ""},
		"frozen, what has not begun":  {all(frozen, pin(1)), func(w *table) []Node { return []Node{w.waits("n2", nil)} }, "TakeBack n2 S", ""},
		"frozen are others":           {limited(func(b *spec) { b.Frozen = true; b.Selector.MatchLabels = map[string]string{"zone": "a"} }), two, "Move b1 T", ""},
		"at night alone":              {limited(func(b *spec) { b.Windows = nightly }), two, "", "WindowClosed: KubeletRolloutBudget nights has no window open before 2026-11-22T22:00:00Z"},
		"a zone at a time, by budget": {limited(func(b *spec) { b.Topology = &v1alpha1.Topology{Key: "zone"} }), two, "Move b1 T", ""},
		"a budget that nobody can read": {limited(func(b *spec) { b.Windows = []v1alpha1.Window{windowOf("x", time.Hour, "")} }), two, "",
			"BudgetExhausted: KubeletRolloutBudget nights cannot be read, and so it allows nothing: spec.windows[0].schedule: expected exactly 5 fields"},
		"two of all may be away": {limited(func(b *spec) { b.MaxUnavailable = amountOf("2") }), many, "Move n10 T, Move n13 T", ""},
		"one is away, of no pool": {limited(func(b *spec) { b.MaxUnavailable = amountOf("2") }), func(w *table) []Node {
			return append(many(w), w.node("else", func(n *Node) { notReady(n); n.Labels = nil }))
		}, "Move n10 T", ""},
		"one has left its pool, and has not told yet": {limited(func(b *spec) { b.MaxUnavailable = amountOf("2") }), func(w *table) []Node {
			return append(many(w), w.node("else", func(n *Node) {
				w.has(n, w.t, w.retry, nodev1.ReasonLocal)
				n.Observed = ""
				n.Labels = map[string]string{PoolLabel: "none"}
			}))
		}, "Move n10 T", ""},
		"all that may be are away": {limited(func(b *spec) { b.MaxUnavailable = amountOf("1") }), func(w *table) []Node {
			return append(many(w), w.node("else", func(n *Node) { cordoned(n); n.Labels = nil }))
		}, "", "BudgetExhausted: KubeletRolloutBudget nights has 1 of at most 1 nodes unavailable"},
		"a percentage, rounded down": {limited(func(b *spec) { b.MaxUnavailable = amountOf("50%") }), many, "Move n10 T, Move n13 T", ""},
		"none may be away":           {limited(func(b *spec) { b.MaxUnavailable = amountOf("0") }), many, "", "BudgetExhausted: KubeletRolloutBudget nights has 0 of at most 0 nodes unavailable"},
		"two may be unproven":        {limited(func(b *spec) { b.MaxUnproven = amountOf("2") }), func(w *table) []Node { return append(many(w), w.onT("t", nodev1.ReasonInTrial, nil)) }, "Move n10 T", ""},
		"one has proven it, and was started again": {limited(func(b *spec) { b.MaxUnproven = amountOf("1") }), func(w *table) []Node {
			n := w.onT("t", nodev1.ReasonActive, nil)
			w.remembers(n, func(s *Seen) { s.Running = 0 })
			return append(many(w), n)
		}, "Move n10 T", ""},
		"unproven, the way back": {all(limited(func(b *spec) { b.MaxUnproven = amountOf("0") }), pin(1)), two, "Back n0 S", ""},
		"every budget has to allow it": {all(limited(func(b *spec) { b.MaxUnavailable = amountOf("2") }), func(w *table) {
			w.budget("other", func(b *spec) { b.MaxUnavailable = amountOf("1") })
		}), many, "Move n10 T", ""},

		"pods hold the change":   {func(*table) {}, func(w *table) []Node { return []Node{w.waits("n1", nil)} }, "", ""},
		"the pool consents":      {allowed, func(w *table) []Node { return []Node{w.waits("n1", nil)} }, "Consent n1 0123456789ab+any", ""},
		"it has consented":       {allowed, func(w *table) []Node { return []Node{w.waits("n1", func(n *Node) { n.Consent = string(n.Asks) })} }, "", ""},
		"to any loss":            {allowed, func(w *table) []Node { return []Node{w.waits("n1", func(n *Node) { n.Consent = n.Asks.WithAny() })} }, "", ""},
		"it asks for none":       {allowed, func(w *table) []Node { return []Node{w.waits("n1", func(n *Node) { n.Asks = "" })} }, "", ""},
		"to something else":      {allowed, func(w *table) []Node { return []Node{w.waits("n1", func(n *Node) { n.Consent = "ba9876543210" })} }, "Consent n1 0123456789ab+any", ""},
		"not to its own files":   {allowed, func(w *table) []Node { return []Node{w.waits("n1", func(n *Node) { n.Active = n.Source })} }, "", ""},
		"not while it is paused": {all(allowed, func(w *table) { w.pool.Spec.Rollout.Paused = true }), func(w *table) []Node { return []Node{w.waits("n1", nil)} }, "", ""},
		"not in a closed window": {all(allowed, closed), func(w *table) []Node { return []Node{w.waits("n1", nil)} }, "", "WindowClosed: it has no window open before 2026-11-22T22:00:00Z"},
		"not while it is frozen": {all(allowed, frozen), func(w *table) []Node { return []Node{w.waits("n1", nil)} }, "", "BudgetExhausted: KubeletRolloutBudget nights is frozen"},
		"not after a verdict":    {allowed, func(w *table) []Node { return []Node{w.onT("n0", nodev1.ReasonRefused, nil), w.waits("n1", nil)} }, "TakeBack n1 S", ""},
		"not into a zone too many": {all(allowed, zonal(1)), func(w *table) []Node {
			return []Node{w.onT("a1", nodev1.ReasonInTrial, inZone("a")), w.waits("n1", inZone("b"))}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.pool.Status.Wave = &v1alpha1.WaveStatus{Number: 2}
			row.set(w)
			plan, status := w.decide(row.nodes(w)...)
			if got := w.written(plan); got != row.want {
				t.Errorf("it writes %q instead of %q", got, row.want)
			}
			progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			if got := progressing.Reason + ": " + progressing.Message; row.says != "" && !strings.HasPrefix(got, row.says) {
				t.Errorf("it says %q instead of %q", got, row.says)
			}
			w.again(plan, status)
		})
	}
}

// again: the same world a moment later says nothing new, and looks when a window changes.
func (tab *table) again(plan Plan, status v1alpha1.KubeletPoolStatus) {
	tab.Helper()
	tab.pool.Status, tab.world.Seen, tab.world.Clocks = status, plan.Seen, plan.Clocks
	next, _ := tab.decide(tab.world.Nodes...)
	if len(next.Status) > 0 {
		tab.Errorf("it says something else of the same world: %+v", next.Status)
	}
	if !slices.Equal(next.Writes, plan.Writes) {
		tab.Errorf("it writes %q of the same world", tab.written(next))
	}
	if slices.Equal(tab.pool.Spec.Rollout.Windows, nightly) && (next.Look == 0 || next.Look > 10*time.Hour) {
		tab.Errorf("it looks again after %v", next.Look)
	}
}

// A wave that stands still for a closed window, or for a budget, has no deadline.
func TestTimeInAClosedWindow(t *testing.T) {
	w := newTable(t)
	closed(w)
	nodes := []Node{w.proven("n1"), w.old("n2"), w.old("n3")}
	for range 5 {
		plan, status := w.decide(nodes...)
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c.Reason != ReasonWindowClosed {
			t.Fatalf("it says %s: %s", c.Reason, c.Message)
		}
		w.pool.Status, w.world.Seen, w.world.Clocks = status, plan.Seen, plan.Clocks
		w.world.Elapsed = 40 * time.Minute
	}
	w.world.Now = w.world.Now.Add(10 * time.Hour)
	plan, status := w.decide(nodes...)
	if got := w.written(plan); got != "Move n2 T, Move n3 T" {
		t.Errorf("when the window opens it writes %q", got)
	}
	if status.Wave == nil || status.Wave.Elapsed.Duration > time.Minute {
		t.Errorf("its wave is %+v", status.Wave)
	}
}

// A budget says whether it can be read, and how much of it is used. What others say there stays.
func TestTheStatusOfABudget(t *testing.T) {
	w := newTable(t)
	others := metav1.Condition{Type: "example.com/Approved", Status: metav1.ConditionTrue, Reason: "Because", LastTransitionTime: metav1.NewTime(tableNow)}
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}}
	b.Status.Conditions = []metav1.Condition{others}
	b.Spec.MaxUnavailable = amountOf("5")
	w.world.Budgets = []Budget{ReadBudget(b, time.LoadLocation)}
	nodes := []Node{w.old("n1"), w.node("n2", notReady), w.onT("n3", nodev1.ReasonInTrial, nil), w.node("n4", fresh)}
	plan, _ := w.decide(nodes...)
	status := plan.Budgets["a"]
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if status.ObservedGeneration != 3 || status.Nodes != 3 || status.Unavailable != 1 || status.Unproven != 1 || ready == nil || ready.Status != metav1.ConditionTrue ||
		ready.ObservedGeneration != 3 || status.Conditions[0] != others {
		t.Errorf("it says %+v", status)
	}

	b.Status = status
	w.world.Budgets = []Budget{ReadBudget(b, time.LoadLocation)}
	if plan, _ := w.decide(nodes...); len(plan.Budgets) != 0 {
		t.Errorf("of the same world it says %+v", plan.Budgets)
	}
	b.Spec.Windows, b.Generation = []v1alpha1.Window{windowOf("0 0 30 2 *", time.Hour, "")}, 4
	w.world.Budgets = []Budget{ReadBudget(b, time.LoadLocation)}
	plan, _ = w.decide(nodes...)
	ready = meta.FindStatusCondition(plan.Budgets["a"].Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != ReasonInvalidSpec || !strings.Contains(ready.Message, "spec.windows[0].schedule") ||
		ready.ObservedGeneration != 4 {
		t.Errorf("with a window that never comes it says %+v", ready)
	}
	w.world.Synced = false
	if plan, _ := w.decide(nodes...); len(plan.Budgets) != 0 {
		t.Errorf("not synced it says %+v", plan.Budgets)
	}
}
