package rollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// broken is thrown where an invariant does not hold.
type broken struct {
	invariant int
	words     string
}

func (s *sim) breaks(invariant int, format string, words ...any) {
	panic(broken{invariant, fmt.Sprintf(format, words...)})
}

// view is what a plan has to be judged by: the facts of the world that it was made from, read in another way than the core reads them.
type view struct {
	w       *World
	plan    *Plan
	owners  map[types.UID]*Pool
	tied    map[types.UID]bool
	members map[string][]*Node
}

func newView(w *World, plan *Plan) *view {
	v := &view{w, plan, make(map[types.UID]*Pool, len(w.Nodes)), map[types.UID]bool{}, map[string][]*Node{}}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		var best []*Pool
		for j := range w.Pools {
			p := &w.Pools[j]
			if n.Labels[PoolLabel] == "none" || !p.selector.Matches(labels.Set(n.Labels)) {
				continue
			}
			if len(best) > 0 && p.Spec.Priority > best[0].Spec.Priority {
				best = nil
			}
			if len(best) == 0 || p.Spec.Priority == best[0].Spec.Priority {
				best = append(best, p)
			}
		}
		if v.tied[n.UID] = len(best) > 1; len(best) == 1 {
			v.owners[n.UID] = best[0]
			v.members[best[0].Name] = append(v.members[best[0].Name], n)
		}
	}
	return v
}

func (v *view) status(p *Pool) *v1alpha1.KubeletPoolStatus {
	if status, is := v.plan.Status[p.Name]; is {
		return &status
	}
	return &p.Status
}

func (v *view) young(n *Node) bool { return !n.Ready && v.w.Now.Sub(n.Created).Abs() < youth }

func owned(n *Node) bool { return n.Mark.Pool != "" && n.Mark.Assignment == n.Source }

func (v *view) away(n *Node) bool {
	if seen := v.plan.Seen[n.UID]; !n.Ready || n.Cordoned || seen.Runs && seen.Running < 15*time.Second {
		return true
	}
	if n.Reason == saysRolledBack && n.Mark.Pool != "" {
		return true
	}
	return owned(n) && (n.Observed != n.Source || slices.Contains([]string{saysWouldDisrupt, saysApplying, saysAssignmentLost, saysSyncFailed,
		saysInvalidAssignment, saysFallbackBroken, saysEnvironmentFailing, saysInternalError, saysStopped}, n.Reason))
}

func atRisk(n *Node, retry Retry, last bool) bool {
	proven := n.Observed == n.Source && n.Good == n.Source && n.Active == n.Source && n.Reason == saysActive
	return owned(n) && n.Retry == retry && !proven && !n.Cordoned && !n.Leaving && !n.Updating && n.Supervised && n.Layered && !held(n) && (last || n.Reason != saysWouldDisrupt || n.Observed != n.Source)
}

// moves: writes that cost something.
func moves(w *Write) bool { return w.Why == WhyMove || w.Why == WhyLate || w.Why == WhyBack }

// check asks whether a plan keeps the invariants.
func (s *sim) check(c *controller, w *World, plan *Plan) {
	v := newView(w, plan)
	s.checkWrites(v)
	for i := range w.Pools {
		p := &w.Pools[i]
		s.checkUnavailable(v, p)
		s.checkWave(v, p)
		s.checkProgress(v, p)
		s.checkStops(v, p)
		s.remember(v, p)
	}
	if !w.Synced && (len(plan.Writes) > 0 || len(plan.Revisions) > 0) {
		s.breaks(9, "something is written by a process that knows nothing yet")
	}
	if len(plan.Writes) > rate {
		s.breaks(5, "%d writes at once", len(plan.Writes))
	}
	s.count(v)
	if s.samples++; s.samples%s.every == 0 {
		s.checkClock(c, w, plan)
		s.checkTwice(c, w, plan)
		s.checkUndo(c, w)
		s.checkEqual(c, w, plan)
	}
}

// checkWrites: whose Nodes are written, and with what.
func (s *sim) checkWrites(v *view) {
	written := map[types.UID]bool{}
	for i := range v.plan.Writes {
		w := &v.plan.Writes[i]
		at := slices.IndexFunc(v.w.Nodes, func(n Node) bool { return n.UID == w.UID })
		if at < 0 {
			s.breaks(6, "%s is written, which is not there", w.Node)
		}
		n := &v.w.Nodes[at]
		p := v.owners[n.UID]
		switch {
		case v.tied[n.UID]:
			s.breaks(11, "%s is written, which several pools select", n.Name)
		case p == nil:
			s.breaks(14, "%s is written, which is in no pool", n.Name)
		case p.Name != w.Pool:
			s.breaks(11, "%s is written for %s, and belongs to %s", n.Name, w.Pool, p.Name)
		case written[n.UID]:
			s.breaks(7, "%s is written twice", n.Name)
		case held(n), n.Source != "" && !owned(n), n.Mark.Pool != "" && !n.Mark.records(n.Source), p.Spec.Adoption == v1alpha1.AdoptNever && n.Mark.Pool != p.Name:
			s.breaks(3, "%s is written, which is in a person's hands: %q, mark %q", n.Name, n.Source, n.Mark)
		case w.RemoveTaint != "" && w.RemoveTaint != p.Spec.JoinTaint:
			s.breaks(18, "%s loses the taint %s", n.Name, w.RemoveTaint)
		case p.Spec.Rollout.Paused && moves(w):
			s.breaks(19, "%s is moved in a pool that is paused", n.Name)
		}
		written[n.UID] = true
		s.checkRevision(v, p, n, w)
	}
}

// checkRevision: no stopped revision, and no new node gets the one that is tried.
func (s *sim) checkRevision(v *view, p *Pool, n *Node, w *Write) {
	if w.Source == "" {
		return
	}
	status := v.status(p)
	for _, stop := range status.Stops {
		if stop.Hash == w.Retry.Hash && w.Retry.Attempt <= stop.Attempt {
			s.breaks(4, "%s gets revision %s, attempt %d, stopped at attempt %d", n.Name, w.Retry.Hash, w.Retry.Attempt, stop.Attempt)
		}
	}
	before := p.Status.Stable
	fresh := v.young(n) && !(n.Mark.Pool == p.Name && n.Retry.Hash == w.Retry.Hash)
	if fresh && w.Source != Local && !n.Cordoned {
		stable := before != nil && before.Hash == w.Retry.Hash || status.Stable != nil && status.Stable.Hash == w.Retry.Hash
		deadlock := before != nil && n.Retry.Hash == before.Hash && verdict(n.Reason)
		superseded := n.Retry.Pool == p.Name && (before == nil || n.Retry.Hash != before.Hash) // it was at risk before: no new node
		if !stable && !deadlock && !superseded {
			s.breaks(12, "%s is new, and gets %s", n.Name, w.Retry)
		}
	}
	if layered := p.Spec.Rollout.Pin == nil && w.Why == WhyMove; layered {
		for _, layer := range p.layers {
			if known, is := v.w.Layers[layer.ref]; !layer.inline && (!is || known.Missing || known.Fault != "" && status.Target.Revision == 0) {
				s.breaks(9, "%s is moved, and layer %s is not there", n.Name, layer.ref)
			}
		}
	}
	for i := range v.w.Nodes {
		m := &v.w.Nodes[i]
		if moves(w) && m.Retry == w.Retry && m.Mark.Pool == p.Name && m.Observed == m.Mark.Assignment && m.RetryObserved == m.Retry && final(m.Reason) &&
			w.Why == WhyMove {
			s.breaks(5, "%s gets %s, whose verdict %s shows", n.Name, w.Retry, m.Name)
		}
	}
}

// limitOf is maxUnavailable by the letter.
func (v *view) limitOf(p *Pool) int {
	members := 0
	for _, n := range v.members[p.Name] {
		if !held(n) && !v.young(n) {
			members++
		} else if v.young(n) && n.Retry.Pool == p.Name && !held(n) {
			members++ // it may be at risk
		}
	}
	a := amount{10, true}
	if from := p.Spec.Rollout.MaxUnavailable; from != nil {
		a, _ = readAmount(from, a)
	}
	if a.value == 0 {
		return 0
	}
	return max(1, a.of(members))
}

// checkUnavailable: nobody becomes unavailable by our act beyond maxUnavailable; a freeze freezes; one control plane at a time.
func (s *sim) checkUnavailable(v *view, p *Pool) {
	before, ours, planes, ourPlanes := 0, 0, 0, 0
	for i := range v.w.Nodes {
		if n := &v.w.Nodes[i]; n.ControlPlane && v.away(n) && !v.young(n) && v.owners[n.UID] != nil {
			planes++
		}
	}
	for _, n := range v.members[p.Name] {
		if v.away(n) && !v.young(n) {
			before++
		}
		for i := range v.plan.Writes {
			if w := &v.plan.Writes[i]; w.UID == n.UID && w.Source != "" && moves(w) {
				if v.limitOf(p) == 0 {
					s.breaks(1, "%s is moved in a frozen pool", n.Name)
				}
				if !v.away(n) {
					ours++
					if n.ControlPlane {
						ourPlanes++
					}
				}
			}
		}
	}
	if limit := v.limitOf(p); ours > 0 && before+ours > limit {
		s.breaks(1, "%d are unavailable in %s, and %d more would be, of at most %d", before, p.Name, ours, limit)
	}
	if ourPlanes > 0 && planes+ourPlanes > 1 {
		s.breaks(1, "%d control planes are unavailable, and %d more would be", planes, ourPlanes)
	}
}

// goalOf is an upper bound of the open wave's goal, by the letter.
func (v *view) goalOf(p *Pool, number int) int {
	cohorts := map[string]bool{}
	members := v.members[p.Name]
	for _, n := range members {
		cohorts[n.Minor+n.Arch+n.Labels["gpu"]] = true
	}
	goal := len(cohorts)
	for _, w := range p.rules.waves[:min(number, len(p.rules.waves))] {
		if w.nodes.percent {
			goal = max(goal, (w.nodes.value*len(members)+99)/100)
		} else {
			goal = max(goal, min(w.nodes.value, len(members)))
		}
	}
	return goal
}

func (s *sim) checkWave(v *view, p *Pool) {
	status := v.status(p)
	if status.Wave == nil || status.Target == nil || p.wasDone(status.Target.Hash) || status.Target.Revision == 0 {
		return
	}
	number := int(status.Wave.Number)
	retry := Retry{p.Name, status.Target.Hash, status.Target.Attempt}
	last := number >= len(p.rules.waves)
	before, ours := 0, 0
	cohorts := map[string]int{}
	proven := map[string]bool{}
	layered := v.layered(p, status.Target.Hash)
	for _, n := range v.members[p.Name] {
		cohort := n.Minor + n.Arch
		if layered {
			cohort += n.Labels["gpu"]
		}
		if atRisk(n, retry, last) {
			before++
			cohorts[cohort]++
		}
		if owned(n) && n.Reason == saysActive && n.Good == n.Source {
			proven[cohort] = true
		}
	}
	for _, n := range v.members[p.Name] {
		cohort := n.Minor + n.Arch
		if layered {
			cohort += n.Labels["gpu"]
		}
		for i := range v.plan.Writes {
			if w := &v.plan.Writes[i]; w.UID == n.UID && w.Retry == retry && w.Why != WhyTakeBack && !(n.Retry == retry && atRisk(n, retry, last)) {
				ours++
				if cohorts[cohort]++; !proven[cohort] && cohorts[cohort] > 1 {
					s.breaks(2, "cohort %s has no proof, and %s would be another node at risk", cohort, n.Name)
				}
			}
		}
	}
	if goal := v.goalOf(p, number); ours > 0 && before+ours > goal {
		s.breaks(2, "%d at risk in %s, and %d more would be, in wave %d of at most %d", before, p.Name, ours, number, goal)
	}
}

// layered: the revision has a layer for some nodes only.
func (v *view) layered(p *Pool, hash string) bool {
	is := func(r Revision) bool { return r.Hash == hash && len(r.Layers) > 1 }
	return slices.ContainsFunc(p.Revisions, is) || slices.ContainsFunc(v.plan.Revisions, is)
}

func (p *Pool) wasDone(hash string) bool {
	if p.Status.Stable != nil && p.Status.Stable.Hash == hash {
		return true
	}
	return slices.ContainsFunc(p.Status.Revisions, func(r v1alpha1.RevisionStatus) bool {
		return r.Hash == hash && r.Result == v1alpha1.ResultCompleted
	})
}

// checkProgress: a wave passes only by nodes that are there and have proven the revision.
func (s *sim) checkProgress(v *view, p *Pool) {
	status := v.status(p)
	old := p.Status
	if status.Target == nil || status.Target.Revision == 0 || p.wasDone(status.Target.Hash) {
		return
	}
	same := old.Target != nil && *old.Target == *status.Target
	completed := status.Stable != nil && status.Stable.Hash == status.Target.Hash
	passed := completed
	if status.Wave != nil {
		passed = status.Wave.Number > 1 && (!same || old.Wave == nil || old.Wave.Number < status.Wave.Number)
		if same && old.Wave != nil && status.Wave.Number < old.Wave.Number && int(old.Wave.Number) <= len(p.rules.waves) {
			s.breaks(6, "the wave fell from %d to %d", old.Wave.Number, status.Wave.Number)
		}
	}
	if !passed {
		return
	}
	proven := 0
	for _, n := range v.members[p.Name] {
		if owned(n) && n.Reason == saysActive && n.Good == n.Source {
			proven++
		}
	}
	if proven == 0 {
		s.breaks(6, "a wave of %s has passed by nobody", p.Name)
	}
}

// checkStops: a stop stays until its revision is completed after all, and never speaks of an earlier attempt than before.
func (s *sim) checkStops(v *view, p *Pool) {
	status := v.status(p)
	for _, old := range p.Status.Stops {
		kept := slices.ContainsFunc(status.Stops, func(stop v1alpha1.Stop) bool { return stop.Hash == old.Hash && stop.Attempt >= old.Attempt })
		if !kept && (status.Stable == nil || status.Stable.Hash != old.Hash) {
			s.breaks(4, "the stop of %s, attempt %d, is forgotten", old.Hash, old.Attempt)
		}
	}
}

// limits are what plans were held to, for what arrives later.
type limits struct {
	goals map[Retry]int
	away  int
}

func (s *sim) remember(v *view, p *Pool) {
	l := s.limits[p.Name]
	if l == nil {
		l = &limits{goals: map[Retry]int{}}
		s.limits[p.Name] = l
	}
	l.away = max(l.away, v.limitOf(p))
	if status := v.status(p); status.Wave != nil && status.Target != nil {
		retry := Retry{p.Name, status.Target.Hash, status.Target.Attempt}
		l.goals[retry] = max(l.goals[retry], v.goalOf(p, int(status.Wave.Number)))
	}
}

// checkSent: what leaves a process is nothing that the truth forbids.
func (s *sim) checkSent(_ *controller, w Write) {
	object := s.api.pools[w.Pool]
	if object == nil || w.Source == "" {
		return
	}
	for _, stop := range object.Status.Stops {
		if stop.Hash == w.Retry.Hash && w.Retry.Attempt <= stop.Attempt {
			s.breaks(4, "%s is sent %s after the stop", w.Node, w.Retry)
		}
	}
	if m := s.api.machines[w.UID]; m != nil && m.ResourceVersion == w.ResourceVersion && m.Retry == w.Retry && m.Source == w.Source {
		s.breaks(7, "%s is sent %s twice", w.Node, w.Retry)
	}
}

// arrived: whatever processes there are, what they do together keeps to the limits.
func (s *sim) arrived(w Write) {
	s.writes++
	if w.Source == "" || w.Why != WhyMove {
		return
	}
	risk := 0
	for _, m := range s.api.machines {
		if !m.touched && !m.heldForPods && atRisk(&m.Node, w.Retry, false) {
			risk++
		}
	}
	if l := s.limits[w.Pool]; l != nil && risk > l.goals[w.Retry] {
		s.breaks(2, "%d nodes are at risk with %s, of at most %d", risk, w.Retry, l.goals[w.Retry])
	}
}

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
			if data, err := r.Data(); err == nil && r.Pool == p.Name {
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
	if !reflect.DeepEqual(other.Writes, plan.Writes) || !maps.Equal(other.Clocks, plan.Clocks) {
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
		if p.Status.Stable == nil || !w.Synced || p.fault != "" || p.Status.Target == nil {
			continue
		}
		pin := p.Status.Stable.Revision
		p.Spec.Rollout.Pin, p.Spec.Rollout.Paused, p.rules.maxUnavailable = &pin, false, amount{100, true}
		undone := *w
		undone.Pools = []Pool{p}
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
				len(plan.Writes) == 0 && w.Denied[n.UID] == "" && s.differentVariant(&p, n, pin) {
				s.breaks(16, "undo of %s leaves %s alone: %s", p.Name, n.Name, n.Reason)
			}
		}
	}
}

// differentVariant: what the node has is not what it should have after the undo.
func (s *sim) differentVariant(p *Pool, n *Node, pin int64) bool {
	if pin == 0 {
		return n.Source != Local
	}
	for i := range p.Revisions {
		if r := &p.Revisions[i]; r.Number == pin {
			v, _ := newVariants(r).variantFor(labels.Set(n.Labels))
			return v.source != n.Source
		}
	}
	return false
}

// count keeps which classes and reasons were reached.
func (s *sim) count(v *view) {
	for _, status := range v.plan.Status {
		c := &status.Nodes
		for class, n := range map[Class]int32{Failed: c.Failed, Leaving: c.Leaving, Unsupervised: c.Unsupervised, Manual: c.Manual, Held: c.Held,
			Skipped: c.Skipped, Joining: c.Joining, Applying: c.Applying, Waiting: c.Waiting, OnTrial: c.OnTrial, Proven: c.Proven, Blocked: c.Blocked,
			Late: c.Late, Old: c.Old} {
			s.reached["class "+string(class)] += int(n)
		}
		for i := range status.Conditions {
			s.reached[status.Conditions[i].Type+" "+status.Conditions[i].Reason]++
		}
	}
	for i := range v.plan.Events {
		s.reached["event "+v.plan.Events[i].Reason]++
	}
	for i := range v.plan.Writes {
		s.reached["write "+string(v.plan.Writes[i].Why)]++
	}
}
