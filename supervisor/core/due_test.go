package core

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// The core is asked again when it says so, and that is soon enough: whoever asks sooner gets no action, no event and no other report.
func TestNothingHappensBeforeItIsDue(t *testing.T) {
	for seed := range lives(t, 30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 2))
			d := newDrive(t, func(s *Settings) {
				s.EditSpread, s.Disruption = time.Duration(random.IntN(2))*time.Minute, []string{"", Hold, Allow}[random.IntN(3)]
				s.Parking, s.FollowLocal = random.IntN(2) == 0, random.IntN(2) == 0
			}).boot()
			for range 60 {
				d.live(random)
				for range 8 {
					d.askSooner(random)
					d.pass(time.Duration(random.IntN(5_000)) * time.Millisecond)
				}
			}
		})
	}
}

// askSooner asks the core before it wants to be asked.
func (d *drive) askSooner(random *rand.Rand) {
	d.t.Helper()
	wake := d.step.Wake
	if wake < 0 {
		wake = d.now + time.Hour
	}
	early := d.now + time.Duration(random.Int64N(int64(max(1, wake-d.now))))
	s, step := Decide(d.s, Moment{Now: early, Wall: d.s.Wall.Add(early - d.now)}, Ticked{})
	if want, _, _ := heldChange(&d.s); d.s.isApproved(d.s.Settings, d.s.changeTo(want)) {
		return // what is approved and cannot be recorded is looked at again whenever the core is asked
	}
	if save, is := step.Do.(Save); is && reflect.DeepEqual(significant(save.Durable), significant(d.s.Disk)) {
		return // trial time alone may be written sooner
	}
	if step.Do != nil || len(step.Events) > 0 || step.LookAtNode {
		d.t.Fatalf("%s after the last decision, and %s before it is due: %T, %v, look %t; %s", early-d.now, wake-early, step.Do, step.Events, step.LookAtNode, d.shown())
	}
	was, wasDue := Report(d.s)
	if is, due := Report(s); is.Message != was.Message || due != wasDue {
		d.t.Fatalf("%s after the last decision, and %s before it is due, it shows %s (%t), not %s (%t)", early-d.now, wake-early, is.Message, due, was.Message, wasDue)
	}
}
