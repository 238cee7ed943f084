package decide

import "time"

// stallAfter is how late an event may come before the time since the last one counts for nothing.
const stallAfter = 10 * time.Second

// reached tells whether a time has come. If it has not, the core is asked again then: a deadline is registered where it is tested, so
// that none can be forgotten.
func (s *State) reached(at time.Duration) bool {
	if s.Now >= at {
		return true
	}
	if s.Due < 0 || at < s.Due {
		s.Due = at
	}
	return false
}

// wake is the next deadline on the clock of the events; negative when there is none.
func (s *State) wake() time.Duration {
	if s.Due < 0 {
		return s.Due
	}
	return s.Due + s.Unseen
}

// advance moves the core's clock and credits the time that has passed to the trial, in the state that held while it passed.
//
// The core's clock leaves out the time in which nobody looked: a supervisor that was frozen or starved, which it knows by a deadline
// that it heard of far too late, has seen neither health nor its absence. It looks again before it judges.
func (s *State) advance(at Moment) {
	now := at.Now - s.Unseen
	if s.Due >= 0 && now > s.Due+stallAfter {
		s.Unseen += now - s.Now
		now = s.Now
	}
	passed := max(0, now-s.Now)
	s.Now, s.Wall, s.Due = now, at.Wall, -1
	if !s.OnTrial() {
		return
	}
	switch {
	case s.trialClockRuns():
		s.Trial.Healthy += Span(passed)
	case !s.Child.Healthy && s.Child.EverHealthy:
		s.Trial.Unhealthy += Span(passed)
	}
}
