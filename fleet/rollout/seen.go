package rollout

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// goneLimit is how many vanished nodes are remembered: more than it takes to stop all pools that anybody will ever have.
const goneLimit = 256

// remember brings what this process remembers of each node up to date, and finds out who vanished.
func (f *fleet) remember(w *World) {
	f.seen = make([]Seen, len(f.nodes))
	known := 0
	for i, n := range f.nodes {
		old, is := w.Seen[n.UID]
		if is {
			known++
		}
		f.seen[i] = old.look(n, f.aside(i), f.rulesOf(n.Mark.Pool), w.Now, w.Elapsed)
		f.seen[i].lookAtDrain(n, w.Drains[n.UID], w.Elapsed)
	}
	f.gone = slices.Clone(w.Gone)
	if known < len(w.Seen) {
		f.missNodes(w)
	}
	f.forgetGone()
}

// missNodes finds out who vanished. A node may only not be known yet while the caches are not synced, so it stays remembered.
func (f *fleet) missNodes(w *World) {
	there := make(map[types.UID]bool, len(f.nodes))
	for _, n := range f.nodes {
		there[n.UID] = true
	}
	f.absent = map[types.UID]Seen{}
	for uid, old := range w.Seen {
		switch {
		case there[uid]:
		case !w.Synced:
			f.absent[uid] = old
		case old.vanishedAtRisk():
			f.gone = append(f.gone, Gone{UID: uid, Node: old.Name, Retry: old.Retry, Minor: old.Minor, Arch: old.Arch, Assignment: old.Mark.Assignment,
				Ill: old.Ill && !old.AsideFirst || old.Phase == Failed})
		}
	}
}

// forgetGone keeps those that are about the target of a pool, in an order that is always the same.
func (f *fleet) forgetGone() {
	f.gone = slices.DeleteFunc(f.gone, func(g Gone) bool {
		i, is := f.pool(g.Retry.Pool)
		if !is {
			return true
		}
		t := f.pools[i].Status.Target
		return t != nil && targetHash(t.RevisionName) != g.Retry.Hash
	})
	slices.SortFunc(f.gone, func(a, b Gone) int { return strings.Compare(string(a.UID), string(b.UID)) })
	f.gone = slices.CompactFunc(f.gone, func(a, b Gone) bool { return a.UID == b.UID })
	f.gone = f.gone[:min(len(f.gone), goneLimit)]
}

// memory is what this process is to remember of each node.
func (f *fleet) memory() map[types.UID]Seen {
	all := make(map[types.UID]Seen, len(f.nodes)+len(f.absent))
	for uid, s := range f.absent {
		all[uid] = s
	}
	for i, n := range f.nodes {
		all[n.UID] = f.seen[i]
	}
	return all
}

// vanishedAtRisk reports whether a node that is gone was at risk. A healthy node that was marked for removal before it went was not.
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

// lookAtRun counts for how long a node has run what it has. What a node runs that is seen for the first time it has run for a trial at least, unless it
// says that it began a moment ago.
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

// veryLong is longer than any time that is waited for.
const veryLong = 1 << 60 * time.Nanosecond

// lookAtKubelet notes another kubelet: what a node has proven under one kubelet it has not proven under the next before that has run it for a while.
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

// lookAtIllness counts for how long a node is ill: one that was not Ready when it was assigned is not ill of what it was assigned.
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
