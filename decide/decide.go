package decide

import (
	"reflect"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// Decide takes the state and one event and gives the next state and what to do about it. It is pure: it reads no clock and changes
// nothing outside its result. It works in four movements: the event becomes knowledge (learn, assignment, exits, lease), due times
// become verdicts (trial, control), verdicts choose the configuration that should run (target), and the distance between that and what
// runs becomes one action (plan, commit).
func Decide(s State, at Moment, e Event) (State, Step) {
	s.advance(at)
	s.learn(e)
	s.takeEdit()
	s.takeMerge()
	s.recognise()
	s.judge()
	s.keepHold()
	do := s.act()
	if do != nil {
		s.Doing = do
	}
	s.noticeHold()
	s.settle()
	s.followChange()
	s.followReason()
	look := s.askForLook()
	s.Due = due(&s)
	step := Step{Do: do, GaveUp: s.gaveUp, LookAtNode: look, Wake: s.wake(), WatchLease: s.watchesLease(), Events: s.events, Phases: s.ended}
	s.events, s.ended, s.gaveUp = nil, nil, false
	return s, step
}

// learn turns the event into knowledge; it decides nothing.
func (s *State) learn(event Event) {
	s.giveUpQuestion(event)
	switch e := event.(type) {
	case Booted:
		s.boot(e)
	case Assigned:
		s.learnAssigned(e)
	case Cleared:
		s.learnCleared(e)
	case SyncFailed:
		// An older request that is not carried out yet is void.
		s.Sync, s.Observed, s.Pending, s.Edit, s.Reset, s.NodeGone = &e.Problem, &e.Text, nil, nil, nil, false
	case NodeGone:
		s.NodeGone = true
	case Retry:
		s.learnRetry(e)
	case Saved:
		s.learnSaved(e)
	case Proved:
		s.learnProved(e)
	case Foreseen:
		s.learnForeseen(e)
	case Merged:
		s.learnMerged(e)
	case Blamed:
		s.learnBlamed(e)
	case ObstaclesSeen:
		s.Obstacles = e.Obstacles
	case Asked:
		s.learnAsked(e)
	case Consented:
		s.learnConsented(e)
	case Reported:
		s.learnReported(e)
	case PodsLost:
		s.learnPodsLost(e)
	case ParkEnded:
		s.learnParked(e)
	case Unparked:
		s.learnUnparked()
	case Started:
		s.learnStarted(e)
	case Healthy:
		s.learnHealthy()
	case Unhealthy:
		s.Child.Healthy, s.Child.Words = false, e.Words
	case PortSeen:
		s.learnPort(e)
	case NotInUse:
		s.Child.NotInUse = e.Words
	case Hung:
		s.learnHung(e)
	case ChildExited:
		s.learnExited(e)
	case LeaseSeen:
		s.learnLease(e)
	case ConditionsSeen:
		s.learnConditions(e)
	case FilesSetAside:
		s.learnSetAside(e)
	case LimitsWrittenBack:
		s.learnWrittenBack(e)
	case ClusterSeen:
		s.learnCluster(e.Keys)
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

func (s *State) boot(e Booted) {
	s.Booted, s.BootID = true, e.BootID
	s.Durable, s.Disk = e.Disk, e.Disk
	if s.Assigned == nil {
		s.Assigned = s.LastKnownGood // a reset empties both: only an assignment that could not be read leaves this one
	}
	s.OnDisk, s.Local = e.Kubelet, e.Local
	s.SavedAt, s.Warning = s.Now, e.Warning
	s.learnCluster(e.Cluster)
	// A kubelet that could not tell is asked again by each supervisor; one that must not be asked is not.
	s.Proofs = without(s.Proofs, func(p Proof) bool { return p.Outcome == config.Unknown && p.Content != AnyContent })
	s.Asides = without(s.Asides, func(a Aside) bool { return a.BootID != s.BootID })
	s.Limits = without(s.Limits, func(k KeptLimit) bool { return k.BootID != s.BootID || s.BootID == "" })
	if s.SaveError = e.Useless; s.SaveError != "" {
		s.SaveRetry = s.Now + s.saveRetryAfter()
	}
	s.inherit(e.LastChange)
	s.Said = e.Said
	s.countOpenStart(e.Waited)
}

func (s *State) learnSaved(e Saved) {
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
	s.adopt(*save.assigned)
	if s.Pending != nil && s.PendingNumber == save.number { // else something newer was heard meanwhile
		s.Pending, s.Observed, s.Sync = nil, &save.assigned.Text, nil
	}
}

func (s *State) learnStarted(e Started) {
	start, is := s.Doing.(Start)
	if !is {
		return
	}
	s.Doing = nil
	if e.Gone {
		s.learnUnparked()
		return
	}
	if len(e.InTheWay) > 0 {
		s.learnInTheWay(e.InTheWay, start.Version)
		return
	}
	if len(e.Limits) > 0 {
		s.learnLimits(e.Limits, start.Version)
		return
	}
	if start.Waits {
		if e.Err != nil {
			s.outdate()
			return
		}
		s.passed()
	}
	s.StateFiles, s.LimitCare = StateFiles{}, LimitCare{}
	s.Lease = Lease{Reachable: s.Lease.Reachable, ReachableSince: s.Now}
	s.Node = NodeLooks{}
	if e.Err != nil {
		s.Child = Child{Version: start.Version, Words: e.Err.Error(), Crashed: true}
		if e.NoRoom && s.setLimits(start.Version) {
			s.countNoRoom(start, e)
			return
		}
		s.refund()
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

func (s *State) learnHealthy() {
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

func (s *State) learnPort(e PortSeen) {
	if s.Child.Alive && !s.Child.EverHealthy { // else it comes too late: once healthy, the child has the port
		s.Child.PortHeld, s.Child.PortShared = e.HeldBy, e.Shared
	}
}

func (s *State) learnHung(e Hung) {
	if s.Child.Alive {
		s.Child.Healthy, s.Child.Words, s.Child.Hung = false, e.Words, e.Words
	}
}

// settle notes what was seen to run, and since when what runs differs from what should.
func (s *State) settle() {
	if s.Child.Healthy {
		s.Active = s.newestOf(s.inUse())
	}
	if s.settled() {
		s.Unsettled = -1
		return
	}
	if s.Unsettled < 0 {
		s.Unsettled = s.Now
	}
}

func (s *State) settled() bool {
	if _, proving := s.Doing.(Prove); proving && s.Reset != nil {
		return false
	}
	_, _, held := s.heldChange()
	return (s.Pending == nil || held) && s.Child.Healthy && s.runs(s.target())
}

// newestOf finds the newest source with the content of v (active in docs/reference/contract.md).
func (s *State) newestOf(v *Version) *Version {
	for _, known := range []*Version{s.Assigned, s.LastKnownGood, s.Active} {
		if Same(known, v) {
			return known
		}
	}
	return v
}

// dirty tells whether anything is to be written now.
func (s *State) dirty() bool {
	return !reflect.DeepEqual(significant(s.Durable), significant(s.Disk))
}

func (s *State) saveBlocked() bool { return s.Now < s.SaveRetry }
