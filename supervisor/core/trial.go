package core

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// OnTrial reports whether the child runs the configuration that the trial's account is about.
func (s *State) OnTrial() bool {
	return s.Trial.isOf(s.Child)
}

// trialClockRuns reports whether healthy time counts: while the API server is in reach, only as long as the Lease is renewed (rule 7).
func trialClockRuns(s *State) bool {
	if !s.Child.Healthy || s.Trial.worse(s.Node) != "" {
		return false
	}
	if !s.Lease.Reachable { // never looked at, if the kubelet is a standalone one
		return true
	}
	return s.Lease.Renewed && s.Now-s.Lease.RenewedAt < s.leaseLimit()
}

// credit gives the trial the time that has passed, in the state that held while it passed.
func credit(s *State, passed time.Duration) {
	switch {
	case !s.OnTrial():
	case trialClockRuns(s):
		s.Trial.Healthy += Span(passed)
	case !s.Child.Healthy && s.Child.EverHealthy:
		s.Trial.Unhealthy += Span(passed)
	}
}

// judgeHealth turns due times into verdicts on the trial and its control.
func judgeHealth(s *State) {
	if !s.judges() {
		return
	}
	healthy := s.Child.Healthy && s.Now >= s.Child.HealthySince+s.healthThatCounts()
	if healthy {
		s.Exit = "" // it no longer says anything about the present
		s.WithoutStateFile = nil
	}
	if s.OnTrial() {
		s.Trial.HadHealth = s.Trial.HadHealth || healthy
		judgeTrial(s)
	}
	judgeControl(s)
}

// judges reports whether time may count against the kubelet. While the kubelet, the supervisor or the host stops, nothing is concluded from
// how long anything takes.
func (s *State) judges() bool { return !s.Stopping && !s.Frozen && !s.isStopping() }

func (s *State) isStopping() bool {
	_, stopping := s.Doing.(Stop)
	return stopping
}

func judgeTrial(s *State) {
	switch {
	case s.Child.PortHeld != "": // the kubelet lives on without it, and asks for it again and again
		failTrialByPort(s)
	case !s.Child.EverHealthy && s.Now >= s.Child.Started+s.StartTimeout:
		failTrial(s, StartTimeout, fmt.Sprintf("not healthy within %s of its start%s", s.StartTimeout, tail(s.Child.Words)))
	case s.Trial.isTooLongUnhealthy(s.Settings):
		failTrial(s, StartTimeout, fmt.Sprintf("unhealthy for %s altogether%s", s.StartTimeout, tail(s.Child.Words)))
	case s.Lease.Lost && s.Trial.Baseline:
		failTrial(s, LeaseLost, fmt.Sprintf("healthy, but its Lease was not renewed for %s although the API server is in reach: the kubelet "+
			"has lost the node", s.leaseLimit()))
	case s.Trial.isFull(s.Settings) && (s.Standalone || s.Trial.Renewed && nodeIsFine(s)) && s.Child.Healthy:
		promote(s)
	}
}

func promote(s *State) {
	good := newestOf(s, s.Child.Version)
	s.LastKnownGood = good
	s.Promoted = Promotion{Content: good.Content, Kubelet: s.Child.Kubelet}
	if p := s.proof(good.Content, s.Child.Kubelet); p != nil {
		s.Promoted.Version = p.Version
	}
	s.Trial, s.Exits, s.Asides, s.Excuses = Trial{}, nil, nil, Excuses{}
	s.event(corev1.EventTypeNormal, "KubeletConfigPromoted", Describe(good)+" passed its trial and is the last known good configuration")
}

// failTrialByPort ends the trial over a healthz port that another process has. A process that has the port of the fallback as well is in
// the way of any configuration. It may let go of it before the fallback asks for it, which is no verdict on what is on trial (rule 27).
func failTrialByPort(s *State) {
	s.Trial.Longest = max(s.Trial.Longest, Span(s.Now-s.Child.Started))
	words := "was never healthy: " + s.Child.PortHeld
	if s.Child.PortShared {
		words += ", which is the fallback's port too"
	}
	failTrialOf(s, s.Child.Version, Suspect{Cause: PortHeld, Words: words, Excused: s.Child.PortShared})
}

// failTrial ends the trial of what runs; the fallback that is started next is its control (rule 8).
func failTrial(s *State, cause Cause, words string) {
	s.Trial.Longest = max(s.Trial.Longest, Span(s.Now-s.Child.Started))
	failTrialOf(s, s.Child.Version, Suspect{Cause: cause, Words: words})
}

// failTrialOf ends the trial of v; x is what it failed at.
func failTrialOf(s *State, v *Version, x Suspect) {
	x.Life, x.Kubelet = s.Trial.Longest, s.Trial.Kubelet
	s.Trial = Trial{}
	if v == nil {
		return
	}
	x.Version = *v
	blame(s, x)
}

// blame has the fallback started. It does so for one that is excused from the beginning, too: the fallback may take less of what the node
// is short of, or find some again.
func blame(s *State, x Suspect) {
	dropQuestion(s) // the fallback does not wait for an answer about something else
	s.Suspects = newest(s.Suspects, x)
	if x.Excused {
		s.countExcuse(s.Assigned, x)
	}
	fallback := fallback(s, &x.Version)
	s.event(corev1.EventTypeWarning, "KubeletConfigRolledBack", Describe(&x.Version)+" "+x.Words, "falling back to "+Describe(fallback))
}

// spend counts a start of v before it is made (rule 10). A start already counted, of a child that was never started, is used up first.
func spend(s *State, v *Version) {
	if !s.needsTrial(v, s.OnDisk) {
		s.Trial = Trial{}
		return
	}
	if s.Trial.Content != v.Content || s.Trial.Kubelet != s.OnDisk {
		s.Trial = Trial{Content: v.Content, Kubelet: s.OnDisk, Baseline: s.Renews, Before: s.Before}
	}
	if !s.Trial.Open {
		s.Trial.Open, s.Trial.HadHealth, s.Trial.BootID = true, false, s.BootID
		s.Trial.Tries++
	}
	s.Trial.Parked = false // the caller that parks it says so
}

// resume opens the account again of what runs on trial: a start was counted that was not made, and it took the place of this one.
func resume(s *State) {
	if v := s.Child.Version; v != nil && !s.OnTrial() && !s.promoted(v, s.Child.Kubelet) {
		s.Trial = Trial{Content: v.Content, Kubelet: s.Child.Kubelet, Tries: 1, Open: true, BootID: s.BootID, Baseline: s.Renews,
			Before: s.Before}
	}
}

func tail(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}

// countOpenStart accounts for a start whose end was not recorded (rule 10): the supervisor died, or the host. In the same boot it is one
// failure, unless the kubelet had been healthy for a while. A boot that ended is one whatever its health was: a configuration that takes
// the host down must not become last known good.
//
// One that is only known to have waited at the lock counts nothing in another boot, or where it was found there; where nothing was found,
// it may have been let through.
func countOpenStart(s *State, foundWaiting bool) {
	if !s.Trial.Open {
		return
	}
	anotherBoot := s.Trial.BootID != "" && s.BootID != "" && s.Trial.BootID != s.BootID
	if s.Trial.Parked && (foundWaiting || anotherBoot) {
		s.Trial.refundParked()
		return
	}
	s.Trial.Parked = false
	s.Exit, s.ExitCode = "the supervisor died during its trial", noExitCode
	switch {
	case anotherBoot:
		s.Exit = "the host went down during its trial"
	case s.Trial.HadHealth:
		s.Trial.Tries--
	}
	s.Trial.Open = false
	if int(s.Trial.Tries) >= s.TrialFailures {
		failTrialOf(s, trialVersion(s), Suspect{Cause: Exited, Words: s.Exit, Times: s.Trial.Tries, ExitCode: noExitCode})
	}
}

// trialVersion returns the version that the trial's account is about.
func trialVersion(s *State) *Version {
	for _, v := range []*Version{s.Assigned, s.LastKnownGood} {
		if v != nil && v.Content == s.Trial.Content {
			return v
		}
	}
	return nil
}

// pause returns how long the fallback has to be healthy before a configuration that was excused so often in a row is tried again.
func (e Excuses) pause() time.Duration {
	if e.Times <= 1 {
		return 0
	}
	return min(excusePauseMost, excusePauseFirst<<min(e.Times-2, 10))
}
