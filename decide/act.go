package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// act gives the one action that brings what runs closer to what should; nil when there is none, or one is under way.
func (s *State) act() any {
	switch {
	case s.Doing != nil || !s.Booted:
		return nil
	case s.Stopping:
		return s.leave()
	case s.Frozen:
		return s.saveIfDirty()
	}
	if s.Child.Alive && s.Child.Hung != "" {
		return Stop{Hung: s.Child.Hung}
	}
	if do := s.accept(); do != nil {
		return do
	}
	if do := s.reset(); do != nil {
		return do
	}
	want, do := s.choose()
	if do != nil {
		return do
	}
	if do := s.bring(want); do != nil {
		return do
	}
	return s.keepHouse()
}

// leave ends the child, then the supervisor.
func (s *State) leave() any {
	if s.Child.Alive {
		return Stop{}
	}
	s.refund()
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	return Exit{}
}

// accept makes a new assignment durable before anything else is done about it (rule 3).
func (s *State) accept() any {
	if s.Pending == nil || s.saveBlocked() {
		return nil
	}
	return Save{Durable: s.withAssigned(*s.Pending), assigned: s.Pending}
}

// reset goes back to local. A configuration that can run is only left for a local one that the kubelet would accept (rule 9).
func (s *State) reset() any {
	if s.Reset == nil {
		return nil
	}
	if s.target() != nil {
		proof := s.proof(s.Local, s.OnDisk)
		if proof == nil && s.Environment != "" && s.Now < s.EnvironmentRetry {
			return nil
		}
		if proof == nil {
			return s.prove(nil)
		}
		if proof.refused() {
			return nil
		}
	}
	s.applyReset()
	return nil
}

// choose settles on the configuration to run, asking for a verdict where none is kept.
func (s *State) choose() (*Version, any) {
	want := s.target()
	if want == nil || s.runs(want) || s.proof(want.Content, s.OnDisk) != nil {
		return want, nil
	}
	if s.Environment != "" && s.Now < s.EnvironmentRetry {
		if s.Child.Alive {
			return s.Child.Version, nil // nothing is blamed or changed
		}
		return want, nil // there is always a kubelet: as with no verdict, the trial will tell
	}
	return want, s.prove(want)
}

func (s *State) prove(v *Version) any {
	do := Prove{Version: v, Kubelet: s.OnDisk, Local: s.Local}
	if v != nil {
		do.Control = s.fallback(v)
		return do
	}
	if do.Control = s.target(); do.Control == nil {
		do.Alone = true
	}
	return do
}

// bring makes the kubelet run want: what has to be durable first, then the stop, then the start.
func (s *State) bring(want *Version) any {
	if s.runs(want) && !s.followsLocal(want) {
		s.resume()
		return nil
	}
	if s.Child.Alive {
		if s.waitsForTurn(want) {
			return nil
		}
		if do := s.prepare(want); do != nil {
			return do
		}
		s.announce(want)
		s.Unsettled = s.Now // what waited for its turn has it now: its end is worth waiting for
		return Stop{}
	}
	if s.Now < s.NextStart && Same(want, s.NextOf) {
		return nil
	}
	if do := s.prepare(want); do != nil {
		return do
	}
	return Start{Version: want, Fallback: s.fallback(want), OnTrial: s.needsTrial(want), Kubelet: s.OnDisk, Local: s.Local}
}

// waitsForTurn: an edit is not applied yet, unless what runs meanwhile has failed.
func (s *State) waitsForTurn(want *Version) bool {
	return s.Now < s.ApplyAt && Same(want, s.Assigned) && s.Child.Version != nil && s.usable(s.Child.Version)
}

// prepare counts the try and writes it while the old kubelet still runs. A disk that cannot be written does not hold up a start
// that needs nothing from it.
func (s *State) prepare(want *Version) any {
	s.spend(want)
	return s.saveIfDirty()
}

func (s *State) saveIfDirty() any {
	if !s.dirty() || s.saveBlocked() {
		return nil
	}
	return Save{Durable: s.Durable}
}

// announce tells of an intended restart, in upstream's words, by what then starts: also of one that ends a trial because a newer
// assignment is refused. A rollback has an event of its own.
func (s *State) announce(want *Version) {
	if Same(want, s.Assigned) || s.Child.Version == nil || s.usable(s.Child.Version) {
		s.tell(corev1.EventTypeNormal, "KubeletConfigChanged", changeMessage(want))
	}
}

// followsLocal: with --follow-local an accepted change of the local files restarts the kubelet that they concern.
func (s *State) followsLocal(want *Version) bool {
	if !s.FollowLocal || !s.LocalChangePending() {
		return false
	}
	proof := s.proof(s.contentOf(want), s.OnDisk)
	ended := *s
	ended.Child.Alive = false
	return proof != nil && !proof.refused() && Same(ended.target(), want)
}

// LocalChangePending tells that the kubelet that runs was started with other local files, drop-ins or another binary than there are now.
func (s *State) LocalChangePending() bool {
	return s.Child.Alive && (s.Child.Kubelet != s.OnDisk || s.Child.Version == nil && s.Child.Local != s.Local)
}

func (s *State) contentOf(v *Version) string {
	if v == nil {
		return s.Local
	}
	return v.Content
}

// keepHouse does what can wait: writes, and verdicts on changed local files that are only reported.
func (s *State) keepHouse() any {
	if s.Now >= s.persistAt() && s.persistAt() > 0 && !s.saveBlocked() {
		return Save{Durable: s.Durable}
	}
	if s.SaveError != "" && !s.saveBlocked() {
		return Save{Durable: s.Durable}
	}
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	if !s.settled() || s.Now < s.Child.HealthySince+soundAfter || s.Environment != "" && s.Now < s.EnvironmentRetry {
		return nil
	}
	for _, v := range s.unproven() {
		if s.proof(s.contentOf(v), s.OnDisk) == nil {
			return s.prove(v)
		}
	}
	return nil
}

// unproven lists what a change of the local files puts in question: what runs, if it was started before the change, and the
// fallback of last resort.
func (s *State) unproven() []*Version {
	var list []*Version
	if s.LocalChangePending() {
		list = append(list, s.Child.Version)
	}
	if s.Child.Version != nil {
		list = append(list, nil)
	}
	return list
}

// persistAt is when trial time is to be written; 0 when there is none to write.
func (s *State) persistAt() time.Duration {
	if !s.OnTrial() || s.Trial == s.Disk.Trial {
		return 0
	}
	return s.SavedAt + persistInterval
}

func (s *State) tell(kind, reason, message string) {
	s.events = append(s.events, NodeEvent{Type: kind, Reason: reason, Message: message})
}
