package plugin

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// Who is adopted and who is released changes hands, and nothing else about it changes.
func TestAdoptAndRelease(t *testing.T) {
	const own = "kubelet-config/own/kubelet"
	byHand := func(p *fakePool) *corev1.Node {
		n := p.member("n1", 2, "Active")
		n.Annotations[nodev1.ConfigSourceAnnotation] = own
		return n
	}
	for name, row := range map[string]struct {
		command string
		node    func(*fakePool) *corev1.Node
		did     string
		says    string
		mark    string // "=": as it was
		retry   bool
		label   string
	}{
		"assigned by hand": {"adopt", byHand, "adopted", "n1: pool workers moves it from " + own + " to revision 2 when its turn comes", `{"pool":"workers","assignment":"` + own + `","attempt":1}`, false, ""},
		"never assigned":   {"adopt", func(*fakePool) *corev1.Node { return localNode("n1") }, "adopted", "moves it from local to revision 2", `{"pool":"workers","attempt":1}`, false, ""},
		"reset by hand": {"adopt", func(p *fakePool) *corev1.Node {
			n := p.member("n1", 2, "Active")
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
			return n
		}, "adopted", "from local to revision 2", `{"pool":"workers","attempt":1}`, false, ""},
		"released before": {"adopt", func(p *fakePool) *corev1.Node {
			n := p.member("n1", 1, "Active")
			n.Labels[rollout.PoolLabel] = view.NoPool
			return n
		}, "adopted", "moves it from", "=", true, ""},
		"held": {"adopt", func(p *fakePool) *corev1.Node {
			n := byHand(p)
			n.Labels[rollout.RolloutLabel] = "hold"
			return n
		}, "adopted", "warning: n1 has the label kubelet-supervisor.io/rollout=hold, and is not moved while it has", `{"pool":"workers","assignment":"` + own + `","attempt":1}`, false, ""},
		"a member": {"adopt", func(p *fakePool) *corev1.Node { return p.member("n1", 2, "Active") }, "unchanged",
			"nothing is changed: node n1 is in the hands of pool workers already", "=", true, ""},
		"release": {"release", func(p *fakePool) *corev1.Node { return p.member("n1", 2, "Refused") }, "released",
			"n1: no longer in pool workers; it keeps what it is assigned, kubelet-config/pool-workers-", "=", true, view.NoPool},
		"release of a node without a pool": {"release", func(*fakePool) *corev1.Node {
			n := localNode("n1")
			n.Labels = nil
			return n
		}, "released", "n1: No pool selects it now, and none will; it keeps what it is assigned, local", "", false, view.NoPool},
		"released already": {"release", func(p *fakePool) *corev1.Node {
			n := p.member("n1", 1, "Active")
			n.Labels[rollout.PoolLabel] = view.NoPool
			return n
		}, "unchanged", "node n1 is in no pool already", "=", true, view.NoPool},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePool(t, few, many)
			before := row.node(p)
			b := newPoolBench(t, p, before.DeepCopy())
			b.do(t, "rollout", row.command, "n1", "--dry-run=client")
			if n := b.node(t, "n1"); !maps.Equal(n.Annotations, before.Annotations) || !maps.Equal(n.Labels, before.Labels) {
				t.Errorf("a dry run changed it to %v %v", n.Labels, n.Annotations)
			}
			stdout, stderr := b.do(t, "rollout", row.command, "node/n1")
			if stdout != "node/n1 "+row.did+"\n" {
				t.Errorf("it prints %q", stdout)
			}
			contains(t, stderr, row.says)
			n := b.node(t, "n1")
			mark := row.mark
			if mark == "=" {
				mark = before.Annotations[rollout.MarkAnnotation]
			}
			if _, retry := n.Annotations[nodev1.RetryAnnotation]; n.Annotations[rollout.MarkAnnotation] != mark || retry != row.retry || n.Labels[rollout.PoolLabel] != row.label ||
				n.Annotations[nodev1.ConfigSourceAnnotation] != before.Annotations[nodev1.ConfigSourceAnnotation] {
				t.Errorf("it has %v and %v, want the mark %q", n.Labels, n.Annotations, mark)
			}
		})
	}
}

// An adopted node is one that its pool moves, by the controller's own rules.
func TestAdoptedIsMoved(t *testing.T) {
	p := newFakePool(t, few, many)
	p.Spec.Adoption = v1alpha1.AdoptNever
	byHand := p.member("n1", 1, "Active")
	byHand.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/own/kubelet"
	b := newPoolBench(t, p, byHand)
	class := func() rollout.Class {
		node := rollout.ReadNode(b.node(t, "n1"))
		seen := rollout.Look(rollout.World{Now: noon, Nodes: []rollout.Node{node}, Pools: []rollout.Pool{rollout.ReadPool(p.KubeletPool, p.kept, time.LoadLocation)}}, "workers")
		if len(seen.Members) == 0 {
			return ""
		}
		return seen.Members[0].Class
	}
	for _, step := range []struct {
		command []string
		want    rollout.Class
	}{
		{nil, rollout.Manual}, {[]string{"adopt", "n1"}, rollout.Old}, {[]string{"release", "n1"}, ""}, {[]string{"adopt", "n1"}, rollout.Old},
	} {
		if step.command != nil {
			b.do(t, append([]string{"rollout"}, step.command...)...)
		}
		if got := class(); got != step.want {
			t.Errorf("after %v it is %q, want %q", step.command, got, step.want)
		}
	}
}

func TestAdoptRefuses(t *testing.T) {
	p := newFakePool(t, few, many)
	outside, odd := localNode("outside"), localNode("odd")
	outside.Labels = nil
	odd.Annotations[nodev1.ConfigSourceAnnotation] = "what is this"
	b := newPoolBench(t, p, outside, odd, localNode("n1"))
	tie := p.object(t)
	tie.SetName("also")
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"outside"}, "node outside: no pool selects it"},
		{[]string{"odd"}, `node odd: its assignment "what is this" is malformed`},
		{[]string{"nobody"}, `there is no node "nobody"`},
		{nil, "requires at least 1 arg(s)"},
	} {
		code, _, stderr := b.run(t, slices.Concat([]string{"rollout", "adopt"}, test.arguments)...)
		if code != 1 {
			t.Errorf("%v: exit code %d", test.arguments, code)
		}
		contains(t, stderr, test.want)
	}
	if err := b.pools.Tracker().Create(poolsResource(), tie, ""); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := b.run(t, "rollout", "adopt", "n1")
	if code != 1 {
		t.Errorf("a tie: exit code %d", code)
	}
	contains(t, stderr, "node n1: the pools also, workers select it with the same priority")
}
