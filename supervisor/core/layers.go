package core

import "time"

// Layers lie over the node's own file, so what an assignment means changes with that file. Such a change is another configuration: it is
// pre-flighted at once, reported as pending, and taken at the next start, or with --follow-local; then it is on trial. What runs goes on
// until then, its trial too, over the copy of the file that it was started with.

// Today is what the layers of the assigned configuration are over the node's own file as it is now, where that is not what is assigned yet.
type Today struct {
	Of      string        // content of the node's own file
	Version *Version      // nil = it is nothing else, or there is nothing to lay the layers over
	Fault   string        // why there is not
	Failing bool          // the kubelet fails with it as it does without the layers: the node is at fault
	At      time.Duration // with --follow-local its turn is not before, as with an edit
}

func learnMerged(s *State, e Merged) {
	do, merges := s.Doing.(Merge)
	if !merges {
		return
	}
	s.Doing = nil
	if do.Pending {
		mergePendingOver(s, do.Version, e)
		return
	}
	s.Today = Today{Of: e.Local, Version: e.Version, Fault: e.Fault, At: s.Now + spread(s.NodeUID, e.Local, s.EditSpread)}
}

// mergePendingOver takes the answer for what waits. Where the files give the same, or none can be laid over the other, it stays.
func mergePendingOver(s *State, of Version, e Merged) {
	if s.Pending == nil || s.Pending.Version != of {
		return // another one waits by now
	}
	s.PendingOver = e.Local
	if e.Version != nil {
		next := *s.Pending
		next.Version = *e.Version
		s.Pending = &next
		s.PendingNumber++
		askedFor(s, &next.Version)
	}
}

// mergeOnly takes an assignment that was heard of again, over another file of the node, for what it is: no edit. That file is merged for
// itself.
func mergeOnly(s *State, e *Assigned) {
	v := s.Assigned
	if v != nil && v.Base != "" && v.Base != e.Version.Base && v.Source == e.Version.Source && !savesAssignment(s) {
		e.Version = *v
	}
}

// takeMerge makes today's merge the one that is assigned, or forgets it, where the file or the assignment has changed since.
func takeMerge(s *State) {
	if s.Today.Of != s.Local || s.Assigned == nil {
		s.Today = Today{}
	}
	merged := s.Today.Version
	switch {
	case merged == nil:
	case merged.Source != s.Assigned.Source:
		s.Today = Today{}
	case mayTake(s, *merged):
		s.Assigned = merged
		s.Today.Version = nil
	}
}

func mayTake(s *State, merged Version) bool {
	proof := s.proof(merged.Content, s.OnDisk)
	switch {
	case Same(&merged, s.Assigned):
		return true // an equal result never restarts
	case !usable(s, &merged), s.Reset != nil, s.Pending != nil:
		return false
	case !s.Child.Alive:
		// What ran is there still, over the copy of its file, and is better than what was not checked.
		return s.Doing == nil && !s.Today.Failing && (proof != nil || !usable(s, s.Assigned))
	case !s.runs(s.Assigned) && !usable(s, s.Assigned):
		return true // what was wrong with it may have been the node's own file
	case proof == nil:
		return false
	case !s.runs(s.Assigned):
		return true // it waits to be made, and a start would make it of today's file
	case proof.Effective != "" && proof.Effective == s.Child.Effective && sameProgram(s.Child.Kubelet, s.OnDisk):
		return true // the kubelet makes no difference between them
	}
	return s.FollowLocal && s.Now >= s.Today.At
}

// planMerge asks about today's merge before a start, because a start takes it. Where the environment was to blame a moment ago, what ran
// goes on.
func planMerge(s *State) Action {
	if s.Child.Alive {
		return nil
	}
	return proveToday(s)
}

// proveToday asks about today's merge, where there is no answer yet.
func proveToday(s *State) Action {
	v := s.Today.Version
	if v == nil || s.Today.Failing || !usable(s, v) || s.proof(v.Content, s.OnDisk) != nil || s.owed(s.contentOf(v), s.OnDisk) != nil ||
		s.environmentBlocks(s.Now) {
		return nil
	}
	return prove(s, v)
}

// mergePending reports whether the next start is with another merge than the one that runs.
func mergePending(s *State) bool { return s.Child.Alive && s.Today.Version != nil }

// planBlame finds out which layers a refusal is about.
func planBlame(s *State) Action {
	v := s.Assigned
	if v == nil || s.runs(v) {
		return nil
	}
	if p := s.proof(v.Content, s.OnDisk); p == nil || p.Layers == 0 {
		return nil
	}
	return Blame{Version: *v, Kubelet: s.OnDisk}
}

func learnBlamed(s *State, e Blamed) {
	if do, blames := s.Doing.(Blame); blames && do.Version.Content == e.Content && do.Kubelet == e.Kubelet {
		s.Doing = nil // else it was given up
	}
	s.nameLayers(e)
}
