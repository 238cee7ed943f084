package rollout

import (
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// goneLimit is how many vanished nodes are remembered: more than it takes to stop all pools that anybody will ever have.
const goneLimit = 256

// remember brings what this process remembers of each node up to date, and finds out who vanished.
func (d *decision) remember() {
	known := 0
	for i, n := range d.nodes {
		old, is := d.w.Seen[n.UID]
		if is {
			known++
		}
		seen := old.look(n, d.aside(i), d.rulesOf(n.Mark.Pool), d.w.Now, d.w.Elapsed)
		seen.lookAtDrain(n, d.w.Drains[n.UID], d.w.Elapsed)
		d.seen = append(d.seen, seen)
		d.plan.Seen[n.UID] = Seen{} // it is there
	}
	d.plan.Gone = slices.Clone(d.w.Gone)
	if known < len(d.w.Seen) {
		d.missNodes()
	}
	d.forgetGone()
}

// missNodes finds out who vanished.
func (d *decision) missNodes() {
	for uid, old := range d.w.Seen {
		if _, is := d.plan.Seen[uid]; is {
			continue
		}
		if !d.w.Synced {
			d.plan.Seen[uid] = old // it may only not be known yet
			continue
		}
		if old.vanishedAtRisk() {
			d.plan.Gone = append(d.plan.Gone, Gone{UID: uid, Node: old.Name, Retry: old.Retry, Minor: old.Minor, Arch: old.Arch, Assignment: old.Mark.Assignment,
				Ill: old.Ill && !old.AsideFirst || old.Phase == Failed})
		}
	}
}

// forgetGone keeps those that are about the target of a pool, in an order that is always the same.
func (d *decision) forgetGone() {
	d.plan.Gone = slices.DeleteFunc(d.plan.Gone, func(g Gone) bool {
		for _, p := range d.pools {
			if t := p.Status.Target; g.Retry.Pool == p.Name && (t == nil || targetHash(t.RevisionName) == g.Retry.Hash) {
				return false
			}
		}
		return true
	})
	slices.SortFunc(d.plan.Gone, func(a, b Gone) int { return strings.Compare(string(a.UID), string(b.UID)) })
	d.plan.Gone = slices.CompactFunc(d.plan.Gone, func(a, b Gone) bool { return a.UID == b.UID })
	if len(d.plan.Gone) > goneLimit {
		d.plan.Gone = d.plan.Gone[:goneLimit]
	}
}

// aside: somebody has taken the node out of the pool's hands: by a label, a cordon, for removal, or out of the pool.
func (d *decision) aside(i int) bool {
	n := d.nodes[i]
	if n.Mark.Pool == "" {
		return false
	}
	member := d.owner[i] != nobody && d.pools[d.owner[i]].Name == n.Mark.Pool
	return !member || n.Leaving || n.Cordoned || d.held[i]
}

func held(n *Node) bool { return n.Labels[RolloutLabel] == "hold" }

// vanishedAtRisk: of a healthy node that was marked for removal before it went, nobody is to blame.
func (s *Seen) vanishedAtRisk() bool {
	switch s.Phase {
	case Failed:
		return true
	case Applying, Waiting, OnTrial, Blocked:
		return s.Retry.Pool != "" && (!s.Aside || s.Ill && !s.AsideFirst)
	}
	return false
}

// look is what is remembered of a node after another look at it.
func (s Seen) look(n *Node, aside bool, r *rules, now time.Time, elapsed time.Duration) Seen {
	known, answer := s.Name != "", elapsed
	if !known || s.Retry != n.Retry || s.Mark != n.Mark {
		s, answer = s.assigned(n, known), 0
	} else {
		s.Assigned += elapsed
	}
	s.Source = n.Source
	if n.Ready || !known {
		s.AwayFor = 0
	} else {
		s.AwayFor += elapsed
	}
	s.lookAtRun(n, known, now.Sub(n.ChangeBegan).Abs() < r.settle, elapsed)
	s.lookAtKubelet(n, r, elapsed)
	s.lookAtIllness(n, aside, known, elapsed)
	s.Phase = s.phase(n, r)
	spoke := blocked(n.Reason) && n.Observed == n.Mark.Assignment
	if s.Phase == Applying && !s.Runs || s.Phase == Blocked && s.Unanswered > 0 && !spoke {
		s.Unanswered += answer
	} else {
		s.Unanswered = 0
	}
	s.Phase = s.phase(n, r)
	s.Name, s.Ready, s.BootID, s.Minor, s.Arch, s.Aside = n.Name, n.Ready, n.BootID, n.Minor, n.Arch, aside
	return s
}

// assigned begins the account of another assignment.
func (s Seen) assigned(n *Node, known bool) Seen {
	began := Seen{Name: n.Name, Mark: n.Mark, Retry: n.Retry, Source: n.Source, WasReady: !n.Mark.NotReady, Pressure: n.Pressure, BootID: n.BootID, AsideFirst: s.AsideFirst,
		Asks: s.Asks, AsksFor: s.AsksFor, Relabelled: s.Relabelled, Restless: s.Restless}
	if known {
		began.AwayFor = s.AwayFor
		if s.Source == n.Source { // only whose it is has changed
			began.Runs, began.Running, began.Minor, began.Upgraded, began.Upheld = s.Runs, s.Running, s.Minor, s.Upgraded, s.Upheld
		}
	}
	return began
}

// lookAtRun: what a node runs that nobody has looked at before it has run for a trial at least, unless it says that it began a moment ago.
func (s *Seen) lookAtRun(n *Node, known, justBegan bool, elapsed time.Duration) {
	running := runs(n)
	switch {
	case !running:
		s.Running = 0
	case s.Runs:
		s.Running += elapsed
	case !known && n.Reason != nodev1.ReasonInTrial && !justBegan:
		s.Running = veryLong
	default:
		s.Running = 0
	}
	s.Runs = running
}

// veryLong is longer than any time that somebody waits for.
const veryLong = 1 << 60 * time.Nanosecond

// lookAtKubelet: what a node has proven under one kubelet it has not proven under the next before that has run it for a while.
func (s *Seen) lookAtKubelet(n *Node, r *rules, elapsed time.Duration) {
	switch {
	case s.Minor != "" && s.Minor != n.Minor:
		s.Upgraded, s.Upheld = true, 0
	case !s.Upgraded:
	case !n.Ready || !s.Runs:
		s.Upheld = 0
	default:
		s.Upheld += elapsed
		s.Upgraded = s.Upheld < r.unreadyAfter
	}
}

// forgives is how many times longer than it was ill a node has to be well until that is forgotten. One that is ill every now and then is ill.
const forgives = 4

// lookAtIllness: a node that was not Ready when it was assigned is not ill of what it was assigned.
func (s *Seen) lookAtIllness(n *Node, aside, known bool, elapsed time.Duration) {
	environment := n.Reason == nodev1.ReasonEnvironmentFailing && n.Observed == n.Mark.Assignment
	unwell := n.Mark.Pool != "" && (!n.Ready && s.WasReady || environment)
	ill := unwell || n.Mark.Pool != "" && n.Reason == nodev1.ReasonRolledBack && n.Observed == n.Mark.Assignment
	goes := n.Leaving && !s.Ill && ailment(n) == reasonNotReady // it said so when it became ill: a host that shuts down
	switch {
	case !ill, !known, goes:
		s.AsideFirst = aside
	default:
		s.AsideFirst = s.AsideFirst && aside
	}
	switch {
	case s.BootID != n.BootID:
		s.IllFor = 0
	case !unwell:
		s.IllFor = max(0, s.IllFor-elapsed/forgives)
	case s.Ill:
		s.IllFor += elapsed
	}
	s.Ill = ill
}
