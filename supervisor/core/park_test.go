package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

func parking(s *Settings) { s.Parking = true }

// expectParkable: from now on the kubelet may start without us (rule 3), so all that it needs is on the disk, and nothing but the lock of the
// one that runs keeps the two apart (rule 1).
func (d *drive) expectParkable(do Park) {
	d.t.Helper()
	c := d.s.Child
	switch {
	case !c.Alive || !c.Locked || c.Version == nil:
		d.t.Fatalf("a kubelet is to wait for a lock that nobody holds: %+v", c)
	case !Same(d.disk.Assigned, do.Version):
		d.t.Fatalf("a kubelet is to wait with %s, and on the disk is assigned %s", nameOf(do.Version), nameOf(d.disk.Assigned))
	case d.s.needsTrial(do.Version, d.s.OnDisk) && !(d.disk.Trial.Parked && d.disk.Trial.Open && d.disk.Trial.Content == do.Version.Content):
		d.t.Fatalf("the try is not on the disk: %+v", d.disk.Trial)
	case len(d.s.Suspects) > 0:
		d.t.Fatal("a rollback or a control is to wait")
	case d.s.Stopping || d.s.Frozen:
		d.t.Fatal("a kubelet is to wait although the node stops")
	case isHeld(&d.s, do.Version): // asked at the decision: what comes while it is carried out ends what waits
		d.t.Fatalf("what is held is to wait at the lock: %+v, %s", d.s.Outlook, d.shown())
	}
}

// expectAlone looks at what is about to be done with a kubelet that waits, or is to wait.
func (d *drive) expectAlone() {
	d.t.Helper()
	switch do := d.step.Do.(type) {
	case Park:
		d.expectParkable(do)
	case Stop:
		if d.s.Parked != nil && (do.Hung != "" || d.s.Stopping || d.s.Frozen) {
			d.t.Fatal("the running kubelet is ended beside one that waits, which would go on")
		}
	}
}

// underWay lets a change from one to two come as far as an action of the given kind.
func (d *drive) underWay(kind string) {
	d.t.Helper()
	d.decide(assigned("two", "1", "two"))
	d.until(kind, func(do Action) bool {
		switch do.(type) {
		case Park:
			return kind == "Park"
		case Stop:
			return kind == "Stop"
		case Start:
			return kind == "Start"
		}
		return false
	})
}

// Rule 1: from one dynamic configuration to another the next kubelet waits at the lock of the one that runs.
func TestWhatWaitsAtTheLock(t *testing.T) {
	const one, two = "assigned=one@1 active=one@1 lkg=- True InTrial", "assigned=two@1 active=two@1 lkg=- True InTrial"
	for name, row := range map[string]struct {
		settings func(*Settings)
		before   func(d *drive) // one runs already
		lives    func(d *drive)
		done     []string
		shown    string
		account  string
	}{
		"from dynamic to dynamic": {
			done: []string{"prove two", "park two", "stop", "let through two"}, shown: two, account: "two with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		"to what is held nothing waits": {settings: func(s *Settings) { s.Disruption = Hold }, before: func(d *drive) { d.kills["two"] = 1 },
			done: []string{"prove two", "foresee two"}, shown: "assigned=one@1 active=one@1 lkg=- False WouldDisrupt"},
		"the forecast is made before anything waits": {settings: func(s *Settings) { s.Disruption = Hold },
			done: []string{"prove two", "foresee two", "park two", "stop", "let through two"}, shown: two},
		"held after all, while it comes to the lock": {settings: func(s *Settings) { s.Disruption = Hold },
			before: func(d *drive) { d.kills["two"] = 1 },
			lives: func(d *drive) {
				d.assign("two")
				d.decide(Consented{Value: d.approval()})
				d.underWay("Park")
				d.decide(Consented{})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "foresee two", "foresee two", "park two", "unpark", "foresee two"}, shown: "assigned=one@1 active=one@1 lkg=- False WouldDisrupt"},
		"its way to the lock takes longer than a look lasts": {settings: func(s *Settings) { s.Disruption = Hold },
			lives: func(d *drive) { d.underWay("Park"); d.now += 2 * outlookLasts; d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "foresee two", "park two", "unpark", "foresee two", "stop", "start two"}, shown: two},
		"held after all, by a look on the way to the lock": {settings: func(s *Settings) { s.Disruption = Hold },
			lives: func(d *drive) {
				d.underWay("Park")
				d.kills["two"] = 1
				d.now += 2 * outlookLasts
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "foresee two", "park two", "unpark", "foresee two"}, shown: "assigned=one@1 active=one@1 lkg=- False WouldDisrupt"},
		"the running one crashes, and a removal is held": {settings: func(s *Settings) { s.Disruption = Hold },
			before: func(d *drive) { d.kills["local"] = 1 },
			lives: func(d *drive) {
				d.underWay("Park")
				d.decide(Cleared{NodeUID: "node-uid"})
				d.decide(ChildExited{Code: 1, Words: "it crashed", Delay: time.Minute})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "foresee two", "park two", "let through two", "foresee local"}, shown: "assigned=two@1 active=two@1 lkg=- False WouldDisrupt"},
		"where it is not allowed": {settings: func(s *Settings) { s.Parking = false }, done: []string{"prove two", "stop", "start two"}, shown: two},
		"to local": {lives: func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) }, done: []string{"stop", "start local"},
			shown: "assigned=- active=- lkg=- True Local"},
		"after a kubelet without the lock": {before: func(d *drive) { d.s.Child.Locked = false }, done: []string{"prove two", "stop", "start two"}, shown: two},
		"after the kubelet's program changed": {before: func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) },
			done: []string{"prove two", "stop", "start two"}, shown: two},
		"with a kubelet that must not be asked": {
			before: func(d *drive) {
				d.s.Proofs = newest(d.s.Proofs, Proof{Content: AnyContent, Kubelet: testKubelet, Outcome: kubeletconfig.Unknown})
			},
			done: []string{"stop", "start two"}, shown: two},
		"with a verdict that is not known": {before: func(d *drive) { d.refused["two"] = Proof{Outcome: kubeletconfig.Unknown} },
			done: []string{"prove two", "stop", "start two"}, shown: two},
		"it cannot wait: the plain way": {before: func(d *drive) { d.parks["two"] = ParkEnded{} },
			done: []string{"prove two", "park two", "stop", "start two"}, shown: two, account: "two with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		"it ends before the lock: refused, and no try is spent": {
			before: func(d *drive) {
				d.parks["two"] = ParkEnded{Proved: Proved{Proof: Proof{Content: "two", Kubelet: testKubelet, Outcome: kubeletconfig.Refused, Words: "the kubelet says no"}}}
			},
			done: []string{"prove two", "park two", "stop", "start local"}, shown: "assigned=two@1 active=- lkg=- False Refused validate config"},
		"it ends before the lock, and is accepted when asked again": {
			before: func(d *drive) {
				d.parks["two"] = ParkEnded{Proved: Proved{Proof: Proof{Content: "two", Kubelet: testKubelet, Outcome: kubeletconfig.Accepted}}}
			},
			done: []string{"prove two", "park two", "stop", "start two"}, shown: two},
		"it was killed while it waited": {
			lives: func(d *drive) {
				d.starts = func(do Start) (Event, bool) { return Started{Gone: true}, do.Waits }
				d.assign("two").pass(time.Minute)
			},
			done: []string{"prove two", "park two", "stop", "let through two", "start two"}, shown: two, account: "two with binary-1: try 1, open since boot-1, was healthy, the Lease was renewed before, renewed it"},
		"a newer assignment while it comes to the lock": {
			lives: func(d *drive) {
				d.underWay("Park")
				d.decide(assigned("three", "1", "three"))
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "park two", "unpark", "prove three", "park three", "stop", "let through three"}, shown: "assigned=three@1 active=three@1 lkg=- True InTrial"},
		"back to what runs while it comes to the lock": {
			lives: func(d *drive) { d.underWay("Park"); d.decide(assigned("one", "1", "one")); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "unpark"}, shown: one},
		"a removal while it comes to the lock": {
			lives: func(d *drive) {
				d.underWay("Park")
				d.decide(Cleared{NodeUID: "node-uid"})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "park two", "unpark", "stop", "start local"}, shown: "assigned=- active=- lkg=- True Local"},
		"an edited drop-in while it comes to the lock": {
			lives: func(d *drive) {
				d.underWay("Park")
				edited := testKubelet
				edited.Local = "local-2"
				d.decide(LocalChanged{Kubelet: edited, Local: "local"})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "park two", "unpark", "prove two", "stop", "start two"}, shown: two},
		"an edited drop-in while the running one ends": {
			lives: func(d *drive) {
				d.underWay("Stop")
				edited := testKubelet
				edited.Local = "local-2"
				d.decide(LocalChanged{Kubelet: edited, Local: "local"})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "park two", "stop", "unpark", "prove two", "start two"}, shown: two},
		"an edited drop-in that is seen when it is let through": {
			lives: func(d *drive) {
				d.underWay("Start")
				edited := testKubelet
				edited.Local = "local-2"
				d.decide(LocalChanged{Kubelet: edited, Local: "local"})
				d.hear(Started{Err: errDisk})
			},
			done: []string{"prove two", "park two", "stop", "unpark", "prove two", "start two"}, shown: two},
		"the running one crashes while it comes to the lock: that is not held against it": {
			lives: func(d *drive) {
				d.underWay("Park")
				d.decide(ChildExited{Code: 1, Words: "it crashed", Delay: time.Minute})
				d.hear(d.answer(d.s.Doing))
			},
			done: []string{"prove two", "park two", "let through two"}, shown: two, account: "two with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		"the running one hangs while it comes to the lock": {
			lives: func(d *drive) { d.underWay("Park"); d.decide(Hung{Words: "no ping"}); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "unpark", "dump", "start two"}, shown: two},
		"the host shuts down while it comes to the lock": {
			lives: func(d *drive) { d.underWay("Park"); d.decide(HostStopping{}); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "unpark"}, shown: "assigned=two@1 active=one@1 lkg=- Unknown Stopped"},
		"the host shuts down while the running one ends": {
			lives: func(d *drive) { d.underWay("Stop"); d.decide(HostStopping{}); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "stop", "unpark"}, shown: "assigned=two@1 active=one@1 lkg=- Unknown Stopped"},
		"a stop while it comes to the lock": {
			lives: func(d *drive) { d.underWay("Park"); d.decide(StopAsked{}); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "unpark", "stop", "exit"}, shown: "assigned=two@1 active=one@1 lkg=- Unknown Stopped"},
		"a stop while the running one ends": {
			lives: func(d *drive) { d.underWay("Stop"); d.decide(StopAsked{}); d.hear(d.answer(d.s.Doing)) },
			done:  []string{"prove two", "park two", "stop", "unpark", "exit"}, shown: "assigned=two@1 active=one@1 lkg=- Unknown Stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, parking, func(s *Settings) {
				if row.settings != nil {
					row.settings(s)
				}
			}).boot().assign("one").pass(time.Minute)
			if row.before != nil {
				row.before(d)
			}
			d.fresh()
			if row.lives == nil {
				row.lives = func(d *drive) { d.assign("two") }
			}
			row.lives(d)
			if !d.s.Stopping {
				d.pass(5 * time.Second)
			}
			d.expectDone(row.done...).expect(row.shown)
			if row.account != "" {
				d.expectAccount(row.account)
			}
			if d.s.Parked != nil || d.s.Trial.Parked {
				t.Errorf("something waits in the end: %+v, %+v", d.s.Parked, d.s.Trial)
			}
		})
	}
}

// What a restart costs is only counted where somebody looked before it, and what waited makes no difference.
func TestAStopForWhatWaitsWasLookedAt(t *testing.T) {
	d := newDrive(t, parking, holding).boot().assign("one").pass(time.Minute).fresh()
	d.assign("two").pass(time.Minute).expectDone("prove two", "foresee two", "park two", "stop", "let through two")
	if !d.actions[reflect.TypeFor[Stop]()].(Stop).Looked {
		t.Error("the change was not looked at")
	}
}

// What comes between the try and the park leaves nothing on the disk that would excuse the next start, which is plain.
func TestATryThatWasToWait(t *testing.T) {
	for name, row := range map[string]struct {
		comes func(d *drive)
		done  []string
	}{
		"an edited drop-in": {func(d *drive) {
			edited := testKubelet
			edited.Local = "local-2"
			d.decide(LocalChanged{Kubelet: edited, Local: "local"})
		}, []string{"prove two", "prove two", "stop", "start two"}},
		// Nothing new is applied there, waiting or not: its tries could not be counted (rules 3 and 10).
		"the disk cannot be written": {func(d *drive) { d.saveErr = errDisk }, []string{"prove two", "stop", "start local"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, parking).boot().assign("one").pass(time.Minute).fresh()
			d.decide(assigned("two", "1", "two"))
			d.until("the try", func(do Action) bool { save, is := do.(Save); return is && save.Durable.Trial.Parked })
			row.comes(d)
			d.hear(d.answer(d.s.Doing)).expectDone(row.done...)
			d.saveErr = nil
			d.pass(30 * time.Second)
			if d.disk.Trial.Parked || !d.disk.Trial.Open {
				t.Errorf("on the disk is %+v", d.disk.Trial)
			}
			d.hear(StopAsked{})
			if d.disk.Trial.Parked || d.disk.Trial.Open {
				t.Errorf("after a stop there is %+v", d.disk.Trial)
			}
		})
	}
}

// Where what runs goes on, no try of a kubelet that was to wait is left open: nothing was tried.
func TestATryThatWasToWaitAndIsNotWritten(t *testing.T) {
	d := newDrive(t, parking).boot().good("one").fresh()
	d.decide(assigned("two", "1", "two"))
	d.until("the try", func(do Action) bool { save, is := do.(Save); return is && save.Durable.Trial.Parked })
	d.saveErr = errDisk
	d.hear(d.answer(d.s.Doing)).expectDone("prove two")
	if d.s.Trial.Parked || d.s.Trial.Open || d.s.Trial.Tries != 0 {
		t.Errorf("a try is open of what was never started: %+v", d.s.Trial)
	}
	d.saveErr = nil
	d.pass(30*time.Second).expectDone("prove two", "park two", "stop", "let through two")
	d.expectAccount("two with binary-1: try 1, open since boot-1, was healthy, the Lease was renewed before, renewed it")
}

// A rollback is the plain way, and what is rolled back does not come again by the lock.
func TestARollbackDoesNotWait(t *testing.T) {
	d := newDrive(t, parking).boot().good("good").fresh()
	d.deadly["bad"] = 10 * time.Millisecond
	d.assign("bad").pass(time.Minute)
	d.expectDone("prove bad", "park bad", "stop", "let through bad", "start bad", "start bad", "start good")
	d.expect("assigned=bad@1 active=good@1 lkg=good@1 False Rejected run config")
}

// Rule 10: what a supervisor that died leaves of a try whose kubelet waited.
func TestATryThatWaited(t *testing.T) {
	for name, row := range map[string]struct {
		found   bool
		boot    string
		account string
	}{
		"it was found waiting: refunded":                              {true, "boot-1", "two with binary-1: try 1, open since boot-1, was healthy, the Lease was renewed before, renewed it"},
		"nothing was found: it may have been let through, and counts": {false, "boot-1", "two with binary-1: try 2, open since boot-1, was healthy, the Lease was renewed before, renewed it"},
		"the host went down: it counts nothing":                       {false, "boot-2", "two with binary-1: try 1, open since boot-2, was healthy, the Lease was renewed before, renewed it"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, parking).boot().assign("one").pass(time.Minute).fresh()
			d.underWay("Park")
			d.waited, d.bootID = row.found, row.boot
			d.boot().pass(time.Minute).expectAccount(row.account)
		})
	}
	d := newDrive(t, parking).boot().assign("one").pass(time.Minute)
	d.assign("two").pass(5 * time.Second)
	if d.disk.Trial.Parked || !d.disk.Trial.Open || d.disk.Trial.Tries != 1 {
		t.Errorf("on the disk it is not spent: %+v", d.disk.Trial)
	}
}

// A local kubelet has no lock, nor has one whose flags were never tried.
func TestWhatHoldsTheLock(t *testing.T) {
	d := newDrive(t, parking)
	locks := map[string]bool{}
	d.begins = func(do Start) { locks[nameOf(do.Version)] = do.Lock }
	d.boot().assign("one").pass(time.Minute)
	d.refused["two"] = Proof{Outcome: kubeletconfig.Unknown}
	d.assign("two").pass(time.Minute)
	if locks["local"] || !locks["one"] || locks["two"] {
		t.Errorf("locks: %v", locks)
	}
}

// A host that keeps kubelets from the lock file says nothing about what they were started with.
func TestADeniedLockIsNoFailure(t *testing.T) {
	d := newDrive(t, parking, func(s *Settings) { s.TrialFailures = 1 })
	d.boot().assign("one").fresh()
	d.hear(ChildExited{Code: 1, Words: "unable to acquire file lock", LockDenied: true, Delay: time.Second}).pass(time.Minute)
	d.expectDone("start one", "prove local").expect("assigned=one@1 active=one@1 lkg=- True InTrial").expectAccount("one with binary-1: try 1, open since boot-1, was healthy, the Lease was renewed before, renewed it")
}
