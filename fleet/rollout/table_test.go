package rollout

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// The rows of the tables below speak of a pool with one layer, whose target is T and whose stable revision is S.
type table struct {
	testing.TB
	pool     *v1alpha1.KubeletPool
	kept     []Revision
	t, s     string // variants
	retry    Retry  // of T
	oldRetry Retry  // of S
	world    World
}

var tableNow = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// newTable has S completed and T begun.
func newTable(t testing.TB) *table {
	t.Helper()
	tab := &table{TB: t}
	tab.pool = newPool("workers", func(p *v1alpha1.KubeletPool) {
		p.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
		p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)}
		p.Spec.Rollout.MaxUnavailable = amountOf("100%")
		p.Spec.Rollout.Waves = wavesOf("1", "100%")
	})
	tab.s, tab.oldRetry = tab.adopt()
	tab.pool.Status.Stable = &v1alpha1.RevisionName{Revision: 1, Hash: tab.oldRetry.Hash}
	tab.pool.Status.Revisions = []v1alpha1.RevisionStatus{{RevisionName: *tab.pool.Status.Stable, Result: v1alpha1.ResultCompleted, ProvenIn: provenIn("v1.36", tab.s)}}
	tab.pool.Status.Completions = []v1alpha1.Completion{{RevisionName: *tab.pool.Status.Stable}}
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":250}`)}
	tab.t, tab.retry = tab.adopt()
	tab.world = World{Now: tableNow, Synced: true, Seen: map[types.UID]Seen{}}
	return tab
}

// provenIn are cohorts of a version on amd64.
func provenIn(minor string, sources ...string) (proofs []v1alpha1.CohortProof) {
	for _, source := range sources {
		name := variantOf(source)
		proofs = append(proofs, v1alpha1.CohortProof{Cohort: minor + "/amd64/" + name[len(name)-hashLength:]})
	}
	return proofs
}

// adopt keeps the revision that the layers make.
func (tab *table) adopt() (source string, retry Retry) {
	tab.Helper()
	plan := Decide(World{Now: tableNow, Synced: true, Pools: []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}})
	if len(plan.Revisions) != 1 {
		tab.Fatalf("revisions: %v", plan.Revisions)
	}
	r := plan.Revisions[0]
	data, err := r.Data()
	if err != nil {
		tab.Fatal(err)
	}
	tab.kept = append(tab.kept, ReadRevision(r.Pool, r.ObjectName(), data))
	tab.pool.Status = plan.Status["workers"]
	v, _ := newVariants(&tab.kept[len(tab.kept)-1]).variantFor(nil)
	return v.source, Retry{"workers", r.Hash, 1}
}

// node is an old one: Ready, on S.
func (tab *table) node(name string, change func(*Node)) Node {
	n := Node{Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"pool": "a"}, Created: tableNow.Add(-24 * time.Hour), Ready: true,
		Minor: "v1.36", Arch: "amd64", Supervised: true, Layered: true}
	tab.has(&n, tab.s, tab.oldRetry, nodev1.ReasonActive)
	if change != nil {
		change(&n)
	}
	return n
}

// has gives a node an assignment, and lets it say that it has observed it.
func (tab *table) has(n *Node, source string, retry Retry, reason string) {
	n.Source, n.Mark, n.Retry = source, Mark{Pool: "workers", Assignment: source, Attempt: retry.Attempt}, retry
	n.Observed, n.RetryHeard, n.Reason = source, retry, reason
	n.Active, n.Good = source, source
	switch reason {
	case nodev1.ReasonInTrial:
		n.Good = tab.s
	case nodev1.ReasonActive, nodev1.ReasonLocal:
	default:
		n.Active, n.Good = tab.s, tab.s
	}
}

// onT is a node that has T and says so.
func (tab *table) onT(name, reason string, change func(*Node)) Node {
	return tab.node(name, func(n *Node) {
		tab.has(n, tab.t, tab.retry, reason)
		if change != nil {
			change(n)
		}
	})
}

// remembers lets this process have seen the node for so long, after it was assigned while Ready.
func (tab *table) remembers(n Node, change func(*Seen)) {
	seen := Seen{Name: n.Name, Mark: n.Mark, Retry: n.Retry, WasReady: true, Ready: true, BootID: n.BootID, Runs: runs(&n), Running: time.Hour, Assigned: time.Hour}
	if change != nil {
		change(&seen)
	}
	tab.world.Seen[n.UID] = seen
}

func (tab *table) decide(nodes ...Node) (Plan, v1alpha1.KubeletPoolStatus) {
	tab.Helper()
	for _, n := range nodes {
		if _, known := tab.world.Seen[n.UID]; !known {
			tab.remembers(n, nil)
		}
	}
	tab.world.Nodes, tab.world.Pools = nodes, []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}
	plan := Decide(tab.world)
	status, is := plan.Status["workers"]
	if !is {
		status = tab.pool.Status
	}
	return plan, status
}

// classes has the class of each count that is not zero, by the status.
func classes(status v1alpha1.KubeletPoolStatus) map[string]int {
	text, err := json.Marshal(status.Nodes)
	if err != nil {
		panic(err)
	}
	all := map[string]int{}
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	for _, sum := range []string{"selected", "updatable", "unavailable", "away"} {
		delete(all, sum)
	}
	maps.DeleteFunc(all, func(_ string, count int) bool { return count == 0 })
	return all
}

// pinned is a pin to that revision; 0 is the nodes' own configuration.
func pinned(number int64) *v1alpha1.Pin { return &v1alpha1.Pin{Revision: number, Local: number == 0} }
