package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// large is a pool of so many nodes in which everything goes wrong at length.
func (tab *table) large(n int) []Node {
	nodes := make([]Node, 0, n)
	for i := range n {
		name := fmt.Sprintf("a-node-with-quite-a-long-name-as-clouds-give-them-%05d", i)
		reason := []string{nodev1.ReasonActive, nodev1.ReasonInTrial, nodev1.ReasonRolledBack, nodev1.ReasonEnvironmentFailing, nodev1.ReasonRefused}[i%5]
		nodes = append(nodes, tab.onT(name, reason, func(n *Node) {
			n.Failure = strings.Repeat("the kubelet's own words, and many of them; ", 24)
			n.Minor, n.Arch = fmt.Sprintf("v1.%d", i%50), fmt.Sprintf("arch%d", i%7)
		}))
	}
	return nodes
}

// The status stays small in any cluster.
func TestTheStatusIsSmall(t *testing.T) {
	w := newTable(t)
	long := strings.Repeat("x", messageLimit)
	for i := range 40 {
		w.pool.Status.Stops = append(w.pool.Status.Stops, v1alpha1.Stop{Hash: fmt.Sprintf("%010d", i), Node: long[:253], Reason: nodev1.ReasonLastKnownGoodFailed, Message: long})
	}
	_, status := w.decide(w.large(5000)...)
	text, err := json.Marshal(status)
	if err != nil || len(text) > 64<<10 {
		t.Errorf("it has %d bytes, %v", len(text), err)
	}
	if len(status.Stops) != stopLimit || status.Stops[0].Hash != w.retry.Hash || len(status.Failures) != failureLimit || len(status.Cohorts) != cohortLimit {
		t.Errorf("%d stops, %d failures, %d cohorts", len(status.Stops), len(status.Failures), len(status.Cohorts))
	}
	if words := status.Stops[0].Message; len(words) > messageLimit || !strings.HasPrefix(words, "the kubelet's own words") {
		t.Errorf("%q", words)
	}
}

// More nodes fail than the status names: it says the same of the same world.
func TestManyFailuresAreToldOnce(t *testing.T) {
	w := newTable(t)
	nodes := w.large(100)
	plan, status := w.decide(nodes...)
	w.again(plan, status)
	kept := status.Failures
	nodes[99] = w.proven(nodes[99].Name) // its failure, if it was named, gives way
	if _, status = w.decide(nodes...); !slices.Equal(kept, status.Failures) {
		t.Errorf("it names %v after %v", status.Failures, kept)
	}
	for i := range nodes[:50] {
		nodes[i] = w.proven(nodes[i].Name)
	}
	_, status = w.decide(nodes...)
	for _, name := range []string{nodes[52].Name, nodes[84].Name} {
		if !slices.ContainsFunc(status.Failures, func(f v1alpha1.Failure) bool { return f.Node == name }) {
			t.Errorf("%s is not among %v", name, status.Failures)
		}
	}
}

// A revision that a node was assigned stays in the history beyond its limit, so that what became of it is known; but there are at most 50.
func TestARevisionThatANodeHasIsRemembered(t *testing.T) {
	for name, row := range map[string]struct {
		old  int      // superseded revisions r1, r2...
		have []string // of which there is a node
		want string   // the oldest four, beyond the target, and how many there are
	}{
		"nobody has any":                   {9, nil, "r9 S: 3"},
		"a node has an old one":            {9, []string{"r2"}, "r2 S: 3"},
		"a node has a newer one":           {9, []string{"r8"}, "r8 S: 3"},
		"they have more than there may be": {70, strings.Fields(manyNames(1, 60)), "r15 r14 r13 S: 50"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			limit := int32(3)
			w.pool.Spec.RevisionHistoryLimit = &limit
			w.pool.Status.Revisions = nil
			for i := row.old; i > 0; i-- {
				w.pool.Status.Revisions = append(w.pool.Status.Revisions, v1alpha1.RevisionStatus{
					RevisionName: v1alpha1.RevisionName{Revision: 2, Hash: fmt.Sprint("r", i)}, Result: v1alpha1.ResultSuperseded})
			}
			w.pool.Status.Revisions = append(w.pool.Status.Revisions, v1alpha1.RevisionStatus{RevisionName: *w.pool.Status.Stable, Result: v1alpha1.ResultCompleted})
			nodes := []Node{w.old("n0")}
			for _, hash := range row.have {
				nodes = append(nodes, w.forgotten("has-"+hash, nodev1.ReasonActive, func(n *Node) { n.Retry.Hash = hash }))
			}
			_, status := w.decide(nodes...)
			var got []string
			for _, r := range status.Revisions[1:] {
				got = append(got, r.Hash)
			}
			words := strings.Join(got[max(0, len(got)-4):], " ")
			if got := strings.ReplaceAll(words, w.oldRetry.Hash, "S") + fmt.Sprintf(": %d", len(status.Revisions)); got != row.want {
				t.Errorf("it remembers %s, not %s", got, row.want)
			}
		})
	}
}

func manyNames(first, last int) string {
	var words []string
	for i := first; i <= last; i++ {
		words = append(words, fmt.Sprint("r", i))
	}
	return strings.Join(words, " ")
}

// What a pool tells while a revision goes through, from the first node on.
func TestEvents(t *testing.T) {
	w := newTable(t)
	w.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":251}`)}
	tell := func(want string, nodes ...Node) {
		t.Helper()
		plan, status := w.decide(nodes...)
		var got []string
		for _, e := range plan.Events {
			got = append(got, e.Reason)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("it tells %v instead of %s", got, want)
		}
		for _, r := range plan.Revisions {
			data, _ := r.Data()
			w.kept = append(w.kept, ReadRevision(r.Pool, r.ObjectName(), data))
			v, _ := newVariants(&r).variantFor(nil)
			w.t, w.retry = v.source, Retry{"workers", r.Hash, 1}
		}
		w.pool.Status, w.world.Seen, w.world.Clocks = status, map[types.UID]Seen{}, plan.Clocks
	}
	tell("RolloutBegun WaveBegun PoolAssigned", w.old("n1"), w.old("n2"))
	tell("", w.onT("n1", nodev1.ReasonInTrial, nil), w.old("n2"))
	tell("RolloutHeld", w.onT("n1", nodev1.ReasonRolledBack, nil), w.old("n2"))
	tell("", w.onT("n1", nodev1.ReasonRolledBack, nil), w.old("n2"))
	tell("WavePassed WaveBegun PoolAssigned", w.proven("n1"), w.old("n2"))
	tell("WavePassed RolloutCompleted", w.proven("n1"), w.proven("n2"))
	tell("", w.proven("n1"), w.proven("n2"))
}
