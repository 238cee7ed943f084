package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func drains(w *table) { w.pool.Spec.Rollout.Disruption = v1alpha1.DisruptionDrain }

// drained is a node that waits for its pods, and that the pool drains.
func (tab *table) drained(name string, change func(*Node)) Node {
	return tab.waits(name, func(n *Node) {
		n.Draining, n.Drain = true, Drain{Pool: "workers", Hash: tab.retry.Hash}
		if change != nil {
			change(n)
		}
	})
}

// longDrained is one that this process has seen so for so long.
func (tab *table) longDrained(name string, drained, emptied time.Duration, found Drained) Node {
	n := tab.drained(name, nil)
	tab.remembers(n, func(s *Seen) { s.Drain, s.Drained, s.Emptied = n.Drain, drained, emptied })
	if found != (Drained{}) {
		found.Drain = n.Drain
		tab.world.Drains = map[types.UID]Drained{n.UID: found}
	}
	return n
}

// over is a node that was drained in vain for a revision.
func over(hash, words string) func(*Node) {
	return func(n *Node) { n.Drain = Drain{"workers", hash, words} }
}

// Who is drained, whose pods are evicted, and when a cordon is lifted.
func TestDrains(t *testing.T) {
	all := func(set ...func(*table)) func(*table) {
		return func(w *table) {
			for _, one := range set {
				one(w)
			}
		}
	}
	limited := func(change func(*v1alpha1.KubeletRolloutBudgetSpec)) func(*table) {
		return func(w *table) { w.budget("nights", change) }
	}
	one := func(make func(w *table) Node) func(*table) []Node {
		return func(w *table) []Node { return []Node{make(w)} }
	}
	waits := func(change func(*Node)) func(*table) []Node {
		return one(func(w *table) Node { return w.waits("n1", change) })
	}
	drained := func(change func(*Node)) func(*table) []Node {
		return one(func(w *table) Node { return w.drained("n1", change) })
	}
	lasting := func(drained, emptied time.Duration, found Drained) func(*table) []Node {
		return one(func(w *table) Node { return w.longDrained("n1", drained, emptied, found) })
	}
	paused := func(w *table) { w.pool.Spec.Rollout.Paused = true }
	atMost := func(n string) func(*table) {
		return func(w *table) { w.pool.Spec.Rollout.MaxUnavailable = amountOf(n) }
	}
	begins, goesOn, lifts := "Drain n1 workers T", "evicts n1", "Undrain n1 -cordon"
	for name, row := range map[string]struct {
		set   func(*table)
		nodes func(*table) []Node
		want  string
		says  string
	}{
		"never, by default":                    {func(*table) {}, waits(nil), "", "WaitsForPods: 1 nodes wait for their pods to end: n1 (default/web (OutOfpods))"},
		"when it holds":                        {drains, waits(nil), begins, ""},
		"with consent none waits":              {all(drains, allowed), waits(nil), "Consent n1 0123456789ab+any", ""},
		"not its own files":                    {drains, waits(func(n *Node) { n.Active = n.Source }), "", ""},
		"not while it is away":                 {drains, waits(notReady), "", ""},
		"not whom somebody has cordoned":       {drains, waits(cordoned), "", ""},
		"not who is held":                      {drains, waits(hand), "", ""},
		"not while it is paused":               {all(drains, paused), waits(nil), "", ""},
		"not in a closed window":               {all(drains, closed), waits(nil), "", "WindowClosed: it has no window open before 2026-11-22T22:00:00Z"},
		"not in a frozen pool":                 {all(drains, atMost("0")), waits(nil), "", ""},
		"not while it is frozen":               {all(drains, limited(func(b *v1alpha1.KubeletRolloutBudgetSpec) { b.Frozen = true })), waits(nil), "", "BudgetExhausted: KubeletRolloutBudget nights is frozen"},
		"not again":                            {drains, func(w *table) []Node { return []Node{w.waits("n1", over(w.retry.Hash, "timed out"))} }, "", "WaitsForPods: 1 nodes wait for their pods to end: n1 (default/web (OutOfpods)); 1 were drained without effect, such as n1: timed out"},
		"again for another revision":           {drains, func(w *table) []Node { return []Node{w.waits("n1", over(w.oldRetry.Hash, "timed out"))} }, begins, ""},
		"one of two that wait, as the canary":  {func(w *table) { drains(w); w.pool.Status.Wave = nil }, func(w *table) []Node { return []Node{w.waits("n1", nil), w.waits("n2", nil)} }, "Drain n2 workers T", ""},
		"none while another one is the canary": {func(w *table) { drains(w); w.pool.Status.Wave = nil }, func(w *table) []Node { return []Node{w.drained("n1", nil), w.waits("n2", nil)} }, goesOn, ""},
		"both once one has proven it":          {drains, func(w *table) []Node { return []Node{w.waits("n1", nil), w.waits("n2", nil), w.proven("n0")} }, "Drain n1 workers T, Drain n2 workers T", ""},
		"none more than may be unavailable":    {all(drains, atMost("1")), func(w *table) []Node { return []Node{w.waits("n1", nil), w.proven("n0"), w.node("n2", notReady)} }, "", "BudgetExhausted: 2 of at most 1 members are unavailable: n1 (default/web (OutOfpods)), n2 (NotReady)"},
		"none more than a budget allows":       {all(drains, limited(func(b *v1alpha1.KubeletRolloutBudgetSpec) { b.MaxUnavailable = amountOf("1") })), func(w *table) []Node { return []Node{w.waits("n1", nil), w.proven("n0"), w.node("n2", notReady)} }, "", "BudgetExhausted: KubeletRolloutBudget nights has 2 of at most 1 nodes unavailable"},
		"a late one":                           {all(drains, (*table).completeT), waits(nil), begins, ""},
		"its zone is in use": {all(drains, zonal(1)), func(w *table) []Node {
			return []Node{w.proven("n0"), w.drained("n1", inZone("a")), w.node("n2", inZone("b"))}
		}, goesOn, ""},
		"it takes no slot twice":          {all(drains, atMost("2")), func(w *table) []Node { return []Node{w.proven("n0"), w.drained("n1", nil), w.old("n2"), w.old("n3")} }, "Move n2 T, evicts n1", ""},
		"it goes on":                      {drains, drained(nil), goesOn, "WaitsForPods: 1 nodes wait for their pods to end: n1 (cordoned); 1 of them are being drained"},
		"it goes on in a closed window":   {all(drains, closed), drained(nil), goesOn, ""},
		"it rests while more are away":    {all(drains, atMost("1")), func(w *table) []Node { return []Node{w.drained("n1", nil), w.proven("n0"), w.node("n2", notReady)} }, "", ""},
		"it rests in doubt":               {drains, func(w *table) []Node { return []Node{w.drained("n1", nil), w.onT("n0", nodev1.ReasonRolledBack, nil)} }, "", ""},
		"a budget freezes it":             {all(drains, limited(func(b *v1alpha1.KubeletRolloutBudgetSpec) { b.Frozen = true })), drained(nil), lifts, ""},
		"the pool is frozen":              {all(drains, atMost("0")), drained(nil), lifts, ""},
		"it rests while the node is away": {drains, drained(notReady), "", ""},
		"it has rested all the time":      {drains, lasting(10*time.Minute, 0, Drained{}), lifts, ""},
		"it rests while others update it": {drains, drained(func(n *Node) { n.Updating = true }), "", ""},
		"it applies, and stays cordoned":  {drains, drained(func(n *Node) { n.Reason = nodev1.ReasonApplying }), "", ""},
		"it runs":                         {drains, drained(func(n *Node) { n.Reason, n.Active = nodev1.ReasonInTrial, n.Source }), lifts, ""},
		"it runs, and what keeps the target is gone": {func(w *table) {
			drains(w)
			w.kept = w.kept[:1]
			w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"staticPodPath":"relative"}`)}
		}, drained(func(n *Node) { n.Reason, n.Active = nodev1.ReasonInTrial, n.Source }), lifts, ""},
		"it was rolled back":                             {drains, drained(func(n *Node) { n.Reason = nodev1.ReasonRolledBack }), lifts, ""},
		"it cannot go on":                                {drains, drained(func(n *Node) { n.Reason = nodev1.ReasonSyncFailed }), lifts, ""},
		"another one has stopped it":                     {drains, func(w *table) []Node { return []Node{w.drained("n1", nil), w.onT("n0", nodev1.ReasonRefused, nil)} }, lifts, ""},
		"the pool is paused":                             {all(drains, paused), drained(nil), lifts, ""},
		"the pool drains no more":                        {func(*table) {}, drained(nil), lifts, ""},
		"the pool is gone":                               {drains, drained(func(n *Node) { n.Drain.Pool = "gone" }), lifts, ""},
		"the node has left the pool":                     {drains, drained(func(n *Node) { n.Labels = nil }), lifts, ""},
		"the node is held":                               {drains, drained(hand), lifts, ""},
		"a person has assigned something":                {drains, drained(func(n *Node) { n.Source = "kubelet-config/own/kubelet" }), lifts, ""},
		"it is of another revision":                      {drains, drained(func(n *Node) { n.Drain.Hash = "0123456789" }), lifts, ""},
		"somebody has uncordoned it":                     {drains, drained(func(n *Node) { n.Draining = false }), "Undrain n1 workers T over: another user or program has uncordoned the node", ""},
		"somebody has uncordoned it, and cordoned again": {drains, drained(func(n *Node) { n.Draining, n.Cordoned = false, true }), "Undrain n1 workers T over: another user or program has uncordoned the node", ""},
		"pods are in the way":                            {drains, lasting(9*time.Minute, 0, Drained{Words: "default/web is terminating"}), goesOn, ""},
		"pods are in the way for too long":               {drains, lasting(10*time.Minute, 0, Drained{Words: "default/web: The disruption budget web needs 1 healthy pods"}), "Undrain n1 workers T over: timed out after 10m0s: default/web: The disruption budget web needs 1 healthy pods-cordon", ""},
		"a time of its own":                              {func(w *table) { drains(w); w.pool.Spec.Rollout.DrainTimeout = durationOf(time.Minute) }, lasting(time.Minute, 0, Drained{Words: "default/web is terminating"}), "Undrain n1 workers T over: timed out after 1m0s: default/web is terminating-cordon", ""},
		"a pod that no drain may take":                   {drains, lasting(0, 0, Drained{Refuses: true, Words: "no drain may take default/web (it has an emptyDir)"}), "Undrain n1 workers T over: no drain may take default/web (it has an emptyDir)-cordon", ""},
		"what was found at another drain is of no use": {drains, func(w *table) []Node {
			n := w.longDrained("n1", 0, 0, Drained{Refuses: true})
			w.world.Drains[n.UID] = Drained{Drain{Pool: "workers", Hash: "0"}, true, false, ""}
			return []Node{n}
		}, goesOn, ""},
		"its pods are gone, and the node has time to see": {drains, lasting(time.Hour, 5*time.Minute, Drained{Empty: true}), goesOn, ""},
		"its pods are gone, and the node does not see it": {drains, lasting(time.Hour, 6*time.Minute, Drained{Empty: true}), "Undrain n1 workers T over: all pods are gone that a drain may take, and it still waits: default/web (OutOfpods)-cordon", ""},
		"nobody knows anything yet":                       {func(w *table) { w.world.Synced = false }, drained(nil), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.pool.Status.Wave = &v1alpha1.WaveStatus{Number: 2}
			row.set(w)
			plan, status := w.decide(row.nodes(w)...)
			got := strings.Split(w.written(plan), ", ")
			for _, one := range plan.Drains {
				got = append(got, "evicts "+one.Node)
			}
			got = slices.DeleteFunc(got, func(words string) bool { return words == "" || strings.HasPrefix(words, "TakeBack") })
			if got := strings.Join(got, ", "); got != row.want {
				t.Errorf("it does %q instead of %q", got, row.want)
			}
			if row.says != "" {
				progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
				if got := progressing.Reason + ": " + progressing.Message; got != row.says {
					t.Errorf("it says %q instead of %q", got, row.says)
				}
			}
			if w.world.Synced {
				w.again(plan, status)
			}
		})
	}
}

// Another process that finds the node so goes on, and counts from the beginning; the time that is told by the API server's clock does not count.
func TestTheTimeOfADrain(t *testing.T) {
	w := newTable(t)
	drains(w)
	n := w.drained("n1", nil)
	w.world.Elapsed = time.Hour
	for _, step := range []struct{ elapsed, want time.Duration }{{time.Hour, 0}, {time.Minute, time.Minute}, {0, time.Minute}, {8 * time.Minute, 9 * time.Minute}} {
		w.world.Elapsed = step.elapsed
		plan, status := w.decide(n)
		if len(plan.Writes) > 0 || len(plan.Drains) != 1 || plan.Seen[n.UID].Drained != step.want || plan.Look == 0 || plan.Look > drainLook {
			t.Fatalf("after %v: it has seen %+v, writes %v, looks again after %v", step.elapsed, plan.Seen[n.UID], w.written(plan), plan.Look)
		}
		w.world.Seen, w.pool.Status = plan.Seen, status
	}
	w.world.Elapsed = time.Minute
	plan, _ := w.decide(n)
	if len(plan.Writes) != 1 || len(plan.Drains) != 0 {
		t.Errorf("after its time it writes %v, and evicts from %v", w.written(plan), plan.Drains)
	}
}

// The cordon is ours where the annotation says so, and nobody else has written it.
func TestWhoseCordon(t *testing.T) {
	by := func(manager string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}
	}
	other := metav1.ManagedFieldsEntry{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`)}
	for name, row := range map[string]struct {
		annotation string
		managers   []metav1.ManagedFieldsEntry
		ours       bool
	}{
		"ours":                              {`{"pool":"workers","hash":"84bd77c4f0"}`, []metav1.ManagedFieldsEntry{other, by(FieldManager)}, true},
		"ours, of which nothing is kept":    {`{"pool":"workers","hash":"84bd77c4f0"}`, nil, true},
		"somebody else's":                   {"", []metav1.ManagedFieldsEntry{by("kubectl-cordon")}, false},
		"somebody else's, and nothing kept": {"", nil, false},
		"cordoned again by somebody else":   {`{"pool":"workers","hash":"84bd77c4f0"}`, []metav1.ManagedFieldsEntry{by("kubectl-cordon")}, false},
		"somebody else stands by it, too":   {`{"pool":"workers","hash":"84bd77c4f0"}`, []metav1.ManagedFieldsEntry{by(FieldManager), by("argo")}, false},
		"the drain is over":                 {`{"pool":"workers","hash":"84bd77c4f0","over":"timed out"}`, nil, false},
		"an annotation that nobody reads":   {`"workers 84bd77c4f0"`, nil, false},
	} {
		n := aNode()
		n.Spec.Unschedulable, n.ManagedFields = true, row.managers
		n.Annotations[DrainAnnotation] = row.annotation
		if got := ReadNode(n); got.Draining != row.ours || got.Cordoned == row.ours {
			t.Errorf("%s: draining %v, cordoned %v", name, got.Draining, got.Cordoned)
		}
		n.Spec.Unschedulable = false
		if got := ReadNode(n); got.Draining || got.Cordoned {
			t.Errorf("%s, uncordoned: draining %v, cordoned %v", name, got.Draining, got.Cordoned)
		}
	}
}

// drainText is a drain in words.
func drainText(d Drain) string {
	switch {
	case d.Pool == "":
		return ""
	case d.Over != "":
		return d.Pool + " " + d.Hash + " over: " + d.Over
	}
	return d.Pool + " " + d.Hash
}

func TestParseDrain(t *testing.T) {
	for _, drain := range []Drain{{}, {Pool: "workers", Hash: "84bd77c4f0"}, {"workers", "local", "timed out after 10m0s: default/web is terminating"}} {
		if got := ParseDrain(drain.String()); got != drain {
			t.Errorf("%q is read as %+v", drain, got)
		}
	}
	for _, text := range []string{"workers", "{}", "[]", "null", `"workers"`, `{"pool":"workers"}`, `{"hash":"x"}`, `{"pool":"workers","hash":7}`, `{"pool":"workers","hash":"x"} y`} {
		if got := ParseDrain(text); got != (Drain{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// What a write makes of a Node is what the shell lays over its cache.
func TestWithADrain(t *testing.T) {
	w := newTable(t)
	n := w.waits("n1", nil)
	drain := Drain{Pool: "workers", Hash: w.retry.Hash}
	n = n.With(Write{Why: WhyDrain, Drain: drain})
	if !n.Draining || n.Drain != drain {
		t.Errorf("after the cordon: %+v", n)
	}
	gone := n.With(Write{Why: WhyUndrain, Lifts: true})
	if gone.Draining || gone.Drain != (Drain{}) {
		t.Errorf("after the end: %+v", gone)
	}
	drain.Over = "timed out"
	if kept := n.With(Write{Why: WhyUndrain, Drain: drain}); kept.Drain != drain {
		t.Errorf("after it was over: %+v", kept)
	}
}
