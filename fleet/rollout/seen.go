package rollout

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// goneLimit limits the vanished nodes that are remembered. It is more than is needed to stop all pools of a large
// cluster.
const goneLimit = 256

// remember updates what this process remembers of each node, and finds the nodes that vanished.
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

// missNodes finds the nodes that vanished. While the caches are not synced, a missing node may only be unknown, so
// it stays remembered.
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

// forgetGone keeps the vanished nodes that concern the target of a pool, in a fixed order.
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

// memory returns what this process must remember of each node.
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

// vanishedAtRisk reports whether a node that is gone was at risk. A healthy node that was marked for removal
// before does not count.
func (s *Seen) vanishedAtRisk() bool {
	switch s.Phase {
	case Failed:
		return true
	case Applying, Waiting, OnTrial, Blocked:
		return s.Retry.Pool != "" && (!s.Aside || s.Ill && !s.AsideFirst)
	}
	return false
}

// look returns what is remembered of a node after it was read again.
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

// assigned resets what is remembered for a new assignment.
func (s Seen) assigned(n *Node, known bool) Seen {
	began := Seen{Name: n.Name, Mark: n.Mark, Retry: n.Retry, Source: n.Source, WasReady: !n.Mark.NotReady, Pressure: n.Pressure, BootID: n.BootID, AsideFirst: s.AsideFirst,
		Asks: s.Asks, AsksFor: s.AsksFor, Relabelled: s.Relabelled, Restless: s.Restless}
	if known {
		began.AwayFor = s.AwayFor
		if s.Source == n.Source { // only its owner has changed
			began.Runs, began.Running, began.Minor, began.Upgraded, began.Upheld = s.Runs, s.Running, s.Minor, s.Upgraded, s.Upheld
		}
	}
	return began
}

// lookAtRun counts how long a node has run what it has. A node that is seen for the first time counts as having
// run it for a trial, unless it reports that it began a moment ago.
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

// veryLong is longer than anything waits.
const veryLong = 1 << 60 * time.Nanosecond

// lookAtKubelet records an upgrade of the kubelet: a proof under the old kubelet counts for the new one only after
// that has run for a while.
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

// forgives is how many times longer than its illness a node must be well until that is forgotten. A node that is
// occasionally ill counts as ill.
const forgives = 4

// lookAtIllness counts how long a node has been ill. For a node that was not Ready at the assignment, that is not
// the cause.
func (s *Seen) lookAtIllness(n *Node, aside, known bool, elapsed time.Duration) {
	environment := n.Reason == nodev1.ReasonEnvironmentFailing && n.Observed == n.Mark.Assignment
	unwell := n.Mark.Pool != "" && (!n.Ready && s.WasReady || environment)
	ill := unwell || n.Mark.Pool != "" && n.Reason == nodev1.ReasonRolledBack && n.Observed == n.Mark.Assignment
	goes := n.Leaving && !s.Ill && ailment(n) == reasonNotReady // the node reported it when it became ill: its host shuts down
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
