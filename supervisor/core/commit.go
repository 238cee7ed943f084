package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// act returns the one action that brings what runs closer to what should run; nil when there is none.
func act(s *State, next move) Action {
	if next.kind == busy {
		return nil
	}
	if s.Parked != nil && !s.Parked.fits(s, next) {
		return endParked(s, next)
	}
	if next.kind == goLocal {
		applyReset(s)
		next = target(s)
	}
	if heldAfterAdoption(s) {
		revertAdoption(s)
	}
	return commit(s, next)
}

// commit pays for a move before it is made: the try is counted and durable, and the change is reported.
func commit(s *State, next move) Action {
	switch next.kind {
	case perform:
		return next.action
	case stay:
		s.Trial.refundParked()
		return saveIfDirty(s)
	case end:
		return commitEnd(s)
	case replaceChild:
		return commitStop(s, next.want)
	case startChild:
		return commitStart(s, next.want)
	case keepChild:
		s.Trial.refundParked()
		resume(s)
		return planSpareTime(s)
	}
	return nil
}

// commitEnd ends the supervisor, whose child has ended.
func commitEnd(s *State) Action {
	s.Trial.refund()
	if do := saveIfDirty(s); do != nil {
		return do
	}
	return Exit{}
}

// commitStop ends what runs for want. The try is written while the old kubelet still runs.
func commitStop(s *State, want *Version) Action {
	if s.Parked == nil && mayPark(s, want) {
		if do := commitPark(s, want); do != nil {
			return do
		}
	}
	if s.Parked == nil {
		spend(s, want)
	}
	if do := saveIfDirty(s); do != nil {
		return do
	}
	if runsWithoutFailure(s) {
		beginAnyChange(s)
	}
	announce(s, want)
	s.PodsLost, s.HoldTold = "", HoldTold{}
	s.Unsettled = s.Now // what waited for its turn has it now: its end is worth waiting for
	return Stop{Looked: runsWithoutFailure(s) && s.Outlook.Change == s.changeTo(want)}
}

// commitStart starts want, once no state file is in its way (rule 17). A disk that cannot be written does not hold up a start that
// needs nothing from it.
func commitStart(s *State, want *Version) Action {
	if !Same(s.StateFiles.Of, want) {
		s.StateFiles = StateFiles{}
	}
	if !Same(s.LimitCare.Of, want) {
		s.LimitCare = LimitCare{}
	}
	if Same(want, s.goal()) && !Same(want, s.Active) {
		beginAnyChange(s)
	}
	start := Start{Version: want, Fallback: fallback(s, want), OnTrial: s.needsTrial(want, s.OnDisk), Kubelet: s.OnDisk, Local: s.Local,
		Unchecked: s.StateFiles.Done, Lock: locks(s, want), Unlimited: s.LimitCare.Done}
	if s.Parked != nil {
		start.Waits = true
		return start
	}
	spend(s, want)
	if do := saveIfDirty(s); do != nil {
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

func saveIfDirty(s *State) Action {
	if !s.lacks(s.durable()) || s.saveBlocked(s.Now) {
		return nil
	}
	return Save{Durable: s.durable()}
}

// announce reports an intended restart with upstream's message, by what then starts; also one that ends a trial because a newer assignment
// is refused. A rollback has an event of its own.
func announce(s *State, want *Version) {
	if Same(want, s.Assigned) || s.Child.Version == nil || usable(s, s.Child.Version) {
		s.event(corev1.EventTypeNormal, "KubeletConfigChanged", changeMessage(want))
	}
}

// event reports something on the Node. A message that is too long keeps its last part.
func (s *State) event(kind, reason string, message ...string) {
	s.events = append(s.events, NodeEvent{Type: kind, Reason: reason, Message: bounded.Parts(messageLimit, message...)})
}
