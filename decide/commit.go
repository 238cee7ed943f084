package decide

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// act gives the one action that brings what runs closer to what should; nil when there is none, or one is under way.
func (s *State) act() Action {
	if s.Doing != nil || !s.Booted {
		return nil
	}
	next := s.plan()
	if s.Parked != nil && !s.Parked.fits(s, next) {
		return s.endParked(next)
	}
	if next.kind == goLocal {
		s.applyReset()
		next = s.plan()
	}
	if s.takenAndWaits() {
		s.giveBack()
	}
	return s.commit(next)
}

// commit pays for a move before it is made: the try is counted and durable, the change is told.
func (s *State) commit(next move) Action {
	switch next.kind {
	case act:
		return next.action
	case stay:
		s.giveBackParked()
		return s.saveIfDirty()
	case end:
		return s.commitEnd()
	case replaceChild:
		return s.commitStop(next.want)
	case startChild:
		return s.commitStart(next.want)
	case keepChild:
		s.giveBackParked()
		s.resume()
		return s.planSpareTime()
	}
	return nil
}

// commitEnd ends the supervisor, whose child has ended.
func (s *State) commitEnd() Action {
	s.refund()
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	return Exit{}
}

// commitStop ends what runs for want. The try is written while the old kubelet still runs.
func (s *State) commitStop(want *Version) Action {
	if s.Parked == nil && s.mayPark(want) {
		if do := s.commitPark(want); do != nil {
			return do
		}
	}
	if s.Parked == nil {
		s.spend(want)
	}
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	if s.runsUnblamed() {
		s.beginAnyChange()
	}
	s.announce(want)
	s.PodsLost, s.HoldTold = "", HoldTold{}
	s.Unsettled = s.Now // what waited for its turn has it now: its end is worth waiting for
	return Stop{Looked: s.runsUnblamed() && s.Outlook.Change == s.changeTo(want)}
}

// commitStart starts want, once no state file is in its way (rule 17). A disk that cannot be written does not hold up a start that
// needs nothing from it.
func (s *State) commitStart(want *Version) Action {
	if !Same(s.StateFiles.Of, want) {
		s.StateFiles = StateFiles{}
	}
	if !Same(s.LimitCare.Of, want) {
		s.LimitCare = LimitCare{}
	}
	if Same(want, s.goal()) && !Same(want, s.Active) {
		s.beginAnyChange()
	}
	start := Start{Version: want, Fallback: s.fallback(want), OnTrial: s.needsTrial(want), Kubelet: s.OnDisk, Local: s.Local, Unchecked: s.StateFiles.Done, Lock: s.locks(want), Unlimited: s.LimitCare.Done}
	if s.Parked != nil {
		start.Waits = true
		return start
	}
	s.spend(want)
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	if len(s.StateFiles.InTheWay) > 0 {
		return SetAside{Files: s.StateFiles.InTheWay}
	}
	if len(s.LimitCare.Back) > 0 {
		return WriteBack{Limits: s.LimitCare.Back}
	}
	return start
}

func (s *State) saveIfDirty() Action {
	if !s.dirty() || s.saveBlocked() {
		return nil
	}
	return Save{Durable: s.Durable}
}

// announce tells of an intended restart, in upstream's words, by what then starts: also of one that ends a trial because a newer
// assignment is refused. A rollback has an event of its own.
func (s *State) announce(want *Version) {
	if Same(want, s.Assigned) || s.Child.Version == nil || s.usable(s.Child.Version) {
		s.event(corev1.EventTypeNormal, "KubeletConfigChanged", changeMessage(want))
	}
}

// event tells of something on the Node. Of a message that is too long the last part stays.
func (s *State) event(kind, reason string, message ...string) {
	s.events = append(s.events, NodeEvent{Type: kind, Reason: reason, Message: bounded.Parts(messageLimit, message...)})
}
