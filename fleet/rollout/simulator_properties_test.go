package rollout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
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

// young: it was made minutes ago, and is not Ready, was assigned nothing, or what is stable; or it still has the pool's taint.
func (v *view) young(n *Node) bool {
	isYoung, p := v.w.Now.Sub(n.Created).Abs() < youth, v.owners[n.UID]
	if isYoung && !n.Ready {
		return true
	}
	isYoung = isYoung && v.plan.Seen[n.UID].Phase != Proven
	if p == nil || !isYoung && (p.Spec.JoinTaint == "" || !slices.Contains(n.Taints, p.Spec.JoinTaint)) {
		return false
	}
	stable := v.status(p).Stable
	return stable != nil && stable.Revision != 0 && (n.Source == "" && n.Mark.Pool == "" || n.Mark.Pool == p.Name && (n.Retry.Hash == targetHash(*stable) || n.Source == v.gives(p, stable.Hash, n)))
}

func owned(n *Node) bool { return n.Mark.Pool != "" && n.Mark.Assignment == n.Source }

func (v *view) away(n *Node) bool {
	if seen := v.plan.Seen[n.UID]; !n.Ready || n.Cordoned || n.Draining || owned(n) && seen.Runs && seen.Running < 15*time.Second {
		return true
	}
	if n.Reason == nodev1.ReasonRolledBack && n.Mark.Pool != "" {
		return true
	}
	if owned(n) && verdict(n.Reason) && n.Observed == n.Source && n.RetryHeard != n.Retry {
		return true // it may be at it by now
	}
	lies := !verdict(n.Reason) && (n.Active != n.Source || n.Reason == nodev1.ReasonActive && n.Good != n.Source)
	return owned(n) && (n.Observed != n.Source || lies || slices.Contains([]string{nodev1.ReasonWouldDisrupt, nodev1.ReasonApplying, nodev1.ReasonAssignmentLost, nodev1.ReasonSyncFailed,
		nodev1.ReasonInvalidAssignment, nodev1.ReasonFallbackBroken, nodev1.ReasonEnvironmentFailing, nodev1.ReasonInternalError, nodev1.ReasonStopped}, n.Reason))
}

func atRisk(n *Node, retry Retry) bool {
	proven := n.Observed == n.Source && n.Good == n.Source && n.Active == n.Source && n.Reason == nodev1.ReasonActive
	return owned(n) && n.Retry == retry && !proven && !n.Cordoned && !n.Leaving && !n.Updating && n.Supervised && n.Layered && !held(n)
}

// moves: writes that cost something.
func moves(w *Write) bool { return w.Why == WhyRollback || advances(w) }

// advances: writes that wait for windows and zones.
func advances(w *Write) bool {
	return w.Why == WhyAdvance || w.Why == WhyLate || w.Why == WhyConsent || w.Why == WhyDrain
}

// check asks whether a plan keeps the invariants.
func (s *sim) check(c *controller, w *World, plan *Plan) {
	v := newView(w, plan)
	s.checkWrites(v)
	for i := range w.Pools {
		p := &w.Pools[i]
		s.checkUnavailable(v, p)
		s.checkGates(v, p)
		s.checkWave(v, p)
		s.checkTrust(v, p)
		s.checkProgress(v, p)
		s.checkReady(v, p)
		s.checkStops(v, p)
		s.checkRetries(v, p)
		s.remember(v, p)
	}
	s.checkBudgets(v)
	s.checkDrains(v)
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
		if w.Why == WhyUndrain {
			s.checkUndrain(n, w, written[n.UID])
			written[n.UID] = true
			continue
		}
		switch {
		case v.tied[n.UID]:
			s.breaks(11, "%s is written, which several pools select", n.Name)
		case p == nil:
			s.breaks(14, "%s is written, which is in no pool", n.Name)
		case p.Name != w.Pool:
			s.breaks(11, "%s is written for %s, and belongs to %s", n.Name, w.Pool, p.Name)
		case written[n.UID]:
			s.breaks(7, "%s is written twice", n.Name)
		case held(n), n.Source != "" && !owned(n), n.Mark.Pool != "" && !n.Mark.Records(n.Source), p.Spec.Adoption == v1alpha1.AdoptNever && n.Mark.Pool != p.Name:
			s.breaks(3, "%s is written, which is in a person's hands: %q, mark %q", n.Name, n.Source, n.Mark)
		case w.RemoveTaint != "" && w.RemoveTaint != p.Spec.JoinTaint:
			s.breaks(18, "%s loses the taint %s", n.Name, w.RemoveTaint)
		case p.Spec.Rollout.Paused && moves(w):
			s.breaks(19, "%s is moved in a pool that is paused", n.Name)
		case w.Consent != "" && (p.Spec.Rollout.Disruption != v1alpha1.DisruptionAllow || w.Consent != n.Asks.WithAny()):
			s.breaks(3, "%s is told that its pods may die", n.Name)
		}
		written[n.UID] = true
		s.checkDrain(v, p, n, w)
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
		if stop.Hash == w.Retry.Hash && w.Retry.Attempt <= stop.Attempt && !(w.Why == WhyRollback && provenFor(status, n, w)) && !(w.Why == WhyRevert && w.Source == n.Active) {
			s.breaks(4, "%s gets revision %s, attempt %d, stopped at attempt %d", n.Name, w.Retry.Hash, w.Retry.Attempt, stop.Attempt)
		}
	}
	before := p.Status.Stable
	fresh := v.young(n) && n.Source != w.Source && !(n.Mark.Pool == p.Name && n.Retry.Hash == w.Retry.Hash)
	if fresh && w.Source != nodev1.Local && !n.Cordoned {
		stable := before != nil && before.Hash == w.Retry.Hash || status.Stable != nil && status.Stable.Hash == w.Retry.Hash
		deadlock := before != nil && n.Retry.Hash == before.Hash && verdict(n.Reason)
		superseded := n.Retry.Pool == p.Name && (before == nil || n.Retry.Hash != before.Hash) // it was at risk before: no new node
		if !stable && !deadlock && !superseded {
			s.breaks(12, "%s is new, and gets %s", n.Name, w.Retry)
		}
	}
	if layered := p.Spec.Rollout.Pin == nil && w.Why == WhyAdvance; layered {
		for _, layer := range p.layers {
			if known, is := v.w.Layers[layer.ref]; !layer.inline && (!is || known.Missing || known.Fault != "" && status.Target.Local) {
				s.breaks(9, "%s is moved, and layer %s is not there", n.Name, layer.ref)
			}
		}
	}
	for i := range v.w.Nodes {
		m := &v.w.Nodes[i]
		if moves(w) && m.Retry == w.Retry && m.Mark.Pool == p.Name && m.Observed == m.Mark.Assignment && m.RetryHeard == m.Retry && final(m.Reason) &&
			w.Why == WhyAdvance {
			s.breaks(5, "%s gets %s, whose verdict %s shows", n.Name, w.Retry, m.Name)
		}
	}
}

// checkTrust: whatever a move is called, a cohort that has not proven what it moves to has one node at risk.
func (s *sim) checkTrust(v *view, p *Pool) {
	status := v.status(p)
	type kind struct{ minor, arch, source string }
	risks, proven := map[kind]int{}, map[kind]bool{}
	for _, n := range v.members[p.Name] {
		k := kind{n.Minor, n.Arch, n.Source}
		if settled := n.Observed == n.Source && n.Active == n.Source && n.Good == n.Source && n.Reason == nodev1.ReasonActive; settled {
			proven[k] = true
		} else if n.Source != nodev1.Local && n.Retry == targetOf(p.Name, status) && atRisk(n, n.Retry) && !v.dead(n) {
			risks[k]++
		}
	}
	for i := range v.plan.Writes {
		w := &v.plan.Writes[i]
		n := v.node(w)
		if w.Pool != p.Name || w.Source == "" || w.Source == nodev1.Local || !moves(w) || n == nil || n.Source == w.Source {
			continue
		}
		k := kind{n.Minor, n.Arch, w.Source}
		if risks[k]++; risks[k] > 1 && !proven[k] && !provenFor(status, n, w) {
			s.breaks(22, "%s of %s goes to %s, %s, which its cohort has not proven, and there is one at risk", n.Name, k.minor+"/"+k.arch, w.Retry, w.Why)
		}
	}
}

func targetOf(pool string, status *v1alpha1.KubeletPoolStatus) Retry {
	if status.Target == nil {
		return Retry{}
	}
	return Retry{pool, status.Target.Hash, status.Target.Attempt}
}

// provenFor, by the letter: the revision was completed where the kubelet, the architecture and what the node gets of it are the same.
func provenFor(status *v1alpha1.KubeletPoolStatus, n *Node, w *Write) bool {
	name := variantOf(w.Source)
	cohort := n.Minor + "/" + n.Arch + "/" + name[max(0, len(name)-hashLength):]
	for i := range status.Revisions {
		if r := &status.Revisions[i]; r.Hash == w.Retry.Hash {
			return slices.ContainsFunc(r.ProvenIn, func(c v1alpha1.CohortProof) bool { return c.Cohort == cohort })
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
