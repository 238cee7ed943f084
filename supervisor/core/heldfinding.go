package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Reports about a change that waits.

// HoldTold is the change that was reported as held, by the contents that run and will run.
type HoldTold struct{ Runs, To string }

// noticeHold reports a change that is held, once, and has the report name it.
func noticeHold(s *State) {
	want, _, held := heldChange(s)
	if !held {
		return
	}
	if s.Pending != nil {
		text := s.Pending.Text
		s.Observed = &text
	}
	if of := (HoldTold{Runs: s.contentRun(), To: s.contentOf(want)}); s.HoldTold != of {
		s.HoldTold = of
		s.event(corev1.EventTypeNormal, "KubeletConfigHeld", "The restart with "+Describe(want)+" is held: "+whyHeld(s, want))
	}
}

// notKnownForLong returns why the newest looks do not know the effect of the change to want; empty where they do, or did a moment ago.
func notKnownForLong(s *State, want *Version) string {
	c := s.changeTo(want)
	since, waitsFor, open := openQuestion(s, want)
	switch {
	case open && (s.Now >= since+askedForLong || !s.seesLoss(c) || s.isObstructed(s.Now, s.Settings, c)):
		return waitsFor
	case !open && s.foresaw(c) && (!s.Outlook.Known || s.isHold(c) && s.doubtsNamed()):
		return s.Outlook.Warning
	}
	return ""
}

// whyHeld returns which pods would be lost, and what has not answered.
func whyHeld(s *State, want *Version) string {
	c := s.changeTo(want)
	if why := s.whyObstructed(c); why != "" {
		return strings.Join(without([]string{why, s.Outlook.Words}, isEmpty), "; ")
	}
	unknown := notKnownForLong(s, want)
	words := s.Outlook.Words
	switch named := s.Hold.Named; {
	case s.seesLoss(c):
	case !s.losesPods(c):
		return "it is not known what it would do to running pods: " + unknown
	default:
		words = fmt.Sprintf("running pods would be lost, when it was last known: %d, %s among them", len(named), named[len(named)-1].Pod)
	}
	if unknown == "" {
		return words
	}
	return words + "; since then it is not known: " + unknown
}

// findHeld finds a newest assignment that is held, of which nothing has moved.
func findHeld(s *State) *finding {
	want, newest, held := heldChange(s)
	c := s.changeTo(want)
	if !held {
		return nil
	}
	hint := hintForHeld(s, want)
	if wrong := s.whyNotApproved(s.Settings, c); wrong != "" {
		hint = wrong + "; " + hint
	}
	isRefused := newest != nil && !Same(want, newest)
	if s.isObstructed(s.Now, s.Settings, c) && !isRefused {
		return findObstructed(s, want, newest, hint)
	}
	if isRefused { // it is refused, and would end a trial
		return &finding{corev1.ConditionFalse, nodev1.ReasonRefused,
			verdict(s, newest).why() + "; going back to " + Describe(want) + " waits: " + whyHeld(s, want), "correct the configuration, or: " + hint}
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonWouldDisrupt, describeChange(s, want, newest) + " waits: " + whyHeld(s, want), hint}
}

// hintForHeld returns what ends the hold. Pods can be drained; what is in the way on the host cannot.
func hintForHeld(s *State, want *Version) string {
	c := s.changeTo(want)
	var ways []string
	if !s.isObstructed(s.Now, s.Settings, c) {
		ways = append(ways, "drain the node")
	}
	if approval := s.approval(c); approval != "" {
		ways = append(ways, "set annotation "+nodev1.AllowDisruptionAnnotation+"="+string(approval))
	}
	return strings.Join(ways, ", or ")
}

// describeChange names the newest change for people.
func describeChange(s *State, want, newest *Version) string {
	if newest == nil && s.Reset == nil && s.runs(want) {
		return "the change of local files"
	}
	return Describe(want)
}

// findAsking finds a change that waits for an answer, and may be made in a moment.
func findAsking(s *State) *finding {
	want, newest, _ := heldChange(s)
	_, waitsFor, open := openQuestion(s, want)
	if !open || !mayHold(s, want) {
		return nil
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, describeChange(s, want, newest) + " waits for an answer: " + waitsFor,
		"it is asked for again"}
}

func learnPodsLost(s *State, e PodsLost) {
	s.PodsLost = e.Words
	s.event(corev1.EventTypeWarning, "KubeletConfigPodsLost", e.Words)
}
