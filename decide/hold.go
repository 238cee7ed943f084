package decide

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// The hold (rule 19): a kubelet that starts admits all pods anew, and kills those that it refuses. So a change is looked at before it is
// made. One that would kill running pods moves nothing, is told, and is looked at again until it would kill none: on a drained node it goes
// through by itself. Rollbacks, fallbacks, first starts and restarts after a crash are never held.

// Values of [Settings.Disruption]; without one nothing is foreseen.
const (
	Hold  = "hold"  // a change that would kill running pods waits
	Allow = "allow" // it is made, and told
)

const (
	outlookLasts   = 5 * time.Second // a change that may be made is made so soon after the look, or looked at again
	lookAgainLeast = time.Minute     // at what is held, doubling
	lookAgainMost  = 5 * time.Minute
)

// Change is what is foreseen: what runs makes room for something else.
type Change struct {
	Content     string // of what is to run
	Kubelet     config.Identity
	Runs        string // content of what runs
	RunsKubelet config.Identity
}

// Outlook is what was foreseen of a change.
type Outlook struct {
	Change
	At      time.Duration
	Pause   time.Duration // before the next look, where the change is held
	Lost    int           // running pods that certainly would be
	Words   string        // which
	Unknown string        // what could not be foreseen
}

// runsUnblamed: a kubelet runs, and nothing speaks against it, so that its end would be our choice.
func (s *State) runsUnblamed() bool {
	c := s.Child
	return c.Alive && (c.Version == nil || s.usable(c.Version))
}

// nothingToKeep: the last fallback, local, does not get healthy by itself, again and again or for long. What may mend that does not wait. One
// start that fails is no such thing: a host that has just booted may be without its container runtime, or without the kubelet's program for
// a moment. Nor is what another cluster had assigned kept: to leave it is a fallback, and those are never held (rules 18 and 19).
func (s *State) nothingToKeep() bool {
	c := s.Child
	return c.Foreign || c.Version == nil && !c.EverHealthy && (s.LocalFailures >= s.TrialFailures || c.Alive && s.reached(c.Started+s.StartTimeout))
}

func (s *State) changeTo(want *Version) Change {
	c := s.Child
	return Change{Content: s.contentOf(want), Kubelet: s.OnDisk, Runs: s.contentRun(), RunsKubelet: c.Kubelet}
}

// waitBefore gives what has to come before what runs makes room for want: a look, or waiting; nil = nothing. While a kubelet is being restarted,
// or rolled back, a change waits until it is: a restart that nobody chose is no chance for one that somebody did.
func (s *State) waitBefore(want *Version) *move {
	switch {
	case s.Disruption == "", s.nothingToKeep():
		return nil
	case !s.runsUnblamed() && s.Disruption == Allow:
		return nil
	case !s.runsUnblamed():
		return &move{}
	}
	look := Foresee{Change: s.changeTo(want), Version: want, RunsVersion: s.Child.Version, Local: s.Local, MayAsk: s.proof(AnyContent, s.OnDisk) == nil}
	held := s.isHeld(want)
	switch {
	case s.Outlook.Change != look.Change, s.reached(s.Outlook.At + s.lookAgainAfter()), !held && s.Now > s.Outlook.At+outlookLasts:
		return &move{kind: act, action: look}
	case held:
		return &move{}
	}
	return nil
}

// isHeld: what was foreseen of the change to want keeps it from being made.
func (s *State) isHeld(want *Version) bool {
	return s.Disruption == Hold && s.Outlook.Lost > 0 && s.Outlook.Change == s.changeTo(want) && s.Consent != ConsentFor(want) &&
		s.runsUnblamed() && !s.nothingToKeep()
}

// lookAgainAfter spreads the looks of many nodes.
func (s *State) lookAgainAfter() time.Duration {
	pause := s.Outlook.Pause
	return pause - pause/10 + spread(s.NodeUID, fmt.Sprint(s.Outlook.At), pause/5)
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
	}
	return want, newest, s.isHeld(want)
}

func (s *State) learnForeseen(e Foreseen) {
	do, is := s.Doing.(Foresee)
	if !is || do.Change != e.Change {
		return // too late: it was given up
	}
	s.Doing = nil
	before := s.Outlook
	s.Outlook = Outlook{Change: e.Change, At: s.Now, Pause: lookAgainLeast, Lost: e.Lost, Words: e.Words, Unknown: e.Unknown}
	again := before.Lost > 0 && before.Change == e.Change
	if again {
		s.Outlook.Pause = min(2*before.Pause, lookAgainMost)
	}
	want, _, held := s.heldChange()
	if !held {
		return
	}
	if s.Pending != nil {
		text := s.Pending.Text
		s.Observed = &text
	}
	if !again && !s.takenAndHeld() { // which is told when it is given back
		s.tellHeld(want)
	}
}

func (s *State) tellHeld(want *Version) {
	s.event(corev1.EventTypeNormal, "KubeletConfigHeld", "The restart with "+Describe(want)+" is held: "+s.Outlook.Words)
}

// takenAndHeld: a change is held whose assignment has been taken: its consent was withdrawn, or a later look has said more.
func (s *State) takenAndHeld() bool {
	want, _, held := s.heldChange()
	return held && s.Pending == nil && s.Reset == nil && !s.runs(want)
}

// giveBack: an assignment that was taken, and waited for its turn, is held after all. A held change moves no pointer, so that a supervisor
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

// giveUpLook: what makes something else more urgent, or the look void, does not wait for its answer. Nor for whom to blame.
func (s *State) giveUpLook(event Event) {
	_, looks := s.Doing.(Foresee)
	_, blames := s.Doing.(Blame)
	if !looks && !blames {
		return
	}
	switch event.(type) {
	case Assigned, Cleared, SyncFailed, PortSeen, Hung, ChildExited, HostStopping, StopAsked:
		s.Doing = nil
	}
}

// ConsentFor is the value of annotation allow-disruption that lets a change through: 12 hex digits of the content, so that one consent is
// for one change, or local.
func ConsentFor(v *Version) string {
	if v == nil {
		return "local"
	}
	digits := v.Content[strings.LastIndexByte(v.Content, ':')+1:]
	return digits[:min(12, len(digits))]
}

// findHeld is about the newest assignment, of which nothing has moved.
func (s *State) findHeld() *finding {
	want, newest, held := s.heldChange()
	if !held {
		return nil
	}
	hint := "drain the node, or set annotation kubelet-supervisor.io/allow-disruption=" + ConsentFor(want)
	if newest != nil && !Same(want, newest) { // it is refused, and would end a trial
		return &finding{corev1.ConditionFalse, nodev1.ReasonRefused,
			s.whyNot(newest) + "; going back to " + Describe(want) + " waits: " + s.Outlook.Words, "correct the configuration, or " + hint}
	}
	what := Describe(want)
	if newest == nil && s.Reset == nil {
		what = "the change of local files"
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonWouldDisrupt, what + " waits: " + s.Outlook.Words, hint}
}

// heldError is what status.error says of it; empty = nothing is held.
func (s *State) heldError() string {
	_, newest, held := s.heldChange()
	switch {
	case !held:
		return ""
	case newest != nil && s.isRefused(newest):
		return s.refusedError(newest)
	}
	return RunError
}

func (s *State) learnPodsLost(e PodsLost) {
	s.PodsLost = e.Words
	s.event(corev1.EventTypeWarning, "KubeletConfigPodsLost", e.Words)
}
