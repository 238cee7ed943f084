package decide

import (
	"cmp"
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// The hold (rule 19): a kubelet that starts admits all pods anew, and kills those that it refuses. So a change is looked at before it is
// made. One that would kill running pods moves nothing, is told, and is looked at again until it would kill none: on a drained node it goes
// through by itself. Rollbacks, fallbacks, first starts and restarts after a crash are never held.

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
	Kubelet     config.Identity
	Runs        string // content of what runs
	RunsKubelet config.Identity
}

// runsUnblamed: a kubelet runs, and nothing speaks against it, so that its end would be our choice.
func (s *State) runsUnblamed() bool {
	c := s.Child
	return c.Alive && (c.Version == nil || s.usable(c.Version))
}

// nothingToKeep: the last fallback, local, does not get healthy by itself, again and again or for long. What may mend that does not wait. One
// start that fails is no such thing: a host that has just booted may be without its container runtime, or without the kubelet's program for
// a moment. A local kubelet that was healthy before fails for something else than its configuration: it is given up after many more starts. A hold
// that has named pods is not: they run without a kubelet, and only a look, an approval or another change ends it. What another cluster had assigned
// is not kept, because to leave it is a fallback, and those are never held (rules 18 and 19).
func (s *State) nothingToKeep() bool {
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

func (s *State) changeTo(want *Version) Change {
	c := s.Child
	return Change{Content: s.contentOf(want), Kubelet: s.OnDisk, Runs: s.contentRun(), RunsKubelet: c.Kubelet}
}

// waitBefore gives what has to come before what runs makes room for want: a look, a pre-flight that gave no answer, or waiting; nil = nothing.
// While a kubelet is being restarted, or rolled back, a change waits until it is: a restart that nobody chose is no chance for one that somebody
// did.
func (s *State) waitBefore(want *Version) *move {
	switch {
	case s.Disruption == "", s.nothingToKeep():
		return nil
	case !s.runsUnblamed() && s.Disruption == Allow && len(s.obstacles(want)) == 0:
		return nil
	case !s.runsUnblamed():
		return &move{}
	}
	if wait := s.waitForVerdict(want); wait != nil {
		return wait
	}
	waits, isOld, o := s.waits(want), s.Now > s.Outlook.At+outlookLasts, s.Outlook
	look := Foresee{Change: s.changeTo(want), Version: want, RunsVersion: s.Child.Version, Local: s.Local, MayAsk: s.proof(AnyContent, s.OnDisk) == nil}
	if s.foresaw(want) {
		look.Tries = o.Tries
	}
	switch {
	case o.Change != look.Change, o.Due, isOld && (!waits || s.isApproved(want)):
		return &move{kind: act, action: look}
	case !waits:
		return nil
	case s.isApproved(want):
		return s.spendApproval()
	case s.Now >= o.At+s.lookAgainAfter():
		return &move{kind: act, action: look}
	}
	return &move{}
}

// waitForVerdict asks again for a verdict on want that nobody has given yet.
func (s *State) waitForVerdict(want *Version) *move {
	u := s.owed(want)
	switch {
	case u == nil, s.isApproved(want), s.isLetThrough(want):
		return nil
	case s.Disruption == Allow && u.Tries >= triesWithoutHold:
		return nil
	case s.askAgain(u):
		return &move{kind: act, action: s.prove(want)}
	}
	return &move{}
}

// openQuestion is what nobody has answered yet about a change, and since when.
func (s *State) openQuestion(want *Version) (since time.Duration, waitsFor string, open bool) {
	if u := s.owed(want); u != nil {
		return u.Since, u.Words, true
	}
	if o := s.Outlook; s.foresaw(want) && (o.isOpen() && s.Disruption == Hold || len(o.Obstacles) > 0) {
		return o.Since, cmp.Or(s.whyObstructed(want), o.WaitsFor), true
	}
	return 0, "", false
}

// mayHold: the change to want is one that a hold is for. With Allow those are what would leave the node without a kubelet.
func (s *State) mayHold(want *Version) bool {
	isHold := s.Disruption == Hold || s.Disruption == Allow && len(s.obstacles(want)) > 0
	return isHold && s.runsUnblamed() && !s.nothingToKeep() && (!s.runs(want) || s.followsLocal(want))
}

// seesLoss: a look of this supervisor knows of pods that the change to want would end.
func (s *State) seesLoss(want *Version) bool { return s.foresaw(want) && s.Outlook.Lost > 0 }

// losesPods: one of this supervisor or of the one before does, and none since then knows better. A pod that was named and is in doubt now is one
// that may be lost.
func (s *State) losesPods(want *Version) bool {
	return s.seesLoss(want) || s.isHold(want) && len(s.Hold.Named) > 0 && !s.knowsBetter(want)
}

func (s *State) knowsBetter(want *Version) bool {
	return s.foresaw(want) && s.Outlook.Known && !s.doubtsNamed()
}

// doubtsNamed: the newest look can neither say that a pod goes which the hold has named, nor that it stays.
func (s *State) doubtsNamed() bool {
	return slices.ContainsFunc(s.Outlook.InDoubt, func(l nodev1.Loss) bool { return names(s.Hold.Named, l) })
}

// mustWait: what is known of the change to want, or that nobody has answered yet, keeps it from being made without an approval.
func (s *State) mustWait(want *Version) bool {
	_, _, open := s.openQuestion(want)
	return (open || s.losesPods(want)) && s.mayHold(want)
}

func (s *State) waits(want *Version) bool { return s.mustWait(want) && !s.isLetThrough(want) }

// isHeld: the change to want waits, and is said to be held. What has not been answered for a moment is not.
func (s *State) isHeld(want *Version) bool {
	since, _, open := s.openQuestion(want)
	said := s.Disruption == Hold && s.losesPods(want) || s.isObstructed(want) || open && s.Now >= since+askedForLong
	return said && s.mayHold(want) && !s.isLetThrough(want)
}

// withPending is the state as it would be with the newest assignment.
func (s *State) withPending() State {
	after := *s
	after.Durable = s.withAssigned(*s.Pending)
	after.recognise()
	return after
}

// planPending makes sure that a change may be made before the assignment moves.
func (s *State) planPending() move {
	save := move{kind: act, action: Save{Durable: s.withAssigned(*s.Pending), assigned: s.Pending, number: s.PendingNumber}}
	switch {
	case s.Disruption != Hold, s.nothingToKeep():
		return save
	case !s.runsUnblamed():
		return move{}
	}
	if s.pendingIsStale() {
		return move{kind: act, action: Merge{Version: s.Pending.Version, Local: s.Local, Pending: true}}
	}
	after := s.withPending()
	want, ask := after.choose()
	switch {
	case ask != nil:
		return move{kind: act, action: ask}
	case after.runs(want):
		return save
	}
	if wait := s.waitBefore(want); wait != nil {
		return *wait
	}
	return save
}

// heldChange gives what would be started, and of which newest assignment that is (nil = a removal of it, or a change of local files).
func (s *State) heldChange() (want, newest *Version, held bool) {
	switch {
	case s.Pending != nil:
		after := s.withPending()
		want, newest = after.target(), &s.Pending.Version
	case s.Reset == nil:
		want = s.target()
		if s.Disruption == Allow && !Same(want, s.Assigned) {
			newest = s.Assigned
		}
	}
	return want, newest, s.isHeld(want)
}

// endHold forgets what is known of a change that is not asked for any more.
func (s *State) endHold() {
	s.Hold, s.HoldTold, s.LetThrough, s.Outlook = HeldChange{}, HoldTold{}, false, Outlook{}
}

// askedFor ends the hold of another change than the one that is asked for now.
func (s *State) askedFor(want *Version) {
	to := s.contentOf(want)
	if s.Hold.Asked != to && (s.Hold.Nonce != "" || s.Outlook.Content != to) {
		s.endHold()
	}
}

// takenAndWaits: a change waits whose assignment has been taken: a later look has said more, or nothing, its approval was withdrawn, or the Node
// is gone. With Allow it stays taken, as in the removed feature.
func (s *State) takenAndWaits() bool {
	want, _, _ := s.heldChange()
	waits := s.waits(want) || s.NodeGone && s.mayHold(want)
	return waits && s.Disruption == Hold && s.Pending == nil && s.Reset == nil && !s.runs(want)
}

// isUnseen: a look has not just shown that the change to want costs nothing, and it was not let through. A kubelet that crashes is started again
// with what it ran: its end is no chance for a change that nobody has looked at.
func (s *State) isUnseen(want *Version) bool {
	o, obstructed := s.Outlook, len(s.obstacles(want)) > 0
	seen := s.isLetThrough(want) || s.foresaw(want) && o.Known && !obstructed && !s.losesPods(want) && s.Now <= o.At+outlookLasts
	return (s.Disruption == Hold || obstructed) && !seen && !s.nothingToKeep()
}

// giveBack: an assignment that was taken has to wait after all. A change that waits moves no pointer, so that a supervisor
// or a host that comes back starts what ran last.
func (s *State) giveBack() {
	taken := s.Assigned
	s.Assigned = s.newestOf(s.Child.Version)
	if taken == nil { // a removal
		s.Reset = &Cleared{NodeUID: s.NodeUID}
	} else {
		s.Pending = &Assigned{Version: *taken, Text: s.Text, NodeUID: s.NodeUID}
	}
	if s.Assigned == nil || taken != nil && s.Assigned.bare().Source != taken.bare().Source {
		s.Text = "" // it is of what was given back, which is no edit when it is taken again
	}
}

// giveUpQuestion: what makes something else more urgent, or an answer void, does not wait for the answer of a look, of the kubelet's program, or
// of a search for whom to blame. A start waits for its pre-flight, which is its verdict, whatever comes meanwhile.
func (s *State) giveUpQuestion(event Event) {
	switch event.(type) {
	case Assigned, Cleared, SyncFailed, NodeGone, PortSeen, Hung, ChildExited, HostStopping, StopAsked:
		s.dropQuestion()
	}
}

func (s *State) dropQuestion() {
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
