package core

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// From one dynamic configuration to another the next kubelet can be started while the one before still runs: each holds one lock file for
// as long as it lives, so the next one waits at it, validated, and has touched nothing of the node. When the one before ends, the kernel
// lets it through. It waits only just before that: anything else that has to be done next ends it first.

// Parked is the kubelet that waits at the lock.
type Parked struct {
	Version *Version
	Kubelet kubeletconfig.Identity
	Local   string
}

// endParked ends what waits, because something else has to be done next. Where that is one more look at the same change, the way to the
// lock took longer than a look lasts, and would again: then it is made the plain way.
func endParked(s *State, next move) Action {
	if look, looks := next.action.(Foresee); looks && Same(look.Version, s.Parked.Version) {
		s.Child.Unparkable = true
	}
	return Unpark{}
}

// fits reports whether the move goes on with what waits.
func (p *Parked) fits(s *State, next move) bool {
	switch next.kind {
	case replaceChild, startChild:
		return Same(next.want, p.Version) && p.Kubelet == s.OnDisk && p.Local == s.Local
	}
	return false
}

// mayPark reports whether the kubelet for want may wait while another runs (rule 1). A rollback, a control and what goes on after them are
// started plainly: where something has just failed, no process may begin on its own.
func mayPark(s *State, want *Version) bool {
	c := s.Child
	return Same(want, s.Assigned) && len(s.Suspects) == 0 && s.SaveError == "" &&
		c.Locked && c.Version != nil && !c.Unparkable && runsWithoutFailure(s) && c.Kubelet == s.OnDisk && locks(s, want)
}

// locks reports whether a kubelet can hold the lock. Only one that was seen to take these flags is given one more.
func locks(s *State, v *Version) bool {
	if !s.Parking || v == nil || s.proof(AnyContent, s.OnDisk) != nil {
		return false
	}
	p := s.proof(v.Content, s.OnDisk)
	return p != nil && p.Outcome == kubeletconfig.Accepted
}

// commitPark has the try of want on the disk before a kubelet waits: from then on it may start without us. do is nil where it must
// not be parked.
func commitPark(s *State, want *Version) (do Action) {
	spend(s, want)
	s.Trial.Parked = s.Trial.Open
	if do := saveIfDirty(s); do != nil {
		return do
	}
	if s.lacks(s.durable()) { // the disk cannot be written
		s.Trial.Parked = false
		return nil
	}
	return Park{Version: want, Fallback: fallback(s, want), Runs: s.Child.Version, Kubelet: s.OnDisk, Local: s.Local}
}

// learnParked takes the answer of Park. A kubelet that exited before the lock brings a verdict, like any pre-flight. It spends no try.
func learnParked(s *State, e ParkEnded) {
	do, is := s.Doing.(Park)
	if !is {
		return
	}
	s.Doing = nil
	if e.Waits {
		s.Parked = &Parked{Version: do.Version, Kubelet: do.Kubelet, Local: do.Local}
		return
	}
	s.Trial.refundParked()
	if s.Child.Alive {
		s.Child.Unparkable = true
	}
	learnProved(s, e.Proved)
}

// learnUnparked records that what waited is gone, and has touched nothing.
func learnUnparked(s *State) {
	if _, is := s.Doing.(Unpark); is {
		s.Doing = nil
	}
	s.Parked = nil
	s.Trial.refundParked()
}

// passed records that what waited is past the lock, and its try is spent.
func passed(s *State) {
	s.Parked, s.Trial.Parked = nil, false
}
