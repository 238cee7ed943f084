package rollout

import (
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// pods are what holds a change on a machine. Some are never evicted, of some there is one that no drain may take.
type pods struct {
	stubborn, bare, gone bool
}

// drains lets a pool drain its nodes.
func (s *sim) drains(r *v1alpha1.Rollout) {
	r.DrainTimeout = nil
	if r.Disruption == v1alpha1.DisruptionHold && s.random.IntN(2) == 0 {
		r.Disruption = v1alpha1.DisruptionDrain
		r.DrainTimeout = durationOf([]time.Duration{2 * time.Minute, 10 * time.Minute}[s.random.IntN(2)])
	}
}

// evict does what a plan says, at once.
func (c *controller) evict(plan *Plan) {
	for _, of := range plan.Drains {
		m := c.s.api.machines[of.UID]
		if m == nil {
			continue
		}
		found := Drained{Drain: of.Drain, Refuses: m.pods.bare, Empty: m.pods.gone}
		switch {
		case m.pods.bare:
			found.Words = "no drain may take default/bare (it has no controller)"
		case m.pods.stubborn:
			found.Words = "default/web: The disruption budget web needs 1 healthy pods"
		default:
			m.pods.gone = true
		}
		c.found[of.UID] = found
	}
}

// lookAtPods: a machine whose pods are gone finds that out some time; where nothing keeps them away others come.
func (m *machine) lookAtPods(now time.Duration) {
	if !m.Draining && !m.Cordoned {
		m.pods.gone = false
	}
	if m.pods.gone && m.next != nil && m.Reason == nodev1.ReasonWouldDisrupt {
		m.at = min(m.at, now+time.Duration(m.random.IntN(60))*time.Second)
	}
}

// checkUndrain: only our own cordon is lifted.
func (s *sim) checkUndrain(n *Node, w *Write, twice bool) {
	truth := s.api.machines[n.UID]
	switch {
	case twice:
		s.breaks(7, "%s is written twice", n.Name)
	case n.Drain.Pool == "" || n.Drain.Over != "":
		s.breaks(18, "the drain of %s is ended, and there is none: %q", n.Name, n.Drain)
	case w.Lifts != n.Draining, w.Lifts && truth != nil && truth.ResourceVersion == w.ResourceVersion && truth.Cordoned:
		s.breaks(18, "the cordon of %s is lifted, which is not ours", n.Name)
	case w.Source != "" || w.RemoveTaint != "" || w.Consent != "":
		s.breaks(18, "more than a drain of %s is ended: %+v", n.Name, w)
	case w.Drain != (Drain{}) && (w.Drain.Over == "" || w.Drain.Hash != n.Drain.Hash || w.Drain.Pool != n.Drain.Pool):
		s.breaks(18, "the drain of %s, %q, ends as %q", n.Name, n.Drain, w.Drain)
	}
}

// checkDrain: who is drained waits for its pods, and was not drained for this revision.
func (s *sim) checkDrain(v *view, p *Pool, n *Node, w *Write) {
	if w.Why != WhyDrain {
		return
	}
	switch {
	case n.Cordoned || n.Draining || n.Updating || n.Leaving:
		s.breaks(18, "%s is cordoned, which others are at", n.Name)
	case n.Drain.Pool == p.Name && n.Drain.Hash == w.Drain.Hash:
		s.breaks(18, "%s is drained again for %s", n.Name, w.Drain.Hash)
	case p.Spec.Rollout.Disruption != v1alpha1.DisruptionDrain:
		s.breaks(18, "%s is drained by a pool that drains nobody", n.Name)
	case n.Reason != nodev1.ReasonWouldDisrupt || n.Observed != n.Source || n.Active == n.Source || n.Retry.Hash != w.Drain.Hash || w.Drain.Pool != p.Name:
		s.breaks(18, "%s is drained, and waits for nothing: %s", n.Name, n.Reason)
	case v.stopped(p, n.Retry):
		s.breaks(4, "%s is drained for a revision that is stopped", n.Name)
	}
	away := 0
	for _, other := range v.members[p.Name] {
		if v.away(other) && !v.young(other) {
			away++
		}
	}
	if limit := v.limitOf(p); away > limit {
		s.breaks(1, "%s is drained, and %d are unavailable in %s, of at most %d", n.Name, away, p.Name, limit)
	}
}

// stopped: and nobody has completed it before, which nothing stops.
func (v *view) stopped(p *Pool, retry Retry) bool {
	return !p.wasDone(retry.Hash) && slices.ContainsFunc(v.status(p).Stops, func(stop v1alpha1.Stop) bool {
		return stop.Hash == retry.Hash && retry.Attempt <= stop.Attempt
	})
}

// checkDrains: no pod is evicted but for a drain that goes on, and no cordon stays that is of no use.
func (s *sim) checkDrains(v *view) {
	if !v.w.Synced {
		if len(v.plan.Drains) > 0 {
			s.breaks(9, "pods are evicted by a process that knows nothing yet")
		}
		return
	}
	for i := range v.plan.Drains {
		of := &v.plan.Drains[i]
		n := v.node(&Write{UID: of.UID})
		switch p := v.owners[of.UID]; {
		case n == nil || !n.Draining || n.Drain != of.Drain || n.Drain.Over != "":
			s.breaks(18, "pods are evicted from %s, which is not drained", of.Node)
		case p == nil || p.Name != of.Drain.Pool:
			s.breaks(14, "pods are evicted from %s, which is not of pool %s", of.Node, of.Drain.Pool)
		case p.Spec.Rollout.Paused:
			s.breaks(19, "pods are evicted from %s in a pool that is paused", of.Node)
		case v.stopped(p, n.Retry):
			s.breaks(4, "pods are evicted from %s for a revision that is stopped", of.Node)
		case v.limitOf(p) == 0:
			s.breaks(1, "pods are evicted from %s in a frozen pool", of.Node)
		case n.Reason != nodev1.ReasonWouldDisrupt || held(n) || !owned(n) || n.Leaving || n.Updating:
			s.breaks(18, "pods are evicted from %s, which waits for nothing: %s", of.Node, n.Reason)
		}
	}
	for i := range v.w.Nodes {
		n := &v.w.Nodes[i]
		lifted := slices.ContainsFunc(v.plan.Writes, func(w Write) bool { return w.UID == n.UID && w.Why == WhyUndrain })
		if why := v.useless(n); n.Draining && !lifted && why != "" && len(v.plan.Writes) < rate && v.w.Denied[n.UID] == "" {
			s.breaks(18, "the cordon of %s stays, and %s", n.Name, why)
		}
	}
}

// useless says why our cordon of a node is of no use any more; empty where it is.
func (v *view) useless(n *Node) string {
	p := v.owners[n.UID]
	switch {
	case n.Updating:
		return ""
	case p == nil || p.Name != n.Drain.Pool:
		return "it is not of the pool"
	case p.Spec.Rollout.Disruption != v1alpha1.DisruptionDrain:
		return "the pool drains nobody"
	case p.Spec.Rollout.Paused:
		return "the pool is paused"
	case held(n) || !owned(n):
		return "it is in a person's hands"
	case n.Retry.Hash != n.Drain.Hash:
		return "it has another revision"
	case n.Observed == n.Source && n.Active == n.Source:
		return "it runs what it should"
	case v.stopped(p, n.Retry):
		return "the revision is stopped"
	case n.Reason == nodev1.ReasonWouldDisrupt && n.Observed == n.Source && !v.w.Drains[n.UID].Empty && v.plan.Seen[n.UID].Drained >= p.Spec.Rollout.DrainTimeout.Duration:
		return "its time is over"
	}
	return ""
}
