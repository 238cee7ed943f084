package core

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

func learnAssigned(s *State, e Assigned) {
	s.Reset, s.Lost, s.NodeGone = nil, false, false
	s.Shadowed = e.Shadowed
	mergeOnly(s, &e)
	// Its checkpoint has just been written.
	s.Unrenderable = without(s.Unrenderable, func(x Unrenderable) bool { return x.Content == e.Version.Content })
	switch {
	case !savesAssignment(s) && s.Assigned != nil && reflect.DeepEqual(*s.Assigned, e.Version) && s.Text == e.Text && s.NodeUID == e.NodeUID:
		askedFor(s, &e.Version)
		s.Pending, s.Edit, s.Observed, s.Sync = nil, nil, &e.Text, nil
	case s.settles(s.Settings, e):
		expectQuiet(s)
		s.Edit, s.EditHeard = &e, s.Now
	default:
		expect(s, e, 0)
	}
}

// expect makes an assignment the newest, which is taken as soon as may be. It has waited for so long.
func expect(s *State, a Assigned, waited time.Duration) {
	if !Same(&a.Version, s.ran()) {
		s.beginChange(s.Wall, s.ran(), &a.Version, a.Download, waited)
	}
	askedFor(s, &a.Version)
	s.Pending, s.Edit, s.Sync = &a, nil, nil
	s.PendingOver = ""
	s.PendingNumber++
}

// savesAssignment reports whether an assignment is being written. It will hold, and one that comes in the meantime has to replace it.
func savesAssignment(s *State) bool {
	save, is := s.Doing.(Save)
	return is && save.assigned != nil
}

// adopt makes an assignment that is durable the one that holds.
func adopt(s *State, a Assigned) {
	edit := s.Text == a.Text
	ran := s.Assigned
	waiting := Same(wanted(s), ran) && !s.runs(ran)
	changed := !Same(s.Assigned, &a.Version)
	s.restore(s.durable().with(a))
	if !changed {
		return
	}
	s.Environment, s.Exit, s.Warning, s.Excuses = "", "", "", Excuses{}
	switch {
	case edit && waiting: // a newer edit takes the turn that the older one was given
	case edit && s.runs(ran) && s.Child.EverHealthy:
		wait := spread(a.NodeUID, a.Version.Source.ResourceVersion, s.EditSpread)
		s.ApplyAt, s.ApplyAtWall = s.Now+wait, s.Wall.Add(wait)
	default:
		s.ApplyAt = 0
	}
}

// with is what is durable once the assignment holds. A trial that was passed carries over to equal content (rule 5).
func (d Durable) with(a Assigned) Durable {
	before, version := d.Assigned, a.Version
	d.Assigned, d.Text, d.NodeUID = &version, a.Text, a.NodeUID
	switch lkg := d.LastKnownGood; {
	case Same(lkg, &version):
		d.LastKnownGood = &version
	case lkg != nil && lkg.Source == version.Source && lkg.Base == "" && version.Base == "": // it had lost its checkpoint
		d.LastKnownGood = &version
	case version.Content != "" && d.Promoted.Content == version.Content: // it could not be read
		d.LastKnownGood = &version
	}
	if !Same(before, &version) {
		d.Suspects = without(d.Suspects, func(x Suspect) bool { return x.Version.Content != version.Content })
	}
	return d
}

func learnCleared(s *State, e Cleared) {
	s.Sync, s.Pending, s.Edit = nil, nil, nil
	s.Shadowed, s.NodeGone = false, false
	if e.Text == "" && s.Reset == nil && s.Assigned != nil && s.NodeUID != "" && e.NodeUID != s.NodeUID {
		if !s.Lost {
			s.event(corev1.EventTypeWarning, "AssignmentLost",
				"the Node was re-created without its assignment; the kubelet keeps "+Describe(s.Assigned))
		}
		s.Lost, s.Observed = true, &s.Text
		return
	}
	s.Lost = false
	askedFor(s, nil)
	s.Reset = &e
	s.Observed = &e.Text
	if s.ran() != nil {
		s.beginChange(s.Wall, s.ran(), nil, 0, 0)
	}
}

// applyReset goes back to local: upstream's store.Reset, and everything that was remembered of the assignment with it.
func applyReset(s *State) {
	uid, observed := s.Reset.NodeUID, s.Reset.Text
	s.Reset, s.Observed, s.Unrenderable = nil, &observed, nil
	s.restore(Durable{Proofs: s.Proofs, Account: Account{NodeUID: uid, Retry: s.Retry, Active: s.Active, Cluster: s.Cluster, Renews: s.Renews,
		Before: s.Before, Asides: s.Asides, Limits: s.Limits, Hold: s.Hold, Approval: s.Approval}})
	s.ApplyAt, s.Environment, s.Exit = 0, "", ""
}

// learnRetry forgets the verdicts against configurations, also against one that is only about to be assigned: a person may change the
// assignment and ask for the retry at once. A kubelet that did not stop at the check is asked again.
func learnRetry(s *State, e Retry) {
	if e.Value != "" {
		if e.Value == s.Retry {
			return
		}
		s.Retry = e.Value
	}
	s.Rejected, s.Suspects, s.Excuses = nil, nil, Excuses{}
	for _, v := range []*Version{s.Assigned, s.LastKnownGood} {
		s.Proofs = without(s.Proofs, func(p Proof) bool { return p.refused() || v != nil && p.Content == v.Content && !s.runs(v) })
	}
	s.Proofs = without(s.Proofs, func(p Proof) bool { return p.Content == AnyContent })
	s.ApplyAt, s.NextStart, s.Environment, s.Exits, s.Unrenderable = 0, 0, "", nil, nil
	s.SettlesAt, s.NextEdit = 0, 0
	s.Outlook.Due = true // what is held is looked at again, and is reported as held until then
	s.Unanswered = slices.Clone(s.Unanswered)
	for i := range s.Unanswered {
		s.Unanswered[i].At, s.Unanswered[i].Tries = 0, 0
	}
	if !Same(s.goal(), s.ran()) {
		beginAnyChange(s)
	}
}

func learnProved(s *State, e Proved) {
	if _, is := s.Doing.(Prove); is {
		s.Doing = nil
	}
	s.nonce = e.Nonce
	switch {
	case e.Outcome == 0: // abandoned
	case e.Unanswered:
		s.learnUnanswered(s.Now, e)
	case e.NoMorePreflight:
		// Whatever this kubelet said, it cannot be asked: the trial has to show it.
		e.Outcome, s.Environment = kubeletconfig.Unknown, ""
		s.Proofs = newest(s.Proofs, Proof{Content: AnyContent, Kubelet: e.Kubelet, Outcome: e.Outcome, Words: e.Words})
	case e.blamesEnvironment():
		s.Environment, s.EnvironmentRetry, s.NoRoom = e.Words, s.Now+environmentRecheck, e.NoRoom
		s.learnMergeFails(e.Proof)
	default:
		s.Environment = ""
		s.learnMergeFails(e.Proof)
		s.keep(e.Proof)
	}
	if e.Outcome != 0 && !e.Unanswered {
		s.Unanswered = s.answered(e)
	}
	newest := s.Assigned
	if s.Pending != nil {
		newest = &s.Pending.Version
	}
	if e.refused() && newest != nil && newest.Content == e.Content {
		s.event(corev1.EventTypeWarning, "KubeletConfigRefused", Describe(newest)+" is refused: "+e.Words)
	}
}
