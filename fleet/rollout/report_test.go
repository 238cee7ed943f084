package rollout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// large is a pool of so many nodes in which everything goes wrong at length.
func (tab *table) large(n int) []Node {
	nodes := make([]Node, 0, n)
	for i := range n {
		name := fmt.Sprintf("a-node-with-quite-a-long-name-as-clouds-give-them-%05d", i)
		reason := []string{saysActive, saysInTrial, saysRolledBack, saysEnvironmentFailing, saysRefused}[i%5]
		nodes = append(nodes, tab.onT(name, reason, func(n *Node) {
			n.Message = strings.Repeat("the kubelet's own words, and many of them; ", 24)
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
		w.pool.Status.Stops = append(w.pool.Status.Stops, v1alpha1.Stop{Hash: fmt.Sprintf("%010d", i), Node: long[:253], Reason: saysLastKnownGoodFailed, Message: long})
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
	tell("", w.onT("n1", saysInTrial, nil), w.old("n2"))
	tell("RolloutHeld", w.onT("n1", saysRolledBack, nil), w.old("n2"))
	tell("", w.onT("n1", saysRolledBack, nil), w.old("n2"))
	tell("WavePassed WaveBegun PoolAssigned", w.proven("n1"), w.old("n2"))
	tell("WavePassed RolloutCompleted", w.proven("n1"), w.proven("n2"))
	tell("", w.proven("n1"), w.proven("n2"))
}
