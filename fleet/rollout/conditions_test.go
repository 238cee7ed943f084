package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// back is a node with what it was given back, and says so; an empty reason is no answer yet.
func (tab *table) back(name, reason string) Node {
	return tab.node(name, func(n *Node) {
		if tab.s == nodev1.Local {
			tab.has(n, nodev1.Local, tab.oldRetry, nodev1.ReasonLocal)
		}
		if n.Good = tab.s; reason != "" {
			n.Reason = reason
			return
		}
		n.Observed, n.Active, n.Reason = tab.t, tab.t, nodev1.ReasonInTrial
	})
}

// goingBack is on its way to S, or to the nodes' own configuration where nothing is stable.
func goingBack(t *testing.T, way string) *table {
	t.Helper()
	w, pin := newTable(t), int64(1)
	if way == nodev1.Local {
		pin, w.pool.Status.Stable = 0, nil
		w.s, w.oldRetry = nodev1.Local, Retry{"workers", localHash, 1}
	}
	w.pool.Spec.Rollout.Pin = pinned(pin)
	return w
}

// readyOf decides, and keeps the status.
func (tab *table) readyOf(nodes ...Node) string {
	tab.Helper()
	_, tab.pool.Status = tab.decide(nodes...)
	return tab.pool.Status.Conditions[0].Reason
}

// Going back is over when the last node has gone back.
func TestGoingBackIsOverWithTheLastNode(t *testing.T) {
	for _, way := range []string{nodev1.Local, "stable"} {
		for name, row := range map[string]struct {
			node func(*table) Node
			want string
		}{
			"it has the other one":  {func(w *table) Node { return w.onT("n1", nodev1.ReasonInTrial, nil) }, ReasonRolling},
			"it has not answered":   {func(w *table) Node { return w.back("n1", "") }, ReasonRolling},
			"it applies":            {func(w *table) Node { return w.back("n1", nodev1.ReasonApplying) }, ReasonRolling},
			"it waits for its pods": {func(w *table) Node { return w.back("n1", nodev1.ReasonWouldDisrupt) }, ReasonRolling},
			"it has not settled": {func(w *table) Node {
				n := w.back("n1", w.atHome())
				w.remembers(n, func(s *Seen) { s.Running = 0 })
				return n
			}, ReasonRolling},
			"it says no": {func(w *table) Node { return w.back("n1", nodev1.ReasonRefused) }, ReasonCompleted},
			"it is back": {func(w *table) Node { return w.back("n1", w.atHome()) }, ReasonCompleted},
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				w := goingBack(t, way)
				for range 2 {
					if got := w.readyOf(row.node(w), w.back("n2", w.atHome())); got != row.want {
						t.Errorf("Ready is %s", got)
					}
				}
			})
		}
	}
}

// atHome is what a node says that is back.
func (tab *table) atHome() string {
	if tab.s == nodev1.Local {
		return nodev1.ReasonLocal
	}
	return nodev1.ReasonActive
}

// Who comes late to what is completed does not make it less so.
func TestWhoComesLateChangesNothing(t *testing.T) {
	for _, way := range []string{nodev1.Local, "stable"} {
		w := goingBack(t, way)
		if got := w.readyOf(w.back("n1", w.atHome())); got != ReasonCompleted {
			t.Errorf("%s: Ready is %s", way, got)
		}
		if got := w.readyOf(w.back("n1", w.atHome()), w.back("n2", nodev1.ReasonApplying)); got != ReasonCompleted {
			t.Errorf("%s: with a node that comes late Ready is %s", way, got)
		}
		// Nor does a spec that became invalid, and is said: what is completed stays completed for as long as it is so.
		pin := w.pool.Spec.Rollout.Pin
		w.pool.Spec.Rollout.Pin = pinned(7)
		for range 2 {
			got := w.readyOf(w.back("n1", w.atHome()), w.back("n2", nodev1.ReasonApplying))
			if p := w.pool.Status.Conditions[1]; got != ReasonInvalidSpec || p.Reason != ReasonCompleted {
				t.Errorf("%s: with a pin that is not there Ready is %s, and Progressing %s", way, got, p.Reason)
			}
		}
		w.pool.Spec.Rollout.Pin = pin
		w.pool.Spec.Rollout.Retry = "again"
		if got := w.readyOf(w.back("n1", w.atHome()), w.back("n2", nodev1.ReasonApplying)); got != ReasonRolling {
			t.Errorf("%s: in another attempt Ready is %s", way, got)
		}
	}
}

// What nodes have is not what its name says: so says the pool that it is of. What is gone is made anew without a word.
func TestAVariantThatIsTamperedWith(t *testing.T) {
	for name, row := range map[string]struct {
		broken []Broken
		want   string
	}{
		"tampered with": {[]Broken{{"pool-workers-0123456789", true}}, ReasonRevisionTampered},
		"gone":          {[]Broken{{"pool-workers-0123456789", false}}, ReasonNotStalled},
		"of another":    {[]Broken{{"pool-workers-gpu-0123456789", true}}, ReasonNotStalled},
		"sound":         {nil, ReasonNotStalled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.world.Broken = row.broken
			_, status := w.decide(w.proven("n1"))
			is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled)
			if is.Reason != row.want || row.want == ReasonRevisionTampered && is.Message != "ConfigMap pool-workers-0123456789 is not what it was" {
				t.Errorf("Stalled is %s: %s", is.Reason, is.Message)
			}
		})
	}
}
