package core

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Decide takes the state and one event and returns the next state and what to do about it. Only the loop calls it, one event at a time. It
// is pure: it reads no clock and changes nothing outside its result, not even what the given state points to. It works in four movements,
// and notes for people what came of them.
func Decide(s State, at Moment, e Event) (State, Step) {
	learn(&s, at, e)
	judge(&s)
	next := target(&s)
	do := act(&s, next)
	if do != nil {
		s.Doing = do
	}
	follow(&s)
	look := askForLook(&s)
	s.Due = due(&s)
	step := Step{Do: do, GaveUp: s.gaveUp, LookAtNode: look, Wake: s.wake(), WatchLease: watchesLease(&s), Events: s.events, Phases: s.ended}
	s.events, s.ended, s.gaveUp = nil, nil, false
	return s, step
}

// learn turns the event, and the time that has come, into knowledge.
func learn(s *State, at Moment, e Event) {
	credit(s, s.advance(at))
	hear(s, e)
	takeEdit(s)
	takeMerge(s)
}

// judge turns knowledge into verdicts: that what runs comes to the same as what should, on the trial and its control, and on what a change
// would cost.
func judge(s *State) {
	recognise(s)
	judgeHealth(s)
	keepHold(s)
}

// follow notes for people what was decided.
func follow(s *State) {
	noticeHold(s)
	settle(s)
	followChange(s)
	followReason(s)
}

// hear records what the event says.
func hear(s *State, event Event) {
	giveUpQuestion(s, event)
	switch e := event.(type) {
	case Booted:
		boot(s, e)
	case Assigned:
		learnAssigned(s, e)
	case Cleared:
		learnCleared(s, e)
	case SyncFailed:
		// An older request that is not carried out yet is void.
		s.Sync, s.Observed, s.Pending, s.Edit, s.Reset, s.NodeGone = &e.Problem, &e.Text, nil, nil, nil, false
	case NodeGone:
		s.NodeGone = true
	case Retry:
		learnRetry(s, e)
	case Saved:
		learnSaved(s, e)
	case Proved:
		learnProved(s, e)
	case Foreseen:
		learnForeseen(s, e)
	case Merged:
		learnMerged(s, e)
	case Blamed:
		learnBlamed(s, e)
	case ObstaclesSeen:
		s.Obstacles = e.Obstacles
	case Asked:
		learnAsked(s, e)
	case Consented:
		s.learnConsented(e)
	case Reported:
		s.learnReported(s.Now, e)
	case PodsLost:
		learnPodsLost(s, e)
	case ParkEnded:
		learnParked(s, e)
	case Unparked:
		learnUnparked(s)
	case Started:
		learnStarted(s, e)
	case Healthy:
		learnHealthy(s)
	case Unhealthy:
		s.Child.Healthy, s.Child.Words = false, e.Words
	case PortSeen:
		s.learnPort(e)
	case NotInUse:
		s.Child.NotInUse = e.Words
	case Hung:
		s.learnHung(e)
	case ChildExited:
		learnExited(s, e)
	case LeaseSeen:
		learnLease(s, e)
	case ConditionsSeen:
		learnConditions(s, e)
	case FilesSetAside:
		learnSetAside(s, e)
	case LimitsWrittenBack:
		learnWrittenBack(s, e)
	case ClusterSeen:
		learnCluster(s, e.Keys)
	case LocalChanged:
		s.OnDisk, s.Local, s.EnvironmentRetry = e.Kubelet, e.Local, s.Now
	case UnitSeen:
		s.Unit.learn(e)
	case HostStopping:
		s.Frozen = !e.CalledOff
	case StopAsked:
		s.Stopping = true
	}
}

func boot(s *State, e Booted) {
	s.Booted, s.BootID = true, e.BootID
	s.restore(e.Disk)
	s.Disk = e.Disk
	if s.Assigned == nil {
		s.Assigned = s.LastKnownGood // a reset empties both: only an assignment that could not be read leaves this one
	}
	s.OnDisk, s.Local = e.Kubelet, e.Local
	s.SavedAt, s.Warning = s.Now, e.Warning
	learnCluster(s, e.Cluster)
	// A kubelet that could not answer is asked again by each supervisor; one that must not be asked is not.
	s.Proofs = without(s.Proofs, func(p Proof) bool { return p.Outcome == kubeletconfig.Unknown && p.Content != AnyContent })
	s.Asides = without(s.Asides, func(a Aside) bool { return a.BootID != s.BootID })
	s.Limits = without(s.Limits, func(k KeptLimit) bool { return k.BootID != s.BootID || s.BootID == "" })
	if s.SaveError = e.Useless; s.SaveError != "" {
		s.SaveRetry = s.Now + s.saveRetryAfter()
	}
	inherit(s, e.LastChange)
	s.Said = e.Said
	countOpenStart(s, e.Waited)
}

func learnSaved(s *State, e Saved) {
	save, is := s.Doing.(Save)
	if !is {
		return // too late: it was given up
	}
	s.Doing, s.SavedAt = nil, s.Now
	if e.Err != nil {
		s.SaveError, s.SaveRetry = e.Err.Error(), s.Now+s.saveRetryAfter()
		return
	}
	s.Disk, s.SaveError = save.Durable, ""
	if save.spends {
		s.learnSpent(save.Durable)
	}
	if save.assigned == nil {
		return
	}
	adopt(s, *save.assigned)
	if s.Pending != nil && s.PendingNumber == save.number { // else something newer has come since
		s.Pending, s.Observed, s.Sync = nil, &save.assigned.Text, nil
	}
}

func learnStarted(s *State, e Started) {
	start, is := s.Doing.(Start)
	if !is {
		return
	}
	s.Doing = nil
	if e.Gone {
		learnUnparked(s)
		return
	}
	if len(e.InTheWay) > 0 {
		s.learnInTheWay(s.BootID, e.InTheWay, start.Version)
		return
	}
	if len(e.Limits) > 0 {
		learnLimits(s, e.Limits, start.Version)
		return
	}
	if start.Waits {
		if e.Err != nil {
			s.outdate()
			return
		}
		passed(s)
	}
	s.StateFiles, s.LimitCare = StateFiles{}, LimitCare{}
	s.Lease = Lease{Reachable: s.Lease.Reachable, ReachableSince: s.Now}
	s.Node = NodeLooks{}
	if e.Err != nil {
		s.Child = Child{Version: start.Version, Words: e.Err.Error(), Crashed: true}
		if e.NoRoom && s.setLimits(start.Version) {
			countNoRoom(s, start, e)
			return
		}
		s.Trial.refund()
		if e.Unrenderable && start.Version != nil {
			s.Unrenderable = newest(s.Unrenderable, Unrenderable{start.Version.Content, e.Err.Error()})
			return
		}
		s.Exit, s.ExitCode, s.Environment = e.Err.Error(), noExitCode, e.Err.Error()
		s.NextStart, s.NextOf = s.Now+e.Delay, start.Version
		return
	}
	s.Child = Child{Alive: true, Version: start.Version, Kubelet: start.Kubelet, Local: start.Local, Started: s.Now,
		Effective: s.effectiveOf(start), Locked: e.Locked}
	if Same(start.Version, s.Assigned) {
		s.ApplyAt = 0
	}
}

func learnHealthy(s *State) {
	if !s.Child.Alive || s.Child.Healthy {
		return
	}
	s.Child.Healthy, s.Child.EverHealthy = true, true
	s.Child.HealthySince, s.Child.Words, s.Child.PortHeld = s.Now, "", ""
	s.Environment, s.LocalFailures, s.ControlsFailed = "", 0, 0
	if s.Child.Version == nil {
		s.Worked = LocalKubelet{s.Child.Local, s.Child.Kubelet}
	}
}

// settle notes what was seen to run, and since when what runs differs from what should.
func settle(s *State) {
	if s.Child.Healthy {
		s.Active = newestOf(s, s.inUse())
	}
	if settled(s) {
		s.Unsettled = -1
		return
	}
	if s.Unsettled < 0 {
		s.Unsettled = s.Now
	}
}

func settled(s *State) bool {
	if _, proving := s.Doing.(Prove); proving && s.Reset != nil {
		return false
	}
	_, _, held := heldChange(s)
	return (s.Pending == nil || held) && s.Child.Healthy && s.runs(wanted(s))
}

// newestOf returns the newest source with the content of v (active in docs/reference/contract.md).
func newestOf(s *State, v *Version) *Version {
	for _, known := range []*Version{s.Assigned, s.LastKnownGood, s.Active} {
		if Same(known, v) {
			return known
		}
	}
	return v
}
