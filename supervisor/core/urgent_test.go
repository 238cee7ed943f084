package core

import (
	"testing"
	"time"
)

// longPreflight has a change wait for a pre-flight that may take a minute, and is under way.
func longPreflight(t *testing.T, d *drive) *drive {
	t.Helper()
	d.mute["two"] = -1
	d.assign("two").pass(3 * time.Minute)
	for range 20 {
		if do, is := d.s.Doing.(Prove); is && do.Tries > 3 {
			return d
		}
		if d.s.Doing != nil {
			d.decide(d.answer(d.s.Doing))
			continue
		}
		d.now = d.step.Wake
		d.decide(Ticked{})
	}
	t.Fatalf("no pre-flight is under way: %T", d.s.Doing)
	return d
}

// There is always a kubelet: a question about a change is given up for whatever is more urgent, and its answer is heard by nobody.
func TestNothingUrgentWaitsForAPreflight(t *testing.T) {
	suspended := func(t *testing.T) *drive {
		return longPreflight(t, newDrive(t, holding).boot().good("good").pass(time.Minute))
	}
	t.Run("a crash", func(t *testing.T) {
		d := suspended(t)
		d.decide(ChildExited{Code: 1, Words: "x", Delay: time.Second})
		if !d.step.GaveUp {
			t.Error("the pre-flight goes on")
		}
		d.now += 2 * time.Second
		d.decide(Ticked{})
		if do, is := d.s.Doing.(Start); !is || nameOf(do.Version) != "good" {
			t.Errorf("2 s after the crash: %T", d.s.Doing)
		}
	})
	t.Run("another assignment", func(t *testing.T) {
		d := suspended(t)
		d.hear(assigned("fixed", "9", "fixed")).pass(time.Second).expect("assigned=fixed@9 active=fixed@9 lkg=good@1 True InTrial")
	})
	t.Run("a rollback", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute).assign("one").pass(time.Minute)
		d = longPreflight(t, d)
		d.decide(PortSeen{}) // gives the question up, and has it asked again
		for range 20 {
			if _, is := d.s.Doing.(Prove); is || d.s.Doing == nil {
				break
			}
			d.decide(d.answer(d.s.Doing))
		}
		d.decide(Unhealthy{Words: "x"})
		for end := d.now + d.s.StartTimeout + 5*time.Second; d.now < end && len(d.s.Suspects) == 0; {
			d.now += time.Second
			d.decide(Ticked{})
		}
		if len(d.s.Suspects) != 1 {
			t.Fatalf("suspects: %v", d.s.Suspects)
		}
		if _, is := d.s.Doing.(Prove); is {
			t.Error("the rollback waits for a pre-flight")
		}
	})
	t.Run("an answer that comes too late", func(t *testing.T) {
		d := suspended(t)
		late := d.answer(d.s.Doing)
		d.decide(ChildExited{Code: 1, Words: "x", Delay: time.Second})
		d.now += 2 * time.Second
		d.decide(Ticked{})
		before := d.s.Doing
		d.decide(late)
		if d.s.Doing != before {
			t.Errorf("under way was %T, and is %T", before, d.s.Doing)
		}
	})
}

// A change whose assignment was taken is made by its own look alone: by no crash of what runs, and not while the Node is gone.
func TestWhatWasTakenIsNotMadeByACrash(t *testing.T) {
	taken := func(t *testing.T) *drive {
		d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Minute }).boot()
		return d.assign("one", "cm", "1").pass(12*time.Minute).edit("two", "2")
	}
	crash := func(d *drive) {
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(3 * time.Second)
		if got := nameOf(d.s.Child.Version); got != "one" {
			d.t.Errorf("started was %s: %s", got, d.shown())
		}
	}
	for name, lives := range map[string]func(d *drive){
		"nobody answers at its turn": func(d *drive) {
			d.kills["two"], d.silent = 4, away
			d.pass(d.s.ApplyAt - d.s.Now + 5*time.Second)
			crash(d)
		},
		"the look is under way": func(d *drive) {
			for range 120 {
				if _, is := d.s.Doing.(Foresee); is {
					break
				}
				d.now += time.Second
				d.decide(Ticked{})
			}
			d.kills["two"] = 4
			crash(d)
		},
		"the supervisor is killed": func(d *drive) {
			d.kills["two"] = 4
			d.pass(time.Second).boot()
			if got := nameOf(d.s.Child.Version); got != "one" {
				d.t.Errorf("started was %s: %s", got, d.shown())
			}
			d.assign("two", "cm", "2").pass(time.Hour).expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt")
		},
		"the Node is gone": func(d *drive) {
			d.hear(NodeGone{})
			d.kills["two"] = 4
			d.pass(3 * time.Hour)
			if got := nameOf(d.disk.Assigned); got != "one" {
				d.t.Errorf("on the disk is assigned %s", got)
			}
			crash(d)
		},
	} {
		t.Run(name, func(t *testing.T) { lives(taken(t)) })
	}
	t.Run("it was refused, and a new kubelet takes it", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.refuse("two", false)
		d.assign("two").pass(time.Minute)
		delete(d.refused, "two")
		d.kills["two"] = 4
		d.disk.Proofs = nil // of the kubelet before
		d.boot()
		if got := nameOf(d.s.Child.Version); got != "good" {
			t.Errorf("started was %s: %s", got, d.shown())
		}
		d.assign("two").pass(time.Hour)
		if got := nameOf(d.s.Child.Version); got != "good" {
			t.Errorf("runs %s: %s", got, d.shown())
		}
	})
	t.Run("it was approved, and the Node is gone", func(t *testing.T) {
		d := heldOne(t)
		d.decide(Consented{Value: d.approval()})
		d.until("the assignment", func(do Action) bool { save, is := do.(Save); return is && save.assigned != nil })
		d.decide(NodeGone{})
		d.hear(d.answer(d.s.Doing)).pass(10 * time.Minute)
		if d.disk.Assigned != nil {
			t.Errorf("on the disk is assigned %s", nameOf(d.disk.Assigned))
		}
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(3 * time.Second)
		if d.s.Child.Version != nil {
			t.Errorf("started was %s: %s", nameOf(d.s.Child.Version), d.shown())
		}
	})
}
