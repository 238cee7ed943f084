package decide

import "time"

// move is where the plan wants to go from here. commit pays for it and gives the action.
type move struct {
	kind   moveKind
	want   *Version // of replaceChild and startChild
	action Action   // of act
}

type moveKind int

const (
	stay         moveKind = iota
	act                   // the action as it is
	end                   // the supervisor
	goLocal               // the removal of the assignment takes effect
	replaceChild          // what runs makes room for want
	startChild            // nothing runs: start want
	keepChild             // what runs is what should
)

// plan says where to go.
func (s *State) plan() move {
	switch {
	case s.Stopping && s.Child.Alive:
		return move{kind: act, action: Stop{}}
	case s.Stopping:
		return move{kind: end}
	case s.Frozen:
		return move{}
	case s.Child.Hung != "":
		return move{kind: act, action: Stop{Hung: s.Child.Hung}}
	case s.Pending != nil && !s.NodeGone && !s.saveBlocked(): // durable before anything else is done about it (rule 3)
		if next := s.planPending(); next.kind != stay {
			return next
		}
	}
	if s.Reset != nil && !s.NodeGone {
		if next := s.planReset(); next.kind != stay {
			return next
		}
	}
	if s.mergeIsDue() {
		return move{kind: act, action: Merge{Version: *s.Assigned, Local: s.Local}}
	}
	if do := s.planMerge(); do != nil {
		return move{kind: act, action: do}
	}
	want, ask := s.choose()
	if ask != nil {
		return move{kind: act, action: ask}
	}
	return s.planChange(want)
}

// planReset goes back to local. A configuration that can run is only left for a local one that the kubelet would accept (rule 9).
func (s *State) planReset() move {
	if s.target() == nil {
		return move{kind: goLocal}
	}
	switch proof := s.proof(s.Local, s.OnDisk); {
	case proof != nil && proof.refused():
		return move{}
	case proof != nil, s.owed(nil) != nil:
	case s.environmentBlocks() && !s.Child.Alive:
		return move{kind: goLocal} // nothing runs that could be lost, and what keeps pre-flights from being made may last
	case s.environmentBlocks() && s.isCrowded(): // it is what runs that keeps them from being made, and the way back ends that
	case s.environmentBlocks():
		return move{}
	default:
		return move{kind: act, action: s.prove(nil)}
	}
	if wait := s.waitBefore(nil); wait != nil {
		return *wait
	}
	return move{kind: goLocal}
}

// choose settles on the configuration to run, asking for a verdict where none is kept. One that was asked for and not given holds up a change
// (waitBefore), and no start.
func (s *State) choose() (want *Version, ask Action) {
	want = s.target()
	if ran, is := s.ranBefore(want); is && (s.waitsForTurn(want) || s.isUnseen(want)) {
		want = ran // a change that is to come later is made by no crash, and by no boot
	}
	if want == nil || s.runs(want) || s.proof(want.Content, s.OnDisk) != nil || s.owed(want) != nil {
		return want, nil
	}
	if s.environmentBlocks() {
		if s.Child.Alive {
			return s.Child.Version, nil // nothing is blamed or changed
		}
		return want, nil // there is always a kubelet: as with no verdict, the trial will tell
	}
	return nil, s.prove(want)
}

// ranBefore gives what ran last, where that ended by itself or with its supervisor, and the newest assignment was still to be made. One that was
// started before is made. One that waited for that end has just begun. Where no account was kept, what ran last is not known.
func (s *State) ranBefore(want *Version) (ran *Version, is bool) {
	switch c := s.Child; {
	case c.Alive, s.Parked != nil, want == nil, !Same(want, s.Assigned):
		return nil, false
	case c.Crashed && c.Version == nil && s.ControlsFailed > 0 && Same(want, s.Active): // back to what was healthy before a local that never was
		return nil, false
	case c.Crashed:
		ran = c.Version
	case c != (Child{}), s.NodeUID == "", s.Trial.Content == want.Content && s.Trial.Tries > 0:
		return nil, false
	default: // the first one of this supervisor
		ran = s.Active
	}
	return ran, !Same(want, ran) && (ran == nil || s.usable(ran))
}

// environmentBlocks: the environment is to blame, and was asked too recently to be asked again.
func (s *State) environmentBlocks() bool {
	return s.Environment != "" && s.Now < s.EnvironmentRetry
}

func (s *State) prove(v *Version) Action {
	do := Prove{Version: v, Kubelet: s.OnDisk, Local: s.Local}
	if u := s.owed(v); u != nil {
		do.Tries = u.Tries
	}
	if v != nil {
		do.Control = s.fallback(v)
		return do
	}
	if do.Control = s.target(); do.Control == nil {
		do.Alone = true
	}
	return do
}

// planChange brings what runs to what should.
func (s *State) planChange(want *Version) move {
	switch {
	case s.runs(want) && !s.followsLocal(want):
		return move{kind: keepChild}
	case s.Child.Alive && s.waitsForTurn(want):
		return move{}
	case s.Child.Alive:
		return s.planReplace(want)
	case Same(want, s.NextOf) && s.Now < s.NextStart:
		return move{}
	}
	return move{kind: startChild, want: want}
}

// planReplace makes room for want, unless that waits.
func (s *State) planReplace(want *Version) move {
	switch {
	case !s.runsUnblamed():
		return move{kind: replaceChild, want: want}
	case s.NodeGone:
		return move{kind: keepChild}
	case s.Disruption == Hold && (s.Reset != nil || s.Pending != nil), s.Reset != nil && s.mayHold(nil): // the newest change is the one that counts
		return move{kind: keepChild}
	}
	if do := s.proveToday(); do != nil && Same(want, s.Assigned) {
		return move{kind: act, action: do} // else the start would take it unseen
	}
	switch wait := s.waitBefore(want); {
	case wait == nil:
		return move{kind: replaceChild, want: want}
	case wait.kind == stay:
		return move{kind: keepChild}
	default:
		return *wait
	}
}

// waitsForTurn: an edit is not applied yet, unless what runs meanwhile has failed.
func (s *State) waitsForTurn(want *Version) bool {
	return Same(want, s.Assigned) && s.Child.Version != nil && s.usable(s.Child.Version) && s.Now < s.ApplyAt
}

// followsLocal: with --follow-local an accepted change of the local files restarts the kubelet that they concern.
func (s *State) followsLocal(want *Version) bool {
	if !s.FollowLocal || !s.localFilesChanged() {
		return false
	}
	proof := s.proof(s.contentOf(want), s.OnDisk)
	ended := *s
	ended.Child.Alive = false
	return proof != nil && !proof.refused() && Same(ended.target(), want)
}

// LocalChangePending tells that the kubelet that runs was started with other local files, drop-ins, another binary or other files of the unit
// than there are now.
func (s *State) LocalChangePending() bool {
	return s.localFilesChanged() || s.mergePending() || s.Unit.changed() != ""
}

func (s *State) localFilesChanged() bool {
	return s.Child.Alive && (s.Child.Kubelet != s.OnDisk || s.Child.Version == nil && s.Child.Local != s.Local)
}

func (s *State) contentOf(v *Version) string { return ContentOr(v, s.Local) }

// planSpareTime is for what can wait: writes, and verdicts on changed local files that are only reported.
func (s *State) planSpareTime() Action {
	if due := s.persistAt(); due != never && s.Now >= due && !s.saveBlocked() {
		return Save{Durable: s.Durable}
	}
	if s.SaveError != "" && !s.saveBlocked() {
		return Save{Durable: s.Durable}
	}
	if do := s.saveIfDirty(); do != nil {
		return do
	}
	if !s.settled() || s.environmentBlocks() {
		return nil
	}
	if do := s.planAsk(); do != nil {
		return do
	}
	if s.Now < s.Child.HealthySince+s.healthThatCounts() {
		return nil
	}
	for _, v := range s.unproven() {
		if u := s.owed(v); u != nil && !s.askAgain(u) {
			continue
		}
		if s.proof(s.contentOf(v), s.OnDisk) == nil {
			return s.prove(v)
		}
	}
	return s.planBlame()
}

// unproven lists what a change of the local files puts in question: what runs, if it was started before the change, and the
// fallback of last resort.
func (s *State) unproven() []*Version {
	var list []*Version
	if s.localFilesChanged() {
		list = append(list, s.Child.Version)
	}
	if s.mergePending() {
		list = append(list, s.Today.Version)
	}
	if s.Child.Version != nil {
		list = append(list, nil)
	}
	return list
}

// persistAt is when trial time is to be written; never when there is none to write.
func (s *State) persistAt() time.Duration {
	if !s.OnTrial() || s.Trial == s.Disk.Trial {
		return never
	}
	return s.SavedAt + persistInterval
}
