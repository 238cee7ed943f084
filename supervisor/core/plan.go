package core

import "time"

// move is where the plan wants to go from here. commit pays for it and gives the action.
type move struct {
	kind   moveKind
	want   *Version // of replaceChild and startChild
	action Action   // of perform
}

type moveKind int

const (
	stay         moveKind = iota
	perform               // the action as it is
	end                   // the supervisor
	goLocal               // the removal of the assignment takes effect
	replaceChild          // what runs makes room for want
	startChild            // nothing runs: start want
	keepChild             // what runs is what should
	busy                  // an action is under way, or nothing is known yet
)

// target returns where to go from here: to which configuration, or what has to come before. It changes nothing.
func target(s *State) move {
	switch {
	case s.Doing != nil || !s.Booted:
		return move{kind: busy}
	case s.Stopping && s.Child.Alive:
		return move{kind: perform, action: Stop{}}
	case s.Stopping:
		return move{kind: end}
	case s.Frozen:
		return move{}
	case s.Child.Hung != "":
		return move{kind: perform, action: Stop{Hung: s.Child.Hung}}
	case s.Pending != nil && !s.NodeGone && !s.saveBlocked(s.Now): // durable before anything else is done about it (rule 3)
		if next := planPending(s); next.kind != stay {
			return next
		}
	}
	if s.Reset != nil && !s.NodeGone {
		if next := planReset(s); next.kind != stay {
			return next
		}
	}
	if s.mergeIsDue(s.Local) {
		return move{kind: perform, action: Merge{Version: *s.Assigned, Local: s.Local}}
	}
	if do := planMerge(s); do != nil {
		return move{kind: perform, action: do}
	}
	want, ask := choose(s)
	if ask != nil {
		return move{kind: perform, action: ask}
	}
	return planChange(s, want)
}

// planReset goes back to local. A configuration that can run is only left for a local one that the kubelet would accept (rule 9).
func planReset(s *State) move {
	if wanted(s) == nil {
		return move{kind: goLocal}
	}
	switch proof := s.proof(s.Local, s.OnDisk); {
	case proof != nil && proof.refused():
		return move{}
	case proof != nil, s.owed(s.contentOf(nil), s.OnDisk) != nil:
	case s.environmentBlocks(s.Now) && !s.Child.Alive:
		return move{kind: goLocal} // nothing runs that could be lost, and what keeps pre-flights from being made may last
	case s.environmentBlocks(s.Now) && isCrowded(s): // it is what runs that keeps them from being made, and the way back ends that
	case s.environmentBlocks(s.Now):
		return move{}
	default:
		return move{kind: perform, action: prove(s, nil)}
	}
	if wait := waitBefore(s, nil); wait != nil {
		return *wait
	}
	return move{kind: goLocal}
}

// choose settles on the configuration to run, asking for a verdict where none is kept. One that was asked for and not given holds up a
// change (waitBefore), and no start.
func choose(s *State) (want *Version, ask Action) {
	want = wanted(s)
	if ran, is := ranBefore(s, want); is && (waitsForTurn(s, want) || isUnseen(s, want)) {
		want = ran // a change that is to come later is made by no crash, and by no boot
	}
	if want == nil || s.runs(want) || s.proof(want.Content, s.OnDisk) != nil || s.owed(s.contentOf(want), s.OnDisk) != nil {
		return want, nil
	}
	if s.environmentBlocks(s.Now) {
		if s.Child.Alive {
			return s.Child.Version, nil // nothing is blamed or changed
		}
		return want, nil // there is always a kubelet: as with no verdict, the trial will tell
	}
	return nil, prove(s, want)
}

// ranBefore returns what ran last, where that ended on its own or with its supervisor, and the newest assignment was still to be made. One
// that was started before is made. One that waited for that end has just begun. Where no account was kept, what ran last is not known.
func ranBefore(s *State, want *Version) (ran *Version, is bool) {
	switch c := s.Child; {
	case c.Alive, s.Parked != nil, want == nil, !Same(want, s.Assigned):
		return nil, false
	// back to what was healthy before a local that never was
	case c.Crashed && c.Version == nil && s.ControlsFailed > 0 && Same(want, s.Active):
		return nil, false
	case c.Crashed:
		ran = c.Version
	case c != (Child{}), s.NodeUID == "", s.Trial.Content == want.Content && s.Trial.Tries > 0:
		return nil, false
	default: // the first one of this supervisor
		ran = s.Active
	}
	return ran, !Same(want, ran) && (ran == nil || usable(s, ran))
}

func prove(s *State, v *Version) Action {
	do := Prove{Version: v, Kubelet: s.OnDisk, Local: s.Local}
	if u := s.owed(s.contentOf(v), s.OnDisk); u != nil {
		do.Tries = u.Tries
	}
	if v != nil {
		do.Control = fallback(s, v)
		return do
	}
	if do.Control = wanted(s); do.Control == nil {
		do.Alone = true
	}
	return do
}

// planChange brings what runs to what should.
func planChange(s *State, want *Version) move {
	switch {
	case s.runs(want) && !followsLocal(s, want):
		return move{kind: keepChild}
	case s.Child.Alive && waitsForTurn(s, want):
		return move{}
	case s.Child.Alive:
		return planReplace(s, want)
	case Same(want, s.NextOf) && s.Now < s.NextStart:
		return move{}
	}
	return move{kind: startChild, want: want}
}

// planReplace makes room for want, unless that waits.
func planReplace(s *State, want *Version) move {
	switch {
	case !runsWithoutFailure(s):
		return move{kind: replaceChild, want: want}
	case s.NodeGone:
		return move{kind: keepChild}
	// the newest change is the one that counts
	case s.Disruption == Hold && (s.Reset != nil || s.Pending != nil), s.Reset != nil && mayHold(s, nil):
		return move{kind: keepChild}
	}
	if do := proveToday(s); do != nil && Same(want, s.Assigned) {
		return move{kind: perform, action: do} // else the start would take it unseen
	}
	switch wait := waitBefore(s, want); {
	case wait == nil:
		return move{kind: replaceChild, want: want}
	case wait.kind == stay:
		return move{kind: keepChild}
	default:
		return *wait
	}
}

// waitsForTurn reports whether an edit has to wait. It does not where what runs has failed.
func waitsForTurn(s *State, want *Version) bool {
	return Same(want, s.Assigned) && s.Child.Version != nil && usable(s, s.Child.Version) && s.Now < s.ApplyAt
}

// followsLocal reports whether an accepted change of the local files restarts the kubelet that they concern (--follow-local).
func followsLocal(s *State, want *Version) bool {
	if !s.FollowLocal || !s.localFilesChanged() {
		return false
	}
	proof := s.proof(s.contentOf(want), s.OnDisk)
	ended := *s
	ended.Child.Alive = false
	return proof != nil && !proof.refused() && Same(wanted(&ended), want)
}

// LocalChangePending reports whether the kubelet that runs was started with other local files, drop-ins, another binary or other files of
// the unit than there are now.
func (s *State) LocalChangePending() bool {
	return s.localFilesChanged() || mergePending(s) || s.Unit.changed() != ""
}

// planSpareTime is for what can wait: writes, and verdicts on changed local files that are only reported.
func planSpareTime(s *State) Action {
	if due := persistAt(s); due != never && s.Now >= due && !s.saveBlocked(s.Now) {
		return Save{Durable: s.durable()}
	}
	if s.SaveError != "" && !s.saveBlocked(s.Now) {
		return Save{Durable: s.durable()}
	}
	if do := saveIfDirty(s); do != nil {
		return do
	}
	if !settled(s) || s.environmentBlocks(s.Now) {
		return nil
	}
	if do := planAsk(s); do != nil {
		return do
	}
	if s.Now < s.Child.HealthySince+s.healthThatCounts() {
		return nil
	}
	for _, v := range unproven(s) {
		if u := s.owed(s.contentOf(v), s.OnDisk); u != nil && !askAgain(s, u) {
			continue
		}
		if s.proof(s.contentOf(v), s.OnDisk) == nil {
			return prove(s, v)
		}
	}
	return planBlame(s)
}

// unproven lists what a change of the local files puts in question: what runs, if it was started before the change, and the
// fallback of last resort.
func unproven(s *State) []*Version {
	var list []*Version
	if s.localFilesChanged() {
		list = append(list, s.Child.Version)
	}
	if mergePending(s) {
		list = append(list, s.Today.Version)
	}
	if s.Child.Version != nil {
		list = append(list, nil)
	}
	return list
}

// persistAt returns when trial time must be written; never when there is none to write.
func persistAt(s *State) time.Duration {
	if !s.OnTrial() || s.Trial == s.Disk.Trial {
		return never
	}
	return s.SavedAt + persistInterval
}
