package core

import (
	"cmp"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// The hold (rule 19): a kubelet that starts admits all pods again, and kills those that it refuses. So a change is looked at before it is
// made. One that would kill running pods moves nothing, is reported, and is looked at again until it would kill none: on a drained node it
// goes through automatically. Rollbacks, fallbacks, first starts and restarts after a crash are never held.

// Values of [Settings.Disruption]; without one nothing is foreseen.
const (
	Hold  = "hold"  // a change that would kill running pods waits
	Allow = "allow" // it is made, and told; only what would leave the node without a kubelet waits
)

// patience is how many times the failures of a trial a local kubelet that was healthy before has before it is given up.
const patience = 10

// Change is what is foreseen: what runs makes room for something else.
type Change struct {
	Content     string // of what is to run
	Kubelet     kubeletconfig.Identity
	Runs        string // content of what runs
	RunsKubelet kubeletconfig.Identity
}

// runsWithoutFailure reports whether a kubelet runs and nothing speaks against it, so that its end would be the supervisor's choice.
func runsWithoutFailure(s *State) bool {
	c := s.Child
	return c.Alive && (c.Version == nil || usable(s, c.Version))
}

// noHealthyFallback reports whether the last fallback, local, does not get healthy without a change, again and again or for long. What may
// fix that does not wait. One start that fails is not enough: a host that has just booted may be without its container runtime, or without
// the kubelet's program for a moment. A local kubelet that was healthy before fails because of something else than its configuration: it is
// given up after many more starts. A hold that has named pods is not: they run without a kubelet, and only a look, an approval or another
// change ends it. What another cluster had assigned is not kept, because to leave it is a fallback, and those are never held (rules 18 and
// 19).
func noHealthyFallback(s *State) bool {
	c := s.Child
	switch {
	case c.Foreign:
		return true
	case c.Version != nil, c.EverHealthy, len(s.Hold.Named) > 0 && !s.Hold.Spent:
		return false
	case s.Worked == (LocalKubelet{s.Local, s.OnDisk}):
		return s.LocalFailures >= patience*s.TrialFailures
	}
	return s.LocalFailures >= s.TrialFailures || c.Alive && s.Now >= c.Started+s.StartTimeout
}

// waitBefore returns what has to come before what runs makes room for want: a look, a pre-flight that gave no answer, or waiting; nil =
// nothing. While a kubelet is being restarted, or rolled back, a change waits until it is: a restart that no user chose is not the moment
// for a change that a user did choose.
func waitBefore(s *State, want *Version) *move {
	c := s.changeTo(want)
	switch {
	case s.Disruption == "", noHealthyFallback(s):
		return nil
	case !runsWithoutFailure(s) && s.Disruption == Allow && len(s.obstacles(c)) == 0:
		return nil
	case !runsWithoutFailure(s):
		return &move{}
	}
	if wait := waitForVerdict(s, want); wait != nil {
		return wait
	}
	waits, isOld, o := waits(s, want), s.Now > s.Outlook.At+outlookLasts, s.Outlook
	look := Foresee{Change: c, Version: want, RunsVersion: s.Child.Version, Local: s.Local, MayAsk: s.proof(AnyContent, s.OnDisk) == nil}
	if s.foresaw(c) {
		look.Tries = o.Tries
	}
	switch {
	case o.Change != look.Change, o.Due, isOld && (!waits || s.isApproved(s.Settings, c)):
		return &move{kind: perform, action: look}
	case !waits:
		return nil
	case s.isApproved(s.Settings, c):
		return spendApproval(s)
	case s.Now >= o.At+lookAgainAfter(s):
		return &move{kind: perform, action: look}
	}
	return &move{}
}

// waitForVerdict asks again for a verdict on want that has not been given yet.
func waitForVerdict(s *State, want *Version) *move {
	c := s.changeTo(want)
	u := s.owed(s.contentOf(want), s.OnDisk)
	switch {
	case u == nil, s.isApproved(s.Settings, c), s.isLetThrough(c):
		return nil
	case s.Disruption == Allow && u.Tries >= triesWithoutHold:
		return nil
	case askAgain(s, u):
		return &move{kind: perform, action: prove(s, want)}
	}
	return &move{}
}

// openQuestion returns what has not been answered yet about a change, and since when.
func openQuestion(s *State, want *Version) (since time.Duration, waitsFor string, open bool) {
	c := s.changeTo(want)
	if u := s.owed(s.contentOf(want), s.OnDisk); u != nil {
		return u.Since, u.Words, true
	}
	if o := s.Outlook; s.foresaw(c) && (o.isOpen() && s.Disruption == Hold || len(o.Obstacles) > 0) {
		return o.Since, cmp.Or(s.whyObstructed(c), o.WaitsFor), true
	}
	return 0, "", false
}

// mayHold reports whether the change to want can be held at all. With Allow only a change is held that would leave the node without a
// kubelet.
func mayHold(s *State, want *Version) bool {
	isHold := s.Disruption == Hold || s.Disruption == Allow && len(s.obstacles(s.changeTo(want))) > 0
	return isHold && runsWithoutFailure(s) && !noHealthyFallback(s) && (!s.runs(want) || followsLocal(s, want))
}

// mustWait reports whether what is known of the change to want, or an answer that is still open, keeps it from being made without an
// approval.
func mustWait(s *State, want *Version) bool {
	_, _, open := openQuestion(s, want)
	return (open || s.losesPods(s.changeTo(want))) && mayHold(s, want)
}

func waits(s *State, want *Version) bool {
	return mustWait(s, want) && !s.isLetThrough(s.changeTo(want))
}

// isHeld reports whether the change to want waits and is reported as held. A change whose answer is open only for a moment is not held.
func isHeld(s *State, want *Version) bool {
	c := s.changeTo(want)
	since, _, open := openQuestion(s, want)
	said := s.Disruption == Hold && s.losesPods(c) || s.isObstructed(s.Now, s.Settings, c) || open && s.Now >= since+askedForLong
	return said && mayHold(s, want) && !s.isLetThrough(c)
}

// withPending returns the state as it would be with the newest assignment.
func withPending(s *State) State {
	after := *s
	after.restore(s.durable().with(*s.Pending))
	recognise(&after)
	return after
}

// planPending makes sure that a change may be made before the assignment moves.
func planPending(s *State) move {
	save := move{kind: perform, action: Save{Durable: s.durable().with(*s.Pending), assigned: s.Pending, number: s.PendingNumber}}
	switch {
	case s.Disruption != Hold, noHealthyFallback(s):
		return save
	case !runsWithoutFailure(s):
		return move{}
	}
	if s.pendingIsStale(s.Local) {
		return move{kind: perform, action: Merge{Version: s.Pending.Version, Local: s.Local, Pending: true}}
	}
	after := withPending(s)
	want, ask := choose(&after)
	switch {
	case ask != nil:
		return move{kind: perform, action: ask}
	case after.runs(want):
		return save
	}
	if wait := waitBefore(s, want); wait != nil {
		return *wait
	}
	return save
}

// heldChange returns what would be started, and of which newest assignment that is (nil = a removal of it, or a change of local files).
func heldChange(s *State) (want, newest *Version, held bool) {
	switch {
	case s.Pending != nil:
		after := withPending(s)
		want, newest = wanted(&after), &s.Pending.Version
	case s.Reset == nil:
		want = wanted(s)
		if s.Disruption == Allow && !Same(want, s.Assigned) {
			newest = s.Assigned
		}
	}
	return want, newest, isHeld(s, want)
}

// askedFor ends the hold of another change than the one that is asked for now.
func askedFor(s *State, want *Version) {
	to := s.contentOf(want)
	if s.Hold.Asked != to && (s.Hold.Nonce != "" || s.Outlook.Content != to) {
		s.endHold()
	}
}

// heldAfterAdoption reports whether a change waits whose assignment has been taken: a later look has said more, or nothing, its approval
// was withdrawn, or the Node is gone. With Allow it stays taken, as in the removed feature.
func heldAfterAdoption(s *State) bool {
	want, _, _ := heldChange(s)
	waits := waits(s, want) || s.NodeGone && mayHold(s, want)
	return waits && s.Disruption == Hold && s.Pending == nil && s.Reset == nil && !s.runs(want)
}

// isUnseen reports whether the change to want was not let through, and no look has just shown that it costs nothing. A kubelet that crashes
// is started again with what it ran: its end is not the moment for a change that was not looked at.
func isUnseen(s *State, want *Version) bool {
	c := s.changeTo(want)
	o, obstructed := s.Outlook, len(s.obstacles(c)) > 0
	seen := s.isLetThrough(c) || s.foresaw(c) && o.Known && !obstructed && !s.losesPods(c) && s.Now <= o.At+outlookLasts
	return (s.Disruption == Hold || obstructed) && !seen && !noHealthyFallback(s)
}

// revertAdoption reverts the adoption of an assignment that was taken and has to wait after all. A change that waits moves no pointer, so
// that a supervisor or a host that comes back starts what ran last.
func revertAdoption(s *State) {
	taken := s.Assigned
	s.Assigned = newestOf(s, s.Child.Version)
	if taken == nil { // a removal
		s.Reset = &Cleared{NodeUID: s.NodeUID}
	} else {
		s.Pending = &Assigned{Version: *taken, Text: s.Text, NodeUID: s.NodeUID}
	}
	if s.Assigned == nil || taken != nil && s.Assigned.bare().Source != taken.bare().Source {
		s.Text = "" // it is of what was given back, which is no edit when it is taken again
	}
}

// giveUpQuestion gives up the open question where something else is more urgent, or the answer would be void. Such an event does not wait
// for a look, the kubelet's program, or the search for the layer to blame. A start waits for its pre-flight, which is its verdict, whatever
// happens until then.
func giveUpQuestion(s *State, event Event) {
	switch event.(type) {
	case Assigned, Cleared, SyncFailed, NodeGone, PortSeen, Hung, ChildExited, HostStopping, StopAsked:
		dropQuestion(s)
	}
}

func dropQuestion(s *State) {
	switch s.Doing.(type) {
	case Foresee, Blame, Ask:
	case Prove:
		if !s.Child.Alive {
			return
		}
	default:
		return
	}
	s.Doing, s.gaveUp = nil, true
}
