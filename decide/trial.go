package decide

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// needsTrial tells whether v, started now, would be on trial (rules 7 and 9).
func (s *State) needsTrial(v *Version) bool { return v != nil && !s.promoted(v, s.OnDisk) }

// OnTrial tells whether the child runs the configuration that the trial's account is about.
func (s *State) OnTrial() bool {
	v := s.Child.Version
	return s.Child.Alive && v != nil && s.Trial.Content == v.Content && s.Trial.Kubelet == s.Child.Kubelet
}

// trialClockRuns: healthy time counts, while the API server is in reach only as long as the Lease is renewed (rule 7).
func (s *State) trialClockRuns() bool {
	if !s.Child.Healthy {
		return false
	}
	if s.Standalone || !s.Lease.Reachable {
		return true
	}
	return s.Lease.Renewed && s.Now-s.Lease.RenewedAt < LeaseTimeout
}

func (s *State) watchesLease() bool {
	return s.Child.Alive && !s.Standalone && (s.OnTrial() || s.controlNeedsLease())
}

func (s *State) hearLease(e LeaseSeen) {
	if e.Reachable && !s.Lease.Reachable {
		s.Lease.ReachableSince = s.Now
	}
	s.Lease.Reachable, s.Lease.Problem = e.Reachable, e.Problem
	if e.Renewed {
		s.Lease.Renewed, s.Lease.RenewedAt = true, s.Now
	}
	if s.OnTrial() {
		s.Trial.Renewed = s.Trial.Renewed || e.Renewed
		s.Trial.Baseline = s.Trial.Baseline || e.Baseline
	}
}

// leaseLostAt is when the missing renewal becomes a failure.
func (s *State) leaseLostAt() time.Duration {
	since := max(s.Child.Started, s.Lease.ReachableSince)
	if s.Lease.Renewed {
		since = max(since, s.Lease.RenewedAt)
	}
	return since + LeaseTimeout
}

// judge turns due times into verdicts.
func (s *State) judge() {
	if !s.Booted || s.Stopping || s.Frozen || !s.Child.Alive || s.isStopping() {
		return
	}
	if s.Child.Healthy && s.Now-s.Child.HealthySince >= soundAfter {
		s.Exit = "" // it says nothing of the present any more
	}
	if s.OnTrial() {
		s.judgeTrial()
	}
	s.judgeControl()
}

func (s *State) isStopping() bool {
	_, stopping := s.Doing.(Stop)
	return stopping
}

func (s *State) judgeTrial() {
	if s.Child.Healthy && s.Now-s.Child.HealthySince >= soundAfter {
		s.Trial.Sound = true
	}
	switch {
	case !s.Child.EverHealthy && s.Now >= s.Child.Started+s.StartTimeout:
		s.failTrial(StartTimeout, fmt.Sprintf("not healthy within %s of its start%s", s.StartTimeout, tail(s.Child.Words)))
	case s.Trial.Unhealthy >= s.StartTimeout:
		s.failTrial(StartTimeout, fmt.Sprintf("unhealthy for %s altogether%s", s.StartTimeout, tail(s.Child.Words)))
	case s.Lease.Reachable && s.Trial.Baseline && s.Now >= s.leaseLostAt():
		s.failTrial(LeaseLost, fmt.Sprintf("healthy, but its Lease was not renewed for %s although the API server is in reach: the kubelet has lost the node", LeaseTimeout))
	case s.Trial.Healthy >= s.TrialPeriod && (s.Standalone || s.Trial.Renewed) && s.Child.Healthy:
		s.promote()
	}
}

func (s *State) promote() {
	good := s.newestOf(s.Child.Version)
	s.LastKnownGood = good
	s.Promoted = Promotion{Content: good.Content, Kubelet: s.Child.Kubelet}
	s.Trial, s.Exits = Trial{}, nil
	s.tell(corev1.EventTypeNormal, "KubeletConfigPromoted", Describe(good)+" passed its trial and is the last known good configuration")
}

// failTrial ends the trial of what runs; the fallback that is started next is its control (rule 8).
func (s *State) failTrial(cause Cause, words string) {
	s.Trial.Longest = max(s.Trial.Longest, s.Now-s.Child.Started)
	s.failTrialOf(s.Child.Version, cause, words)
}

func (s *State) failTrialOf(v *Version, cause Cause, words string) {
	life, kubelet := s.Trial.Longest, s.Trial.Kubelet
	s.Trial = Trial{}
	if v == nil {
		return
	}
	s.blame(Suspect{Version: *v, Kubelet: kubelet, Cause: cause, Words: words, Life: life})
}

func (s *State) blame(x Suspect) {
	s.Suspects = newest(s.Suspects, x)
	fallback := s.fallback(&x.Version)
	s.tell(corev1.EventTypeWarning, "KubeletConfigRolledBack", fmt.Sprintf("%s %s; falling back to %s", Describe(&x.Version), x.Words, Describe(fallback)))
}

// spend counts a start of v before it is made (rule 10). A start already counted, of a child that was never started, is used up first.
func (s *State) spend(v *Version) {
	if !s.needsTrial(v) {
		s.Trial = Trial{}
		return
	}
	if s.Trial.Content != v.Content || s.Trial.Kubelet != s.OnDisk {
		s.Trial = Trial{Content: v.Content, Kubelet: s.OnDisk}
	}
	if !s.Trial.Open {
		s.Trial.Open, s.Trial.Sound = true, false
		s.Trial.Tries++
	}
}

// resume opens the account anew of what runs on trial. It was lost to a start that was counted and then not made, for the assignment
// came back to what runs.
func (s *State) resume() {
	if v := s.Child.Version; v != nil && !s.OnTrial() && !s.promoted(v, s.Child.Kubelet) {
		s.Trial = Trial{Content: v.Content, Kubelet: s.Child.Kubelet, Tries: 1, Open: true}
	}
}

// refund gives the open start back: its end says nothing about the configuration.
func (s *State) refund() {
	if s.Trial.Open {
		s.Trial.Open, s.Trial.Sound = false, false
		s.Trial.Tries--
	}
}

func tail(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}
