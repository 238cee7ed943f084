package core

import "time"

// stallAfter is how late an event may come before the time since the last one counts for nothing.
const stallAfter = 10 * time.Second

// Clock is the time that the core knows: the moment of the last event, and when it wants to be asked again.
type Clock struct {
	Now    time.Duration // monotonic time of the last event, less Unseen
	Unseen time.Duration // time in which the supervisor did not look
	Due    time.Duration // the next deadline; negative = none
	Wall   time.Time     // the wall clock at Now, for people only
}

// advance moves the clock to an event, and returns how much time has passed that counts.
//
// The core's clock leaves out the time in which the supervisor did not look. A supervisor that was frozen or starved, which it knows by a
// deadline that it heard of far too late, has seen neither health nor its absence. It looks again before it judges.
func (clock *Clock) advance(at Moment) (passed time.Duration) {
	now := at.Now - clock.Unseen
	if clock.Due != never && now > clock.Due+stallAfter {
		clock.Unseen += now - clock.Now
		now = clock.Now
	}
	passed = max(0, now-clock.Now)
	clock.Now, clock.Wall, clock.Due = now, at.Wall, never
	return passed
}

// wake returns the next deadline on the clock of the events; negative when there is none.
func (clock *Clock) wake() time.Duration {
	if clock.Due == never {
		return clock.Due
	}
	return clock.Due + clock.Unseen
}
