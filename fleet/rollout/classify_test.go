package rollout

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// The classes of a member against the target; the first that matches wins.
func TestClasses(t *testing.T) {
	label := func(key, value string) func(*Node) {
		return func(n *Node) { n.Labels = map[string]string{"pool": "a", key: value} }
	}
	held := label(RolloutLabel, "hold")
	for name, row := range map[string]struct {
		node func(*table) Node
		want string
	}{
		"refused":                         {func(w *table) Node { return w.onT("n", nodev1.ReasonRefused, nil) }, "failed"},
		"rolled back":                     {func(w *table) Node { return w.onT("n", nodev1.ReasonRolledBack, nil) }, "failed"},
		"rejected":                        {func(w *table) Node { return w.onT("n", nodev1.ReasonRejected, nil) }, "failed"},
		"the last known good failed":      {func(w *table) Node { return w.onT("n", nodev1.ReasonLastKnownGoodFailed, nil) }, "failed"},
		"refused, then held":              {func(w *table) Node { return w.onT("n", nodev1.ReasonRefused, held) }, "failed"},
		"refused, then cordoned":          {func(w *table) Node { return w.onT("n", nodev1.ReasonRefused, func(n *Node) { n.Cordoned = true }) }, "failed"},
		"refused, then being deleted":     {func(w *table) Node { return w.onT("n", nodev1.ReasonRefused, func(n *Node) { n.Leaving = true }) }, "failed"},
		"refused, then reset by a person": {func(w *table) Node { return w.onT("n", nodev1.ReasonRefused, func(n *Node) { n.Source = "" }) }, "failed"},
		"refused, of an earlier attempt":  {func(w *table) Node { w.pool.Spec.Rollout.Retry = "again"; return w.onT("n", nodev1.ReasonRefused, nil) }, "old"},
		"a verdict of before the retry": {func(w *table) Node {
			return w.onT("n", nodev1.ReasonRejected, func(n *Node) { n.RetryHeard.Attempt = 0 })
		}, "applying"},
		"marked for removal":            {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Leaving = true }) }, "leaving"},
		"no supervisor":                 {func(w *table) Node { return w.node("n", func(n *Node) { n.Supervised = false }) }, "unsupervised"},
		"a supervisor that is too old":  {func(w *table) Node { return w.node("n", func(n *Node) { n.Layered = false }) }, "unsupervised"},
		"assigned by a person":          {func(w *table) Node { return w.node("n", func(n *Node) { n.Source = "kube-system/own/kubelet" }) }, "manual"},
		"reset by a person":             {func(w *table) Node { return w.node("n", func(n *Node) { n.Source = "" }) }, "manual"},
		"assigned by nobody knows whom": {func(w *table) Node { return w.node("n", func(n *Node) { n.Mark = Mark{} }) }, "manual"},
		"adopted by nobody":             {func(w *table) Node { w.pool.Spec.Adoption = v1alpha1.AdoptNever; return w.node("n", unassign) }, "manual"},
		"held":                          {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, held) }, "held"},
		"cordoned":                      {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Cordoned = true }) }, "skipped"},
		"another updater at work":       {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Updating = true }) }, "skipped"},
		"new, and not Ready yet":        {func(w *table) Node { return w.node("n", fresh) }, "joining"},
		"new, and at risk":              {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, fresh) }, "proven"},
		"not Ready for longer": {func(w *table) Node {
			return w.node("n", func(n *Node) { fresh(n); n.Created = tableNow.Add(-time.Hour) })
		}, "old"},
		"assigned, and nothing observed":      {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Observed = w.s }) }, "applying"},
		"applying":                            {func(w *table) Node { return w.onT("n", nodev1.ReasonApplying, nil) }, "applying"},
		"assigned again after it was deleted": {func(w *table) Node { return w.onT("n", nodev1.ReasonAssignmentLost, nil) }, "applying"},
		"running, but not settled": {func(w *table) Node {
			n := w.onT("n", nodev1.ReasonInTrial, nil)
			w.remembers(n, func(s *Seen) { s.Running = 14 * time.Second })
			return n
		}, "applying"},
		"waiting for its pods":                  {func(w *table) Node { return w.onT("n", nodev1.ReasonWouldDisrupt, nil) }, "waiting"},
		"on trial":                              {func(w *table) Node { return w.onT("n", nodev1.ReasonInTrial, nil) }, "onTrial"},
		"last known good":                       {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, nil) }, "proven"},
		"says Active, and runs something else":  {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Active = w.s }) }, "applying"},
		"says Active, and would fall back to S": {func(w *table) Node { return w.onT("n", nodev1.ReasonActive, func(n *Node) { n.Good = w.s }) }, "applying"},
		"the ConfigMap cannot be had":           {func(w *table) Node { return w.onT("n", nodev1.ReasonSyncFailed, nil) }, "blocked"},
		"the assignment is malformed":           {func(w *table) Node { return w.onT("n", nodev1.ReasonInvalidAssignment, nil) }, "blocked"},
		"the local file would be refused":       {func(w *table) Node { return w.onT("n", nodev1.ReasonFallbackBroken, nil) }, "blocked"},
		"the environment fails":                 {func(w *table) Node { return w.onT("n", nodev1.ReasonEnvironmentFailing, nil) }, "blocked"},
		"the supervisor fails":                  {func(w *table) Node { return w.onT("n", nodev1.ReasonInternalError, nil) }, "blocked"},
		"the supervisor was stopped":            {func(w *table) Node { return w.onT("n", nodev1.ReasonStopped, nil) }, "blocked"},
		"no answer within the deadline":         {func(w *table) Node { return w.silent("n", time.Hour) }, "blocked"},
		"relabelled, and no answer":             {func(w *table) Node { return w.relabelled("n") }, "blocked"},
		"no answer, but still time":             {func(w *table) Node { return w.silent("n", time.Hour-time.Second) }, "applying"},
		"the API server refuses its PATCH":      {func(w *table) Node { w.world.Denied = denied("n"); return w.node("n", nil) }, "blocked"},
		"on S, while T is rolled out":           {func(w *table) Node { return w.node("n", nil) }, "old"},
		"unassigned, while T is rolled out":     {func(w *table) Node { return w.node("n", unassign) }, "old"},
		"from another pool":                     {func(w *table) Node { return w.node("n", func(n *Node) { n.Mark.Pool, n.Retry.Pool = "b", "b" }) }, "old"},
		"unassigned, when T is stable":          {func(w *table) Node { w.completeT(); return w.node("n", unassign) }, "late"},
		"on S, when T is stable":                {func(w *table) Node { w.completeT(); return w.node("n", nil) }, "late"},
		"from another pool, when T is stable":   {func(w *table) Node { w.completeT(); return w.node("n", func(n *Node) { n.Mark.Pool = "b" }) }, "late"},
		"on T, when S is pinned": {func(w *table) Node {
			w.pool.Spec.Rollout.Pin = pinned(1)
			return w.onT("n", nodev1.ReasonActive, nil)
		}, "old"},
		"on S, when S is pinned":           {func(w *table) Node { w.pool.Spec.Rollout.Pin = pinned(1); return w.node("n", nil) }, "proven"},
		"unassigned, when local is pinned": {func(w *table) Node { w.pool.Spec.Rollout.Pin = pinned(0); return w.node("n", unassign) }, "proven"},
		"local, when local is pinned":      {func(w *table) Node { w.pool.Spec.Rollout.Pin = pinned(0); return w.local("n") }, "proven"},
		"adopted, and unassigned": {func(w *table) Node {
			return w.node("n", func(n *Node) { unassign(n); n.Mark = Mark{Pool: "workers", Assignment: "-", Attempt: 1} })
		}, "old"},
		"adopted with what a person has given it": {func(w *table) Node {
			return w.node("n", func(n *Node) { n.Source, n.Mark.Assignment = "ns/own/k", "ns/own/k" })
		}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			_, status := w.decide(row.node(w))
			if got := classes(status); !maps.Equal(got, map[string]int{row.want: 1}) {
				t.Errorf("it is %v, not %s", got, row.want)
			}
		})
	}
}

func unassign(n *Node) {
	n.Source, n.Mark, n.Retry, n.Observed, n.RetryHeard, n.Active, n.Good, n.Reason = "", Mark{}, Retry{}, "", Retry{}, nodev1.Local, nodev1.Local, nodev1.ReasonLocal
}

func fresh(n *Node) { n.Ready, n.Created = false, tableNow.Add(-9*time.Minute) }

func (tab *table) local(name string) Node {
	return tab.node(name, func(n *Node) {
		tab.has(n, nodev1.Local, Retry{"workers", localHash, 1}, nodev1.ReasonLocal)
	})
}

// silent has been assigned T for so long, and has not answered.
func (tab *table) silent(name string, unanswered time.Duration) Node {
	n := tab.onT(name, nodev1.ReasonActive, func(n *Node) { n.Observed, n.Active, n.Good = tab.s, tab.s, tab.s })
	tab.remembers(n, func(s *Seen) { s.Unanswered = unanswered })
	return n
}

// relabelled has been assigned another variant of T than it should have by now, and has not answered within the deadline.
func (tab *table) relabelled(name string) Node {
	n := tab.onT(name, nodev1.ReasonActive, func(n *Node) {
		tab.has(n, "kubelet-config/pool-workers-other/kubelet", tab.retry, nodev1.ReasonActive)
		n.Observed = tab.s
	})
	tab.remembers(n, func(s *Seen) {
		s.Unanswered, s.AsksFor, s.Asks = time.Hour, time.Hour, Asks{"workers", tab.retry.Hash, tab.t, tab.oldRetry.Hash, tab.s}
	})
	return n
}

func (tab *table) completeT() {
	tab.pool.Status.Stable = &v1alpha1.RevisionName{Revision: 2, Hash: tab.retry.Hash}
	tab.completedT()
}

// completedT: T was completed once, by kubelets 1.36.
func (tab *table) completedT() {
	tab.pool.Status.Revisions[0].Result, tab.pool.Status.Revisions[0].ProvenIn = v1alpha1.ResultCompleted, provenIn("v1.36", tab.t)
}

func denied(name string) map[types.UID]string {
	return map[types.UID]string{types.UID(name): "admission webhook denied the request"}
}

// A node that owes an answer past the deadline stays blocked, whatever else it says.
func TestBlockedStaysBlocked(t *testing.T) {
	w := newTable(t)
	n := w.silent("n1", time.Hour)
	n.Reason = nodev1.ReasonInternalError
	for range 3 {
		plan, status := w.decide(n)
		if got := classes(status); got["blocked"] != 1 {
			t.Errorf("it is %v", got)
		}
		w.pool.Status, w.world.Seen, w.world.Clocks = status, plan.Seen, plan.Clocks
	}
}
