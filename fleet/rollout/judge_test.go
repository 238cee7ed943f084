package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func cordoned(n *Node) { n.Cordoned = true }
func notReady(n *Node) { n.Ready = false }

func illFor(d time.Duration) func(*Seen) {
	return func(s *Seen) { s.Ill, s.IllFor = true, d }
}

// What stops a revision, and what only holds it.
func TestHoldAndStop(t *testing.T) {
	const nothing, hold, stop = "nothing", "hold", "stop"
	for name, row := range map[string]struct {
		given func(*table) []Node
		want  string
		words string
	}{
		"all is well":         {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonInTrial, nil)) }, nothing, ""},
		"refused":             {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonRefused, nil)) }, stop, "n1 Refused:"},
		"rejected":            {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonRejected, nil)) }, stop, "n1 Rejected"},
		"LastKnownGoodFailed": {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonLastKnownGoodFailed, nil)) }, stop, "n1 LastKnownGoodFailed"},
		"rolled back":         {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonRolledBack, nil)) }, hold, "n1 is RolledBack"},
		"refused in an attempt before": {func(w *table) []Node {
			w.pool.Spec.Rollout.Retry = "again"
			return w.some(w.onT("n1", nodev1.ReasonRefused, nil))
		}, nothing, ""},
		"S is refused": {func(w *table) []Node { return w.some(w.node("n1", func(n *Node) { n.Reason = nodev1.ReasonRefused })) }, nothing, ""},
		"refused, and out of the pool": {func(w *table) []Node {
			return w.some(w.onT("n1", nodev1.ReasonRefused, func(n *Node) { n.Labels = nil }))
		}, stop, "n1 Refused"},
		"the environment fails": {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonEnvironmentFailing, nil)) }, hold, "n1 is EnvironmentFailing"},
		"the environment fails for 5 minutes": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonEnvironmentFailing, nil), illFor(5*time.Minute)))
		}, stop, "n1 EnvironmentFailing"},
		"NotReady": {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonInTrial, notReady)) }, hold, "n1 is not Ready"},
		"NotReady for 5 minutes": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, notReady), illFor(5*time.Minute)))
		}, stop, "n1 NotReady"},
		"NotReady for a second less": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, notReady), illFor(5*time.Minute-1)))
		}, hold, ""},
		"proven, and NotReady": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonActive, notReady), illFor(5*time.Minute)))
		}, stop, "n1 NotReady"},
		"NotReady before it had it": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, notReady), func(s *Seen) { s.WasReady = false }))
		}, nothing, ""},
		"NotReady, and rebooted since": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, rebooted), illFor(time.Hour)))
		}, hold, ""},
		"NotReady, within the tolerated": {func(w *table) []Node {
			w.pool.Spec.Rollout.Unready.Tolerate = amountOf("1")
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, notReady), illFor(time.Hour)))
		}, hold, "nodes do not go on: n1"},
		"an old node is NotReady":    {func(w *table) []Node { return w.some(w.node("n1", notReady)) }, nothing, ""},
		"rolled back, then held":     {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonRolledBack, hand)) }, stop, "n1 Lost"},
		"rolled back, then cordoned": {func(w *table) []Node { return w.some(w.onT("n1", nodev1.ReasonRolledBack, cordoned)) }, stop, "n1 Lost"},
		"EnvironmentFailing, then held": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonEnvironmentFailing, hand), illFor(0)))
		}, stop, "n1 Lost"},
		"NotReady, then cordoned": {func(w *table) []Node {
			return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, both), illFor(time.Second)))
		}, stop, "n1 Lost"},
		"cordoned, then NotReady: reboot": {func(w *table) []Node { return w.some(w.ill(w.onT("n1", nodev1.ReasonInTrial, both), rebootedAside)) }, hold, ""},
		"NotReady, then away for good": {func(w *table) []Node {
			w.world.Seen["n1"] = w.past(w.onT("n1", nodev1.ReasonInTrial, notReady), func(s *Seen) { s.Ill = true })
			return w.some()
		}, stop, "n1 Lost"},
		"healthy, then away for good": {func(w *table) []Node {
			w.world.Seen["n1"] = w.past(w.onT("n1", nodev1.ReasonInTrial, nil), nil)
			return w.some()
		}, nothing, ""},
		"healthy, then away, the caches not synced": {func(w *table) []Node {
			w.world.Synced = false
			w.world.Seen["n1"] = w.past(w.onT("n1", nodev1.ReasonInTrial, notReady), func(s *Seen) { s.Ill = true })
			return w.some()
		}, nothing, ""},
		"three healthy ones away":        {func(w *table) []Node { return w.some(w.vanished(3)...) }, stop, "g3 Vanished"},
		"two healthy ones away":          {func(w *table) []Node { return w.some(w.vanished(2)...) }, nothing, ""},
		"three away, and one has proven": {func(w *table) []Node { return w.some(append(w.vanished(3), w.onT("n1", nodev1.ReasonActive, nil))...) }, nothing, ""},
		"under pressure since": {func(w *table) []Node {
			return w.some(w.onT("n1", nodev1.ReasonInTrial, func(n *Node) { n.Pressure = DiskPressure }))
		}, hold, "n1 has come under pressure"},
		"under pressure as it was before": {func(w *table) []Node { return w.some(w.pressed()) }, nothing, ""},
		"pods turned away since":          {func(w *table) []Node { return w.some(w.turned(14 * time.Minute)) }, hold, "n1 turns away default/web, which ran there"},
		"pods turned away a while ago":    {func(w *table) []Node { return w.some(w.turned(15 * time.Minute)) }, nothing, ""},
		"pods turned away before":         {func(w *table) []Node { return w.some(w.turned(time.Minute, time.Second)) }, nothing, ""},
		"one stranger is turned away":     {func(w *table) []Node { return w.some(w.strangers("default")) }, nothing, ""},
		"strangers of one namespace are":  {func(w *table) []Node { return w.some(w.strangers("default", "default")) }, nothing, ""},
		"strangers that name the node":    {func(w *table) []Node { return w.some(w.strangers("default", "named")) }, nothing, ""},
		"strangers of two namespaces are": {func(w *table) []Node { return w.some(w.strangers("default", "shop")) }, hold, "n1 turns pods away, such as default/web"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			plan, status := w.decide(row.given(w)...)
			got, words := nothing, ""
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c.Reason == ReasonHeld {
				got, words = hold, c.Message
			}
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); c.Reason == ReasonStopped {
				got, words = stop, c.Message
			}
			if got != row.want || !strings.Contains(words, row.words) {
				t.Errorf("%s: %q; not %s: %q", got, words, row.want, row.words)
			}
			for _, write := range plan.Writes {
				if (got != nothing || !w.world.Synced) && write.Why == WhyAdvance {
					t.Errorf("all the same %s is assigned", write.Node)
				}
			}
		})
	}
}

func hand(n *Node)     { n.Labels = map[string]string{"pool": "a", RolloutLabel: "hold"} }
func both(n *Node)     { notReady(n); cordoned(n) }
func rebooted(n *Node) { notReady(n); n.BootID = "another" }

func rebootedAside(s *Seen) { s.Ill, s.Aside, s.AsideFirst = false, true, true }

// some are old ones that could be moved, besides.
func (tab *table) some(nodes ...Node) []Node {
	for i := range 3 {
		nodes = append(nodes, tab.node(fmt.Sprint("old", i), nil))
	}
	return nodes
}

func (tab *table) ill(n Node, change func(*Seen)) Node {
	boot := n.BootID
	n.BootID = ""
	tab.remembers(n, change)
	n.BootID = boot
	return n
}

// past is what is remembered of a node that is gone.
func (tab *table) past(n Node, change func(*Seen)) Seen {
	tab.remembers(n, func(s *Seen) {
		s.Phase = OnTrial
		if change != nil {
			change(s)
		}
	})
	return tab.world.Seen[n.UID]
}

func (tab *table) vanished(n int) []Node {
	for i := range n {
		name := fmt.Sprint("g", i+1)
		tab.world.Gone = append(tab.world.Gone, Gone{UID: types.UID(name), Node: name, Retry: tab.retry})
	}
	return nil
}

func (tab *table) pressed() Node {
	n := tab.onT("n1", nodev1.ReasonInTrial, func(n *Node) { n.Pressure = MemoryPressure })
	tab.remembers(n, func(s *Seen) { s.Pressure = MemoryPressure })
	return n
}

func (tab *table) turned(age time.Duration, assigned ...time.Duration) Node {
	n := tab.onT("n1", nodev1.ReasonInTrial, func(n *Node) { n.ChangeBegan = tableNow })
	tab.remembers(n, func(s *Seen) {
		for _, a := range assigned {
			s.Assigned = a
		}
	})
	tab.world.Turned = []TurnedAway{{Node: "n1", Namespace: "default", Name: "web", Started: n.ChangeBegan.Add(-time.Hour), Age: age}}
	return n
}

// strangers had not run on n1 when they were turned away: anybody may have named the node in them.
func (tab *table) strangers(namespaces ...string) Node {
	n := tab.turned(time.Minute)
	tab.world.Turned = nil
	for _, namespace := range namespaces {
		tab.world.Turned = append(tab.world.Turned, TurnedAway{Node: "n1", Namespace: namespace, Name: "web", Started: n.ChangeBegan.Add(time.Minute),
			Unbound: namespace != "named"})
	}
	return n
}

// A stop outlives what it came from, and an attempt that is raised ends it.
func TestAStopIsLatched(t *testing.T) {
	w := newTable(t)
	_, w.pool.Status = w.decide(w.some(w.onT("n1", nodev1.ReasonRejected, nil))...)
	for name, row := range map[string]struct {
		change func(*table)
		moves  bool
	}{
		"the node is gone":             {func(*table) {}, false},
		"the controller has forgotten": {func(w *table) { w.world.Seen, w.world.Gone = nil, nil }, false},
		"a word is heard":              {func(w *table) { w.pool.Spec.Rollout.Retry = "again" }, true},
		"a word that was heard":        {func(w *table) { w.pool.Spec.Rollout.Retry, w.pool.Status.Retries = "again", []string{"later", "again"} }, false},
		"a word, and a spec that cannot be met": {func(w *table) {
			w.pool.Spec.Rollout.Retry, w.pool.Spec.Rollout.Pin = "again", pinned(7)
		}, false},
		"other content":               {func(w *table) { w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":251}`)} }, true},
		"the same content, rewritten": {func(w *table) { w.pool.Spec.Layers = []v1alpha1.Layer{inline("renamed", "{ \"maxPods\" : 250 }")} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.TB, w.pool = t, w.pool.DeepCopy()
			row.change(&w)
			if w.world.Seen == nil {
				w.world.Seen = map[types.UID]Seen{}
			}
			plan, _ := w.decide(w.some()...)
			if moves := len(plan.Writes) > 0; moves != row.moves {
				t.Errorf("writes: %v", plan.Writes)
			}
		})
	}
}
