package decide

import (
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
// a moment. Nor is what another cluster had assigned kept: to leave it is a fallback, and those are never held (rules 18 and 19).
func (s *State) nothingToKeep() bool {
	c := s.Child
	return c.Foreign || c.Version == nil && !c.EverHealthy && (s.LocalFailures >= s.TrialFailures || c.Alive && s.reached(c.Started+s.StartTimeout))
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
	case !s.runsUnblamed() && s.Disruption == Allow:
		return nil
	case !s.runsUnblamed():
		return &move{}
	}
	if wait := s.waitForVerdict(want); wait != nil {
		return wait
	}
	waits := s.waits(want)
	look := Foresee{Change: s.changeTo(want), Version: want, RunsVersion: s.Child.Version, Local: s.Local, MayAsk: s.proof(AnyContent, s.OnDisk) == nil}
	o := s.Outlook
	switch {
	case o.Change != look.Change, o.Due, waits && s.reached(o.At+s.lookAgainAfter()), !waits && s.Now > o.At+outlookLasts:
		if s.foresaw(want) {
			look.Tries = o.Tries
		}
		return &move{kind: act, action: look}
	case waits:
		return &move{}
	}
	return nil
}

// waitForVerdict asks again for a verdict on want that nobody has given yet.
func (s *State) waitForVerdict(want *Version) *move {
	u := s.owed(want)
	switch {
	case u == nil, s.isAllowed(want):
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
	if o := s.Outlook; s.foresaw(want) && o.WaitsFor != "" {
		return o.Since, o.WaitsFor, true
	}
	return 0, "", false
}

// mayHold: the change to want is one that a hold is for, and nobody has let it through.
func (s *State) mayHold(want *Version) bool {
	return s.Disruption == Hold && s.runsUnblamed() && !s.nothingToKeep() && (!s.runs(want) || s.followsLocal(want)) && !s.isAllowed(want)
}

// isAllowed: a person has let the change to want through.
func (s *State) isAllowed(want *Version) bool { return s.Consent == ConsentFor(want) }

func (s *State) losesPods(want *Version) bool { return s.foresaw(want) && s.Outlook.Lost > 0 }

// waits: what is known of the change to want, or that nobody has answered yet, keeps it from being made.
func (s *State) waits(want *Version) bool {
	_, _, open := s.openQuestion(want)
	return (open || s.losesPods(want)) && s.mayHold(want)
}

// isHeld: the change to want is said to be held. What has not been answered for a moment is not.
func (s *State) isHeld(want *Version) bool {
	since, _, open := s.openQuestion(want)
	return (s.losesPods(want) || open && s.Now >= since+askedForLong) && s.mayHold(want)
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

// noticeHold tells of a change that is held, once, and has the report speak of it.
func (s *State) noticeHold() {
	want, _, held := s.heldChange()
	if !held {
		if since, _, open := s.openQuestion(want); open {
			s.reached(since + askedForLong)
		}
		return
	}
	if s.Pending != nil {
		text := s.Pending.Text
		s.Observed = &text
	}
	if of := (Held{Runs: s.contentRun(), To: s.contentOf(want)}); s.Held != of {
		s.Held = of
		s.event(corev1.EventTypeNormal, "KubeletConfigHeld", "The restart with "+Describe(want)+" is held: "+s.whyHeld(want))
	}
}

// endHold forgets what is known of a change that is not asked for any more.
func (s *State) endHold() { s.Held, s.Outlook = Held{}, Outlook{} }

// askedFor ends the hold of another change than the one that is asked for now.
func (s *State) askedFor(want *Version) {
	if s.Held.To != s.contentOf(want) {
		s.endHold()
	}
}

// takenAndHeld: a change is held whose assignment has been taken: its consent was withdrawn, or a later look has said more.
func (s *State) takenAndHeld() bool {
	want, _, held := s.heldChange()
	return held && s.Pending == nil && s.Reset == nil && !s.runs(want)
}

// Held is the change that was told to be held, by the contents that run and are to run.
type Held struct{ Runs, To string }

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
	case Assigned, Cleared, SyncFailed, NodeGone, PortSeen, Hung, ChildExited, HostStopping, StopAsked:
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

// whyHeld says which pods would be lost, and who has not answered.
func (s *State) whyHeld(want *Version) string {
	since, waitsFor, open := s.openQuestion(want)
	open = open && s.Now >= since+askedForLong
	switch {
	case !s.losesPods(want):
		return "it is not known what it would do to running pods: " + waitsFor
	case open:
		return s.Outlook.Words + "; since then it is not known: " + waitsFor
	}
	return s.Outlook.Words
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
			s.whyNot(newest) + "; going back to " + Describe(want) + " waits: " + s.whyHeld(want), "correct the configuration, or " + hint}
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonWouldDisrupt, s.describeChange(want, newest) + " waits: " + s.whyHeld(want), hint}
}

// describeChange names the newest change for people.
func (s *State) describeChange(want, newest *Version) string {
	if newest == nil && s.Reset == nil {
		return "the change of local files"
	}
	return Describe(want)
}

// findAsking is about a change that waits for an answer, and may be made in a moment.
func (s *State) findAsking() *finding {
	want, newest, _ := s.heldChange()
	_, waitsFor, open := s.openQuestion(want)
	if !open || !s.mayHold(want) {
		return nil
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, s.describeChange(want, newest) + " waits for an answer: " + waitsFor, "it is asked for again"}
}

// refusedAndHeld is the newest assignment where it is refused, and going back from what is on trial is held.
func (s *State) refusedAndHeld() (newest *Version, held bool) {
	_, newest, held = s.heldChange()
	if newest != nil && !s.isRefused(newest) {
		newest = nil
	}
	return newest, held
}

func (s *State) learnPodsLost(e PodsLost) {
	s.PodsLost = e.Words
	s.event(corev1.EventTypeWarning, "KubeletConfigPodsLost", e.Words)
}
