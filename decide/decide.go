package decide

import (
	"reflect"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// Decide takes the state and one event and gives the next state and what to do about it. It is pure: it reads no clock and changes
// nothing outside its result. It works in four movements, each a file: the event becomes knowledge (learn, assignment, exits), due
// times become verdicts (trial, control), verdicts choose the configuration that should run (target), and the distance between that
// and what runs becomes one action (act).
func Decide(s State, e Event) (State, Step) {
	s.events = nil
	s.advance(e)
	s.learn(e.Is)
	s.judge()
	do := s.act()
	if do != nil {
		s.Doing = do
	}
	s.settle()
	step := Step{Do: do, Wake: s.wake(), WatchLease: s.watchesLease(), Events: s.events}
	s.events = nil
	return s, step
}

// learn turns the event into knowledge; it decides nothing.
func (s *State) learn(event any) {
	switch e := event.(type) {
	case Booted:
		s.boot(e)
	case Assigned:
		s.hearAssigned(e)
	case Cleared:
		s.hearCleared(e)
	case SyncFailed:
		// Whatever was asked before, and is not done yet, is not asked any more.
		s.Sync, s.Observed, s.Pending, s.Reset = &e.Problem, &e.Text, nil, nil
	case Retry:
		s.hearRetry(e)
	case Saved:
		s.hearSaved(e)
	case Proved:
		s.hearProved(e)
	case Started:
		s.hearStarted(e)
	case Healthy:
		s.hearHealthy()
	case Unhealthy:
		s.Child.Healthy, s.Child.Words = false, e.Words
	case Hung:
		s.hearHung(e)
	case ChildExited:
		s.hearExited(e)
	case LeaseSeen:
		s.hearLease(e)
	case LocalChanged:
		s.OnDisk, s.Local, s.EnvironmentRetry = e.Kubelet, e.Local, s.Now
	case HostStopping:
		s.Frozen = !e.CalledOff
	case StopAsked:
		s.Stopping = true
	}
}

func (s *State) boot(e Booted) {
	s.Booted = true
	s.Durable, s.Disk = e.Disk, e.Disk
	if s.Assigned == nil {
		s.Assigned = s.LastKnownGood // a reset empties both: only an assignment that could not be read leaves this one
	}
	s.OnDisk, s.Local = e.Kubelet, e.Local
	s.SavedAt, s.Warning = s.Now, e.Warning
	// A kubelet that could not tell is asked again by each supervisor; one that must not be asked is not.
	s.Proofs = without(s.Proofs, func(p Proof) bool { return p.Outcome == config.Unknown && p.Content != AnyContent })
	if s.SaveError = e.Useless; s.SaveError != "" {
		s.SaveRetry = s.Now + saveRetryAfter
	}
	if !s.Trial.Open {
		return
	}
	// Rule 10: a start without a recorded end is one failure, unless it had been healthy for a while.
	s.Trial.Open = false
	if s.Trial.Sound {
		s.Trial.Tries--
	}
	s.Trial.Sound = false
	s.Exit = "the supervisor or the host died during its trial"
	if s.Trial.Tries >= s.TrialFailures {
		s.failTrialOf(s.trialVersion(), Exited, s.Exit)
	}
}

// trialVersion names the version that the trial's account is about.
func (s *State) trialVersion() *Version {
	for _, v := range []*Version{s.Assigned, s.LastKnownGood} {
		if v != nil && v.Content == s.Trial.Content {
			return v
		}
	}
	return nil
}

func (s *State) hearSaved(e Saved) {
	save, _ := s.Doing.(Save)
	s.Doing, s.SavedAt = nil, s.Now
	if e.Err != nil {
		s.SaveError, s.SaveRetry = e.Err.Error(), s.Now+saveRetryAfter
		return
	}
	s.Disk, s.SaveError = save.Durable, ""
	if save.assigned == nil {
		return
	}
	s.adopt(*save.assigned)
	if s.Pending == save.assigned { // else something newer was heard meanwhile
		s.Pending, s.Observed = nil, &save.assigned.Text
	}
}

func (s *State) hearStarted(e Started) {
	start, _ := s.Doing.(Start)
	s.Doing = nil
	s.Lease = Lease{Reachable: s.Lease.Reachable, ReachableSince: s.Now}
	if e.Err != nil {
		s.Child = Child{Version: start.Version, Kubelet: start.Kubelet, Words: e.Err.Error()}
		s.refund()
		if e.Spoilt && start.Version != nil {
			s.Spoilt = newest(s.Spoilt, Spoilt{start.Version.Content, e.Err.Error()})
			return
		}
		s.Exit, s.Environment = e.Err.Error(), e.Err.Error()
		s.NextStart, s.NextOf = s.Now+e.Delay, start.Version
		return
	}
	s.Child = Child{Alive: true, Version: start.Version, Kubelet: start.Kubelet, Local: start.Local, Started: s.Now}
	s.ApplyAt = 0
}

func (s *State) hearHealthy() {
	if !s.Child.Alive || s.Child.Healthy {
		return
	}
	s.Child.Healthy, s.Child.EverHealthy = true, true
	s.Child.HealthySince, s.Child.Words = s.Now, ""
	s.Environment = ""
}

func (s *State) hearHung(e Hung) {
	if s.Child.Alive {
		s.Child.Healthy, s.Child.Words, s.Child.Hung = false, e.Words, e.Words
	}
}

// settle notes what was seen to run, and since when what runs differs from what should.
func (s *State) settle() {
	if s.Child.Alive && s.Child.Healthy {
		s.Active = s.newestOf(s.Child.Version)
	}
	if s.settled() {
		s.Unsettled = -1
	} else if s.Unsettled < 0 {
		s.Unsettled = s.Now
	}
}

func (s *State) settled() bool {
	if _, proving := s.Doing.(Prove); proving && (s.Reset != nil || !s.runs(s.target())) {
		return false
	}
	return s.Booted && s.Pending == nil && s.Child.Alive && s.Child.Healthy && s.runs(s.target())
}

// newestOf finds the newest source with the content of v (design.md, Words: active).
func (s *State) newestOf(v *Version) *Version {
	for _, known := range []*Version{s.Assigned, s.LastKnownGood, s.Active} {
		if v != nil && Same(known, v) {
			return known
		}
	}
	return v
}

// advance moves the clock and credits the time that has passed to the trial, in the state that held while it passed.
func (s *State) advance(e Event) {
	passed := max(0, e.Now-s.Now)
	if s.OnTrial() {
		switch {
		case s.trialClockRuns():
			s.Trial.Healthy += passed
		case !s.Child.Healthy && s.Child.EverHealthy:
			s.Trial.Unhealthy += passed
		}
	}
	s.Now, s.Wall = e.Now, e.Wall
}

// dirty tells whether anything is to be written now.
func (s *State) dirty() bool {
	return !reflect.DeepEqual(significant(s.Durable), significant(s.Disk))
}

func (s *State) saveBlocked() bool { return s.SaveError != "" && s.Now < s.SaveRetry }

func minimum(due *time.Duration, at time.Duration) {
	if *due < 0 || at < *due {
		*due = at
	}
}
