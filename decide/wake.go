package decide

import "time"

// wake is the next time at which something becomes due though nothing happens; negative when there is none. It names every due
// time that judge, act and report look at, each only while it lies ahead.
func (s *State) wake() time.Duration {
	due := time.Duration(-1)
	at := func(when bool, t time.Duration) {
		if when && t > s.Now {
			minimum(&due, t)
		}
	}
	at(s.Unsettled >= 0, s.Unsettled+applyingAfter)
	at(s.SaveError != "", s.SaveRetry)
	at(s.Environment != "", s.EnvironmentRetry)
	at(s.ApplyAt > 0, s.ApplyAt)
	at(!s.Child.Alive, s.NextStart)
	if !s.Child.Alive {
		return due
	}
	at(s.persistAt() > 0, s.persistAt())
	at(!s.Child.EverHealthy && (s.OnTrial() || s.inControl()), s.Child.Started+s.StartTimeout)
	at(s.Child.Healthy, s.Child.HealthySince+soundAfter)
	if s.OnTrial() {
		at(s.trialClockRuns(), s.Now+s.TrialPeriod-s.Trial.Healthy)
		at(!s.Child.Healthy && s.Child.EverHealthy, s.Now+s.StartTimeout-s.Trial.Unhealthy)
	}
	at(s.watchesLease() && s.Lease.Reachable, s.leaseLostAt())
	at(s.inControl() && s.Child.Healthy, s.Child.HealthySince+s.controlTime())
	return due
}
