package rollout

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Who looks once sees what the controller counts.
func TestLookSeesWhatIsCounted(t *testing.T) {
	tab := newTable(t)
	nodes := []Node{
		tab.node("old", nil), tab.onT("proven", nodev1.ReasonActive, nil), tab.onT("trial", nodev1.ReasonInTrial, nil), tab.onT("refused", nodev1.ReasonRefused, nil),
		tab.onT("waits", nodev1.ReasonWouldDisrupt, nil), tab.onT("fails", nodev1.ReasonSyncFailed, nil), tab.onT("applies", nodev1.ReasonApplying, nil),
		tab.node("by hand", func(n *Node) { n.Source = "kube-system/own/kubelet" }),
		tab.node("held", func(n *Node) { n.Labels[RolloutLabel] = "hold" }),
		tab.node("released", func(n *Node) { n.Labels[PoolLabel] = "none" }),
		tab.node("of nobody", func(n *Node) { n.Labels = nil }),
		tab.node("cordoned", func(n *Node) { n.Cordoned = true }), tab.node("new", fresh),
	}
	_, status := tab.decide(nodes...)
	tab.pool.Status = status
	seen := Look(World{Now: tableNow, Nodes: nodes, Pools: []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}}, "workers")
	got := map[string]int{}
	for _, m := range seen.Members {
		class := string(m.Class)
		got[strings.ToLower(class[:1])+class[1:]]++
		if m.OnTarget != (m.Node.Retry == tab.retry) || m.Minor != "v1.36" || m.Layers != "fleet" {
			t.Errorf("%s is %+v", m.Node.Name, m)
		}
	}
	if want := classes(status); !maps.Equal(got, want) {
		t.Errorf("seen are %v, counted %v", got, want)
	}
	if !seen.Known || seen.Name.Revision != 2 || seen.Stable.Number != 1 || len(seen.Waves) != 2 || seen.Waves[0].Goal != 1 || seen.MaxUnavailable != 9 {
		t.Errorf("the view is %+v", seen)
	}
	if got := seen.Target.SourceFor(nodes[0].Labels); got != tab.t {
		t.Errorf("the target is assigned as %s", got)
	}
}

// A pool that is only a file shows the revision that it would make, and says what is wrong with it.
func TestTry(t *testing.T) {
	tab := newTable(t)
	nodes := []Node{tab.node("a", nil), tab.node("b", nil), tab.node("c", nil)}
	try := func(change func(*v1alpha1.KubeletPool)) View {
		p := tab.pool.DeepCopy()
		change(p)
		return Try(World{Now: tableNow, Nodes: nodes, Pools: []Pool{ReadPool(p, tab.kept, time.LoadLocation)}}, "workers")
	}
	seen := try(func(p *v1alpha1.KubeletPool) { p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":60}`)} })
	if seen.Name.Revision != 3 || string(seen.Target.Layers[0].Patch) != `{"maxPods":60}` || seen.Waves[1] != (ViewedWave{Nodes: "100%", Goal: 3}) {
		t.Errorf("the view is %+v", seen)
	}
	back := try(func(p *v1alpha1.KubeletPool) { p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)} })
	if back.Name.Revision != 1 || len(back.Waves) != 1 {
		t.Errorf("what was completed before takes %+v", back.Waves)
	}
	wrong := try(func(p *v1alpha1.KubeletPool) { p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"kind":"Pod"}`)} })
	if !strings.Contains(wrong.Fault, "spec.layers[fleet]: inline: its kind is not KubeletConfiguration") {
		t.Errorf("its fault is %q", wrong.Fault)
	}
	if gone := Try(World{}, "workers"); gone.Known || gone.Members != nil {
		t.Errorf("of no pool is seen %+v", gone)
	}
}

func TestOwners(t *testing.T) {
	pool := func(name string, priority int32, label string) Pool {
		return ReadPool(newPool(name, func(p *v1alpha1.KubeletPool) {
			p.Spec.Selector.MatchLabels, p.Spec.Priority = map[string]string{label: "yes"}, priority
		}), nil, time.LoadLocation)
	}
	pools := []Pool{pool("all", 0, "any"), pool("high", 5, "high"), pool("also", 5, "also"), pool("low", -1, "any")}
	for labels, want := range map[string]string{
		"": "", "any": "all", "any high": "high", "any high also": "also high", "also": "also",
	} {
		n := Node{Labels: map[string]string{}}
		for _, label := range strings.Fields(labels) {
			n.Labels[label] = "yes"
		}
		if got := Owners(pools, &n); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("a node with %q belongs to %v, want %q", labels, got, want)
		}
		n.Labels[PoolLabel] = "none"
		if got := Owners(pools, &n); len(got) > 0 {
			t.Errorf("a node that is in no pool belongs to %v", got)
		}
	}
}
