package core

import (
	"fmt"
	"testing"
	"time"
)

// freeze lets time pass in which the supervisor does nothing: the deadlines of that time are heard of at its end.
func (d *drive) freeze(span time.Duration) *drive {
	d.now += span
	return d
}

// A supervisor that was frozen or starved has seen nothing: it neither credits the time nor judges by it, but looks again.
func TestTimeInWhichNobodyLooked(t *testing.T) {
	const frozen = 8 * time.Hour
	t.Run("is no healthy running time", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(25 * time.Second).freeze(frozen)
		d.hear(LeaseSeen{Reachable: true, Renewed: true}).expect(inTrial)
		if d.s.Trial.Healthy > Span(time.Minute) {
			t.Errorf("%s of health", d.s.Trial.Healthy)
		}
		d.pass(9 * time.Minute).expect(inTrial).pass(time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("is none while an action is under way", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(25 * time.Second)
		s, now := d.s, d.now
		for s.Doing == nil {
			if now += time.Second; now > d.now+time.Hour {
				t.Fatal("the time on trial is not written")
			}
			s, _ = Decide(s, Moment{Now: now, Wall: s.Wall}, Ticked{})
		}
		before := s.Trial.Healthy
		if s, _ = Decide(s, Moment{Now: now + 35*time.Second, Wall: s.Wall}, Ticked{}); s.Trial.Healthy-before > Span(stallAfter) {
			t.Errorf("%s of health are credited, beside %T", s.Trial.Healthy-before, s.Doing)
		}
	})
	t.Run("is none of a trial, whenever it begins", func(t *testing.T) {
		for at := 20 * time.Second; at < 2*time.Minute; at += 700 * time.Millisecond {
			d := newDrive(t).boot().assign("good").pass(at)
			for frozen := 2 * stallAfter; frozen < time.Minute; frozen += time.Second {
				s, _ := Decide(d.s, Moment{Now: d.now + frozen, Wall: d.s.Wall}, Ticked{})
				if credited := s.Trial.Healthy - d.s.Trial.Healthy; credited > Span(2*stallAfter) {
					t.Fatalf("of %s from %s on, %s are credited", frozen, at, credited)
				}
			}
		}
	})
	t.Run("is none while the host shuts down and no API server answers", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(25 * time.Second)
		d.online = false
		d.pass(time.Minute).hear(HostStopping{}).pass(90 * time.Second)
		s, _ := Decide(d.s, Moment{Now: d.now + frozen, Wall: d.s.Wall}, HostStopping{CalledOff: true})
		if credited := s.Trial.Healthy - d.s.Trial.Healthy; credited > Span(2*stallAfter) {
			t.Errorf("%s are credited", credited)
		}
	})
	t.Run("proves no control", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute)
		d.deadly["bad"] = time.Minute
		d.assign("bad")
		for range 600 {
			if d.pass(time.Second); len(d.s.Suspects) > 0 {
				break
			}
		}
		d.pass(33 * time.Second)
		left := d.s.Child.HealthySince + d.s.controlTime(d.s.Settings) - d.s.Now
		s, _ := Decide(d.s, Moment{Now: d.now + left + 5*time.Second, Wall: d.s.Wall}, Ticked{})
		if !inControl(&d.s) || left < 2*stallAfter || len(s.Rejected) > 0 {
			t.Errorf("in control %t, %s before its end: %d are rejected", inControl(&d.s), left, len(s.Rejected))
		}
	})
	t.Run("is no time to be healthy in", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.Standalone = true }).boot().pass(time.Minute)
		d.hangs["slow"] = true
		d.assign("slow").pass(3 * time.Second)
		s, _ := Decide(d.s, Moment{Now: d.s.Child.Started + d.s.StartTimeout + time.Second, Wall: d.s.Wall}, Ticked{})
		if !d.s.OnTrial() || len(s.Suspects) > 0 {
			t.Errorf("on trial %t: %d are suspected", d.s.OnTrial(), len(s.Suspects))
		}
	})
	t.Run("is none without an API server either", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(25 * time.Second)
		d.online = false
		d.pass(time.Minute).freeze(frozen).pass(time.Second).expect(inTrial)
	})
	t.Run("loses no Lease", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).assign("good").pass(25 * time.Second).fresh().freeze(90 * time.Second)
		d.hear(Ticked{}).hear(LeaseSeen{Reachable: true}).pass(12 * time.Minute)
		d.expectDone().expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("is no time to start", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute)
		d.hangs["slow"] = true
		d.assign("slow").pass(time.Minute).fresh().freeze(frozen).hear(Ticked{}).pass(30 * time.Second).expectDone()
		d.hangs["slow"] = false
		d.pass(5 * time.Second).expect("assigned=slow@1 active=slow@1 lkg=- True InTrial")
	})
	t.Run("is no unhealthy time", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Minute)
		d.hangs["good"] = true
		d.hear(Unhealthy{Words: "healthz does not answer"}).pass(time.Minute).fresh().freeze(frozen).hear(Ticked{}).pass(30 * time.Second)
		d.expectDone()
	})
	t.Run("proves no control", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute)
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(8 * time.Second).expect("assigned=bad@1 active=- lkg=- False RolledBack run config")
		d.freeze(frozen).hear(Ticked{}).expect("assigned=bad@1 active=- lkg=- False RolledBack run config")
		d.pass(15 * time.Second).expect("assigned=bad@1 active=- lkg=- False Rejected run config")
	})
	t.Run("moves no deadline out of reach", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		d.assign("one", "cm", "1").pass(5*time.Second).edit("two", "2").freeze(frozen).pass(time.Hour)
		d.expect("assigned=two@2 active=two@2 lkg=two@2 True Active")
	})
}

// The kubelet renews its Lease after a quarter of its duration: with 300 s that is every 75 s.
func TestALeaseThatLastsLong(t *testing.T) {
	d := newDrive(t).boot().pass(time.Minute).assign("good").pass(20 * time.Second).fresh()
	d.ownLooks = true
	look := func(times int, seen LeaseSeen) {
		seen.Reachable, seen.Duration = true, 300*time.Second
		for range times {
			d.pass(10 * time.Second).hear(seen)
		}
	}
	look(1, LeaseSeen{Renewed: true})
	for range 9 {
		look(7, LeaseSeen{})
		look(1, LeaseSeen{Renewed: true})
	}
	d.expectDone().expect("assigned=good@1 active=good@1 lkg=good@1 True Active")

	d.assign("bogus").fresh()
	look(1, LeaseSeen{Renewed: true})
	look(15, LeaseSeen{})
	d.expectDone()
	look(1, LeaseSeen{})
	d.expectDone("stop", "start good").pass(time.Second).expectMessage("not renewed for 2m40s")
}

func TestLeaseLimits(t *testing.T) {
	for duration, want := range map[time.Duration]time.Duration{
		0: time.Minute, 40 * time.Second: time.Minute, 100 * time.Second: time.Minute, 101 * time.Second: 60*time.Second + time.Second/2, 300 * time.Second: 160 * time.Second,
	} {
		s := State{Process: Process{Lease: Lease{Duration: duration}}}
		if got := s.leaseLimit(); got != want {
			t.Errorf("a Lease of %s may go %s without a renewal, want %s", duration, got, want)
		}
	}
}

// A configuration that takes the host down some time after each start must not become last known good, however healthy it is till then.
func TestAHostThatGoesDownInEachTrial(t *testing.T) {
	d := newDrive(t).boot().pass(time.Minute).good("good").assign("deadly")
	for boot := range 3 {
		d.pass(50 * time.Second).expect("assigned=deadly@1 active=deadly@1 lkg=good@1 True InTrial")
		d.bootID = fmt.Sprint("another ", boot)
		d.boot()
	}
	d.pass(5 * time.Second).expect("assigned=deadly@1 active=good@1 lkg=good@1 False RolledBack run config").expectMessage("the host went down during its trial")
	d.pass(2 * time.Hour).expect("assigned=deadly@1 active=good@1 lkg=good@1 False Rejected run config")

	t.Run("a boot that was asked for counts nothing", func(t *testing.T) {
		d := newDrive(t).boot().assign("good")
		for boot := range 10 {
			d.pass(50 * time.Second).hear(HostStopping{}).hear(StopAsked{})
			d.bootID = fmt.Sprint("another ", boot)
			d.boot()
		}
		d.pass(5 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("a boot that is not known is taken for the same", func(t *testing.T) {
		for _, boots := range [][2]string{{"", "boot"}, {"boot", ""}, {"", ""}} {
			d := newDrive(t)
			d.bootID = boots[0]
			d.boot().assign("good").pass(time.Minute)
			d.bootID = boots[1]
			d.boot()
			if d.s.Trial.Tries != 1 {
				t.Errorf("from boot %q to %q: %d tries", boots[0], boots[1], d.s.Trial.Tries)
			}
		}
	})
}

// What was failed by its Lease is judged by the fallback's Lease, and by nothing else.
func TestAControlOfALostLease(t *testing.T) {
	const lost = "assigned=bogus@1 active=- lkg=- False RolledBack run config"
	suspect := func(t *testing.T) *drive {
		d := newDrive(t).boot().pass(time.Minute)
		d.lease["bogus"] = false
		return d.assign("bogus").pass(70 * time.Second).expect(lost)
	}
	t.Run("without the API server it concludes nothing", func(t *testing.T) {
		d := suspect(t)
		d.online = false
		d.pass(time.Hour).expect(lost)
		d.online = true
		d.pass(5 * time.Minute).expect("assigned=bogus@1 active=- lkg=- False Rejected run config")
	})
	t.Run("an API server that refuses all writes is not asked again and again", func(t *testing.T) {
		d := suspect(t).fresh()
		d.lease[""] = false
		d.pass(6 * time.Hour).expectDone()
		d.expect("assigned=bogus@1 active=- lkg=- Unknown EnvironmentFailing")
		delete(d.lease, "")
		delete(d.lease, "bogus")
		d.pass(time.Minute).expectDone("stop", "start bogus").expect("assigned=bogus@1 active=bogus@1 lkg=- True InTrial")
	})
	t.Run("one that refuses them now and then is asked with longer and longer pauses", func(t *testing.T) {
		d := suspect(t).fresh()
		for range 6 * 60 { // whatever runs renews its Lease once, and no more
			d.lease[""] = d.s.Child.Version == nil && d.s.Lease.Lost
			d.pass(time.Minute)
		}
		starts := 0
		for _, did := range d.did {
			if did == "start bogus" {
				starts++
			}
		}
		if starts < 4 || starts > 20 {
			t.Errorf("started %d times in six hours", starts)
		}
	})
}

// That the Lease was renewed before is kept, however long the node was down in between.
func TestTheBaselineOutlivesADowntime(t *testing.T) {
	d := newDrive(t).boot().pass(time.Minute).good("good").hear(StopAsked{})
	d.now += 24 * time.Hour
	d.lease["good"], d.lease["new"] = true, false
	d.boot().assign("new").pass(75 * time.Second)
	d.expect("assigned=new@1 active=good@1 lkg=good@1 False RolledBack run config")
}

// A kubelet that renewed no Lease before is not missed.
func TestNoBaselineNoBlame(t *testing.T) {
	d := newDrive(t)
	d.lease[""], d.lease["new"] = false, false
	d.boot().pass(5 * time.Minute).assign("new").pass(20 * time.Minute).expect("assigned=new@1 active=new@1 lkg=- True InTrial")
	t.Run("though one before it did", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute)
		d.lease[""], d.lease["new"] = false, false
		d.hear(ChildExited{Code: 1}).pass(5 * time.Minute).assign("new").pass(20 * time.Minute).expect("assigned=new@1 active=new@1 lkg=- True InTrial")
	})
}

// The Lease is looked at until it is known whether the kubelet renews it, and outside of trials no longer.
func TestLooksAtTheLease(t *testing.T) {
	d := newDrive(t).boot()
	for _, want := range []bool{true, false} {
		if d.step.WatchLease != want {
			t.Errorf("at %s it looks: %t", d.now, d.step.WatchLease)
		}
		d.pass(time.Minute)
	}
}

// Somebody's SIGTERM counts nothing. A kubelet that ends by itself with 0, again and again, is none that runs.
func TestCleanExits(t *testing.T) {
	t.Run("the third within a minute is a failure", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).assign("bad").pass(time.Minute)
		for range 3 {
			for range 3 {
				d.hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(10 * time.Second)
			}
		}
		d.expect("assigned=bad@1 active=- lkg=- False RolledBack run config").expectMessage("exit code 0, 3 times within 1m0s")
	})
	t.Run("it waits a moment", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.hear(ChildExited{}).hear(ChildExited{}).expectDone("start local", "start local")
		d.hear(ChildExited{}).expectDone("start local", "start local").pass(time.Second).expectDone("start local", "start local", "start local")
	})
	t.Run("two a minute count nothing", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Second)
		for range 60 {
			d.hear(ChildExited{}).pass(31 * time.Second)
		}
		d.expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
}

// A kubelet that does not live long is looked at once: what it renewed is seen by the next look, at the kubelet after it.
func TestTheBaselineOfAShortLife(t *testing.T) {
	d := newDrive(t)
	d.ownLooks = true
	d.boot().hear(LeaseSeen{Reachable: true}).pass(5 * time.Second).assign("bogus").fresh()
	d.hear(LeaseSeen{Reachable: true, RenewedBefore: true})
	for range 6 {
		d.pass(10 * time.Second).hear(LeaseSeen{Reachable: true})
	}
	d.expectDone("prove local", "stop", "start local")
	t.Run("it counts nothing for the trial itself", func(t *testing.T) {
		d := newDrive(t)
		d.ownLooks = true
		d.boot().assign("good").hear(LeaseSeen{Reachable: true, RenewedBefore: true})
		if s := d.s; s.Trial.Renewed || s.Lease.Renewed || !s.Trial.Baseline || !s.Renews {
			t.Errorf("the trial %+v, the Lease %+v", s.Trial, s.Lease)
		}
	})
}

// Outside of trials the Lease is not looked at for ever, be it forbidden or out of reach.
func TestLooksThatSayNothingEnd(t *testing.T) {
	for name, seen := range map[string]LeaseSeen{"forbidden": {Problem: "forbidden"}, "out of reach": {}} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			d.ownLooks = true
			d.boot()
			for range 11 {
				if !d.step.WatchLease {
					t.Fatal("it does not look any more")
				}
				d.pass(10 * time.Second).hear(seen)
			}
			if d.pass(10 * time.Second).hear(seen); d.step.WatchLease {
				t.Error("it looks for ever")
			}
			if d.assign("good").pass(time.Second); !d.step.WatchLease {
				t.Error("it does not look in a trial")
			}
		})
	}
}
