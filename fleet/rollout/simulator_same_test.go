package rollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// checkTwice: the same world gives the same plan, whatever the order; and a plan that was carried out has nothing left to say.
func (s *sim) checkTwice(c *controller, w *World, plan *Plan) {
	again := *w
	again.Nodes = slices.Clone(w.Nodes)
	s.random.Shuffle(len(again.Nodes), func(i, j int) { again.Nodes[i], again.Nodes[j] = again.Nodes[j], again.Nodes[i] })
	if other := c.decide(again); !reflect.DeepEqual(&other, plan) {
		s.breaks(20, "another order, another plan: %s", differs(plan, &other))
	}
	again.Elapsed, again.Seen, again.Gone, again.Clocks = 0, plan.Seen, plan.Gone, plan.Clocks
	again.Pools = slices.Clone(w.Pools)
	for i := range again.Pools {
		p := &again.Pools[i]
		if status, is := plan.Status[p.Name]; is {
			p.Status = status
		}
		for _, r := range plan.Revisions {
			if data, err := r.Data(); err == nil && r.Pool == p.Name && w.RefusedRevisions[r.ObjectName()] == "" {
				p.Revisions = append(p.Revisions[:len(p.Revisions):len(p.Revisions)], ReadRevision(p.Name, r.ObjectName(), data))
			}
		}
	}
	other := c.decide(again)
	if len(other.Status) > 0 {
		for name, status := range other.Status {
			s.breaks(17, "the status of %s is written again: %s", name, differs(plan.Status[name], status))
		}
	}
	if !reflect.DeepEqual(other.Writes, plan.Writes) {
		s.breaks(20, "the second plan has other writes: %v, then %v", plan.Writes, other.Writes)
	}
}

func differs(a, b any) string { return fmt.Sprintf("\n%+v\n%+v", a, b) }

// checkClock: a step of the API server's clock moves no wave, and stops nothing.
func (s *sim) checkClock(c *controller, w *World, plan *Plan) {
	for i := range w.Nodes {
		if w.Now.Sub(w.Nodes[i].Created) < 3*youth {
			return
		}
	}
	stepped := *w
	stepped.Now = w.Now.Add(time.Hour)
	other := c.decide(stepped)
	same := maps.EqualFunc(other.Clocks, plan.Clocks, func(a, b Clock) bool {
		a.Opened, b.Opened = time.Time{}, time.Time{} // it is a date, of which nothing is subtracted
		return a == b
	})
	if !reflect.DeepEqual(other.Writes, plan.Writes) || !same {
		s.breaks(10, "a step of the clock by an hour gives other writes: %v, then %v", plan.Writes, other.Writes)
	}
}

// checkEqual: another resourceVersion of a layer with the same content, or a label that no selector names, moves nothing.
func (s *sim) checkEqual(c *controller, w *World, plan *Plan) {
	edited := *w
	edited.Layers = map[Ref]Layer{}
	for ref, layer := range w.Layers {
		layer.ResourceVersion += "1"
		edited.Layers[ref] = layer
	}
	edited.Nodes = slices.Clone(w.Nodes)
	for i := range edited.Nodes {
		edited.Nodes[i].Labels = maps.Clone(edited.Nodes[i].Labels)
		edited.Nodes[i].Labels["edited"] = "true"
	}
	if other := c.decide(edited); !reflect.DeepEqual(other.Writes, plan.Writes) {
		s.breaks(13, "equal content gives other writes: %v, then %v", plan.Writes, other.Writes)
	}
}

// checkUndo: whatever the state, one pin takes the pool back to what was stable: nothing holds it up, and what has not begun is taken back.
func (s *sim) checkUndo(c *controller, w *World) {
	for i := range w.Pools {
		p := w.Pools[i]
		if p.Status.Stable == nil || !w.Synced || p.fault != "" || p.Status.Target == nil || w.Mute[p.Name] {
			continue
		}
		pin := p.Status.Stable.Revision
		p.Spec.Rollout.Pin, p.Spec.Rollout.Paused, p.rules.maxUnavailable = pinned(pin), false, amount{100, true}
		undone := *w
		undone.Pools, undone.Budgets = []Pool{p}, nil
		plan := c.decide(undone)
		v := newView(&undone, &plan)
		status := v.status(&p)
		if status.Target == nil || status.Target.Revision != pin {
			if !slices.ContainsFunc(p.Revisions, func(r Revision) bool { return r.Number == pin && !r.Tampered }) && pin != 0 {
				continue
			}
			s.breaks(16, "undo of %s does not aim at %d", p.Name, pin)
		}
		old := Retry{p.Name, p.Status.Target.Hash, p.Status.Target.Attempt}
		if old.Hash == status.Target.Hash || p.wasDone(old.Hash) || p.Status.Target.Revision == 0 {
			continue
		}
		for _, n := range v.members[p.Name] {
			if owned(n) && n.Retry == old && n.Ready && !n.Cordoned && !held(n) && n.Supervised && n.Layered && !n.Updating && !n.Leaving && !n.ControlPlane &&
				len(plan.Writes) == 0 && w.Denied[n.UID] == "" && s.differentVariant(&p, n, pin) && !v.awaitsUpgraded(n, status.Target.Hash, s.variantIn(&p, n, pin)) {
				s.breaks(16, "undo of %s leaves %s alone: %s", p.Name, n.Name, n.Reason)
			}
		}
	}
}

// awaitsUpgraded reports whether another node of the cohort has the revision, and has run it under its new kubelet too briefly to prove it there: it
// is at risk, and no other node of the cohort is beside it. want is what the node gets of the revision.
func (v *view) awaitsUpgraded(n *Node, hash, want string) bool {
	return hash != "" && slices.ContainsFunc(v.w.Nodes, func(other Node) bool {
		return other.Minor == n.Minor && other.Arch == n.Arch && other.Source == want && other.Ready && other.Retry.Pool == n.Retry.Pool &&
			other.Retry.Hash == hash && v.plan.Seen[other.UID].Upgraded
	})
}

// differentVariant: what the node has is not what it should have after the undo.
func (s *sim) differentVariant(p *Pool, n *Node, pin int64) bool {
	want := s.variantIn(p, n, pin)
	return want != "" && want != n.Source
}

// variantIn is what a node gets of a revision; empty where that is not kept.
func (s *sim) variantIn(p *Pool, n *Node, number int64) string {
	if number == 0 {
		return nodev1.Local
	}
	for i := range p.Revisions {
		if r := &p.Revisions[i]; r.Number == number {
			v, _ := newVariants(r).variantFor(labels.Set(n.Labels))
			return v.source
		}
	}
	return ""
}
