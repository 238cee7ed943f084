package rollout

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

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
	stable := v.status(p).Stable
	before, strangers, changing, ours, back, planes, ourPlanes := 0, 0, 0, 0, 0, 0, 0
	spared := max(1, len(v.members[p.Name])/100)
	for i := range v.w.Nodes {
		if n := &v.w.Nodes[i]; n.ControlPlane && v.away(n) && !v.young(n) && v.owners[n.UID] != nil {
			planes++
		}
	}
	for _, n := range v.members[p.Name] {
		if v.away(n) && !v.young(n) {
			before++
			switch {
			case v.dead(n): // it will not answer
				strangers++
			case v.longIll(n) && spared > 0: // nor will this one
				strangers, spared = strangers+1, spared-1
			case v.changes(n):
				changing++
			case n.Mark.Pool != p.Name || p.wasDone(n.Retry.Hash) || n.Retry.Hash == localHash || stable != nil && n.Retry.Hash == stable.Hash:
				strangers++
			}
		}
		for i := range v.plan.Writes {
			if w := &v.plan.Writes[i]; w.UID == n.UID && w.Source != "" && moves(w) {
				if v.limitOf(p) == 0 {
					s.breaks(1, "%s is moved in a frozen pool", n.Name)
				}
				if v.away(n) {
					continue
				}
				if n.ControlPlane {
					ourPlanes++
				}
				if ours++; v.goesBack(w) {
					back++
				}
			}
		}
	}
	limit, counted := v.limitOf(p), before
	if ours == back { // who died of something else holds nobody back, and one may always go
		counted -= strangers
	}
	if ours > 0 && counted+ours > limit && !(back == 1 && ours == 1 && changing == 0) {
		s.breaks(1, "%d are unavailable in %s, and %d more would be, of at most %d", counted, p.Name, ours, limit)
	}
	if ourPlanes > 0 && planes+ourPlanes > 1 {
		s.breaks(1, "%d control planes are unavailable, and %d more would be", planes, ourPlanes)
	}
}

// dead: it was not Ready when it was assigned what it has, and is not.
func (v *view) dead(n *Node) bool { return !n.Ready && n.Mark.NotReady }

// longIll: it was Ready when it was assigned what it has, and has not been for five minutes.
func (v *view) longIll(n *Node) bool {
	seen := v.plan.Seen[n.UID]
	return !n.Ready && !n.Mark.NotReady && seen.Ill && seen.IllFor >= 5*time.Minute
}

// lacks, by the letter: a member that could have the target has something else, and is not on its way.
func (v *view) lacks(p *Pool, status *v1alpha1.KubeletPoolStatus, n *Node) bool {
	able := n.Ready && !n.Cordoned && !n.Draining && !n.Leaving && !n.Updating && n.Supervised && n.Layered && !held(n) && !v.young(n) && v.w.Denied[n.UID] == ""
	ours := n.Source == "" && n.Mark.Pool == "" && p.Spec.Adoption != v1alpha1.AdoptNever || owned(n) && (n.Mark.Pool == p.Name || p.Spec.Adoption != v1alpha1.AdoptNever)
	if !able || !ours || status.Target == nil || v.w.Mute[p.Name] {
		return false
	}
	if status.Target.Local {
		return n.Source != "" && n.Source != nodev1.Local
	}
	want := v.gives(p, status.Target.Hash, n)
	return want != "" && n.Source != want && !(n.Source == "" && want == nodev1.Local) && (n.Retry.Pool != p.Name || n.Retry.Hash != status.Target.Hash)
}

// gives is what a node gets of a revision; nothing where that is not known.
func (v *view) gives(p *Pool, hash string, n *Node) string {
	for _, all := range [][]Revision{p.Revisions, v.plan.Revisions} {
		for i := range all {
			if r := &all[i]; r.Pool == p.Name && r.Hash == hash && !r.Tampered {
				return r.SourceFor(n.Labels)
			}
		}
	}
	return ""
}

// goesBack: it gets what its pool has completed before.
func (v *view) goesBack(w *Write) bool {
	if w.Why == WhyRollback {
		return true
	}
	at := slices.IndexFunc(v.w.Pools, func(p Pool) bool { return p.Name == w.Pool })
	return w.Why == WhyAdvance && at >= 0 && (v.w.Pools[at].wasDone(w.Retry.Hash) || w.Retry.Hash == localHash)
}

// changes, by the letter: its kubelet is restarted, may be at any moment, or was just now.
func (v *view) changes(n *Node) bool {
	there := *n
	there.Ready, there.Cordoned, there.Draining = true, false, false
	return v.away(&there)
}

// goalOf is an upper bound of the open wave's goal, by the letter.
func (v *view) goalOf(p *Pool, number int) int {
	cohorts := map[string]bool{}
	members := v.members[p.Name]
	for _, n := range members {
		cohorts[n.Minor+n.Arch+n.Labels["gpu"]] = true
		if status := v.status(p); n.Retry.Pool == p.Name && status.Target != nil && n.Retry.Hash == status.Target.Hash {
			cohorts[n.Minor+n.Arch+n.Source] = true // what it has for its labels of before
		}
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
	if status.Wave == nil || status.Target == nil || status.Target.Local {
		return
	}
	done := p.wasDone(status.Target.Hash) // then the waves are of those whose cohort has not proven it
	number := int(status.Wave.Number)
	retry := targetOf(p.Name, status)
	before, ours := 0, 0
	cohorts := map[string]int{}
	proven := map[string]bool{}
	for _, n := range v.members[p.Name] {
		cohort := n.Minor + n.Arch + n.Source
		if atRisk(n, retry) && !v.dead(n) && !(done && provenFor(status, n, &Write{Source: n.Source, Retry: retry})) {
			before++
			cohorts[cohort]++
		}
		if owned(n) && n.Reason == nodev1.ReasonActive && n.Good == n.Source {
			proven[cohort] = true
		}
	}
	for _, n := range v.members[p.Name] {
		for i := range v.plan.Writes {
			w := &v.plan.Writes[i]
			if w.UID != n.UID || n.Retry == retry && atRisk(n, retry) || !(w.Retry == retry && w.Why != WhyRevert || w.Why == WhyDrain && n.Retry == retry) {
				continue
			}
			if done && provenFor(status, n, &Write{Source: cmp.Or(w.Source, n.Source), Retry: retry}) {
				continue
			}
			cohort := n.Minor + n.Arch + cmp.Or(w.Source, n.Source)
			ours++
			if cohorts[cohort]++; !proven[cohort] && cohorts[cohort] > 1 && w.Source != nodev1.Local { // a node's own configuration is its own
				s.breaks(2, "cohort %s has no proof, and %s would be another node at risk", cohort, n.Name)
			}
		}
	}
	if goal := v.goalOf(p, number); ours > 0 && before+ours > goal {
		s.breaks(2, "%d at risk in %s, and %d more would be, in wave %d of at most %d", before, p.Name, ours, number, goal)
	}
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
	if status.Target == nil || status.Target.Local || p.wasDone(status.Target.Hash) {
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
		if owned(n) && (n.Reason == nodev1.ReasonActive || n.Reason == nodev1.ReasonLocal) && n.Good == n.Source {
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
		m := s.api.machines[w.UID]
		if stop.Hash == w.Retry.Hash && w.Retry.Attempt <= stop.Attempt && !(w.Why == WhyRollback && m != nil && provenFor(&object.Status, &m.Node, &w)) && w.Why != WhyRevert {
			s.breaks(4, "%s is sent %s after the stop", w.Node, w.Retry)
		}
	}
	if _, taken := s.api.payloads[w.Source]; w.Source != nodev1.Local && !taken {
		s.breaks(19, "%s is sent %s, which is not there", w.Node, w.Source)
	}
	if m := s.api.machines[w.UID]; m != nil && m.ResourceVersion == w.ResourceVersion && m.Retry == w.Retry && m.Source == w.Source {
		s.breaks(7, "%s is sent %s twice", w.Node, w.Retry)
	}
}

// arrived: whatever processes there are, what they do together keeps to the limits.
func (s *sim) arrived(w Write) {
	s.writes++
	if w.Source == "" || w.Why != WhyAdvance {
		return
	}
	s.api.machines[w.UID].wasDead = !s.api.machines[w.UID].Ready
	risk := 0
	for _, m := range s.api.machines {
		if !m.touched && !m.heldForPods && !(m.wasDead && !m.Ready) && atRisk(&m.Node, w.Retry) {
			risk++
		}
	}
	if l := s.limits[w.Pool]; l != nil && risk > l.goals[w.Retry] {
		s.breaks(2, "%d nodes are at risk with %s, of at most %d", risk, w.Retry, l.goals[w.Retry])
	}
}

// checkReady: a pool becomes Ready when nobody is on the way any more to what it is to have, be that forward or back.
func (s *sim) checkReady(v *view, p *Pool) {
	status := v.status(p)
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue && v.w.Synced {
		for _, n := range v.members[p.Name] {
			if v.lacks(p, status, n) {
				s.breaks(23, "%s is Ready, and %s has %s: %s", p.Name, n.Name, n.Source, n.Reason)
			}
		}
	}
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return
	}
	was := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing)
	if was != nil && (was.Reason == ReasonCompleted || was.Reason == ReasonJoining) && p.Status.Target != nil && *p.Status.Target == *status.Target {
		return // it was over, and something else was wrong for a while: who comes late does not undo that
	}
	dead := int32(0)
	for _, n := range v.members[p.Name] {
		if owned(n) && (v.dead(n) || v.young(n)) {
			dead++ // it was dead when it was assigned, and can do nothing
		}
	}
	if c := &status.Nodes; c.Applying+c.Waiting+c.OnTrial > dead {
		s.breaks(6, "%s becomes Ready, and %d apply, %d wait, %d are on trial", p.Name, c.Applying, c.Waiting, c.OnTrial)
	}
}
