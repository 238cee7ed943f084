package decide

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	Local       bool   // it is the local configuration
	Kubelet     config.Identity
	Runs        string // content of what runs
	RunsKubelet config.Identity
}

// Outlook is what was foreseen of a change.
type Outlook struct {
	Change
	At      time.Duration
	Looks   int    // in a row that said that pods would be lost
	Lost    int    // running pods that certainly would be
	Words   string // which
	Unknown string // what could not be foreseen
}

// runsUnblamed: a kubelet runs, and nothing speaks against it, so that its end would be our choice.
func (s *State) runsUnblamed() bool {
	c := s.Child
	return c.Alive && c.Hung == "" && (c.Version == nil || s.usable(c.Version))
}

// nothingToKeep: the node is without a kubelet that ever was healthy, and has no other to fall back to. What may mend that does not wait.
func (s *State) nothingToKeep() bool {
	if c := s.Child; c.Alive {
		return c.Version == nil && !c.EverHealthy && s.reached(c.Started+s.StartTimeout)
	}
	return s.Hopeless
}

func (s *State) changeTo(want *Version) Change {
	c := s.Child
	return Change{Content: s.contentOf(want), Local: want == nil, Kubelet: s.OnDisk, Runs: s.contentRun(), RunsKubelet: c.Kubelet}
}

// mayChange tells whether what runs may make room for want now; ask is how to find out. While a kubelet is being restarted, or rolled back, the change waits
// until it is: a restart that nobody chose is no chance for one that somebody did.
func (s *State) mayChange(want *Version) (may bool, ask Action) {
	switch {
	case s.Disruption == "", s.nothingToKeep():
		return true, nil
	case !s.runsUnblamed():
		return s.Disruption == Allow, nil
	}
	look := Foresee{Change: s.changeTo(want), Version: want, RunsVersion: s.Child.Version, Local: s.Local, MayAsk: s.proof(AnyContent, s.OnDisk) == nil}
	switch {
	case s.Outlook.Change != look.Change:
		return false, look
	case s.isHeld(want):
		if s.reached(s.Outlook.At + s.lookAgainAfter()) {
			return false, look
		}
		return false, nil
	case s.Now > s.Outlook.At+outlookLasts:
		return false, look
	}
	return true, nil
}

// isHeld: what was foreseen of the change to want keeps it from being made.
func (s *State) isHeld(want *Version) bool {
	return s.Disruption == Hold && s.runsUnblamed() && !s.nothingToKeep() && s.Outlook.Lost > 0 && s.Outlook.Change == s.changeTo(want) && s.Consent != ConsentFor(want)
}

// lookAgainAfter spreads the looks of many nodes.
func (s *State) lookAgainAfter() time.Duration {
	pause := min(lookAgainLeast<<min(s.Outlook.Looks-1, 3), lookAgainMost)
	return pause - pause/10 + spread(s.NodeUID, fmt.Sprint(s.Outlook.Content, s.Outlook.Looks), pause/5)
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
	if s.Due = after.Due; ask != nil {
		return move{kind: act, action: ask}
	}
	if after.runs(want) {
		return save
	}
	switch may, ask := s.mayChange(want); {
	case ask != nil:
		return move{kind: act, action: ask}
	case !may:
		return move{}
	}
	return save
}

// heldChange gives what would be started, and of which newest assignment that is (nil = a removal of it, or a change of local files).
func (s *State) heldChange() (want, newest *Version, held bool) {
	switch {
	case s.Pending != nil && !s.settling():
		after := s.withPending()
		want, newest = after.target(), &s.Pending.Version
		return want, newest, !after.runs(want) && s.isHeld(want)
	case s.Reset != nil:
		return nil, nil, s.Child.Version != nil && s.isHeld(nil)
	}
	want = s.target()
	return want, nil, s.followsLocal(want) && s.isHeld(want)
}

func (s *State) learnForeseen(e Foreseen) {
	do, is := s.Doing.(Foresee)
	if !is || do.Change != e.Change {
		return // too late: it was given up
	}
	s.Doing = nil
	looks := 0
	if e.Lost > 0 {
		if looks = 1; s.Outlook.Change == e.Change {
			looks += s.Outlook.Looks
		}
	}
	s.Outlook = Outlook{Change: e.Change, At: s.Now, Looks: looks, Lost: e.Lost, Words: e.Words, Unknown: e.Unknown}
	if !s.isHeld(do.Version) {
		return
	}
	switch {
	case s.Pending != nil:
		text := s.Pending.Text
		s.Observed = &text
	case s.Reset == nil && !s.runs(do.Version):
		s.giveBack()
	}
	if looks == 1 {
		s.event(corev1.EventTypeNormal, "KubeletConfigHeld", "The restart with "+Describe(do.Version)+" is held: "+e.Words)
	}
}

// giveBack: an assignment that was taken, and waited for its turn, is held after all. A held change moves no pointer, so that a supervisor
// or a host that comes back starts what ran last.
func (s *State) giveBack() {
	s.Pending = &Assigned{Version: *s.Assigned, Text: s.Text, NodeUID: s.NodeUID, Shadowed: s.Shadowed}
	s.PendingNumber++
	s.SettlesAt, s.SettlesBy, s.ApplyAt = s.Now, s.Now, 0
	if s.Assigned = s.newestOf(s.Child.Version); s.Assigned == nil {
		s.Text = ""
	}
}

// giveUpLook: an event that makes something else more urgent does not wait for the answer.
func (s *State) giveUpLook() {
	if _, looks := s.Doing.(Foresee); looks {
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
		return &finding{corev1.ConditionFalse, ReasonRefused,
			s.whyNot(newest) + "; going back to " + Describe(want) + " waits: " + s.Outlook.Words, "correct the configuration, or " + hint}
	}
	what := Describe(want)
	if newest == nil && s.Reset == nil {
		what = "the change of local files"
	}
	return &finding{corev1.ConditionFalse, ReasonWouldDisrupt, what + " waits: " + s.Outlook.Words, hint}
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
