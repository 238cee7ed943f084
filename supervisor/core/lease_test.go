package core

import (
	"testing"
	"time"
)

// When the Lease is looked at, and what is remembered of it for the next trial (rule 7).
func TestLease(t *testing.T) {
	unrenewed, renewed := LeaseSeen{Reachable: true}, LeaseSeen{Reachable: true, Renewed: true}
	for _, row := range []struct {
		name  string
		when  func(d *drive)
		looks bool
		knows bool // that kubelets here renew it
	}{
		{"a kubelet just started", func(d *drive) {}, true, false},
		{"it renews", func(d *drive) { d.hear(renewed) }, false, true},
		{"it renews none", func(d *drive) { d.hear(unrenewed).pass(time.Minute).hear(unrenewed) }, false, false},
		{"none runs", func(d *drive) { d.hear(ChildExited{Code: 1, Delay: time.Minute}) }, false, false},
		{"the kubelet has none", func(d *drive) { d.s.Standalone = true; d.hear(Ticked{}) }, false, false},
		{"on trial", func(d *drive) { d.hear(renewed).assign("good").hear(renewed).pass(time.Minute) }, true, true},
		{"after the trial", func(d *drive) {
			d.hear(renewed).assign("good").pass(5 * time.Second)
			d.ownLooks = false
			d.pass(11 * time.Minute).expect(goodActive)
		}, false, true},
		{"one that is not healthy proves nothing", func(d *drive) {
			d.hear(renewed).hear(ChildExited{Code: 1, Words: "boom"})
			d.hear(unrenewed).pass(time.Minute).hear(Unhealthy{Words: "x"}).hear(unrenewed)
		}, false, true},
		{"one on trial proves nothing about those before", func(d *drive) {
			d.hear(renewed).assign("bad").pass(time.Second).hear(unrenewed).pass(time.Minute).hear(unrenewed)
		}, true, true},
		{"a reset says nothing of it", func(d *drive) { d.hear(renewed).assign("good").hear(Cleared{NodeUID: "node-uid"}) }, true, true},
		{"one that is being ended is not looked at", func(d *drive) {
			d.hear(renewed).assign("bad").pass(time.Second).hear(unrenewed).pass(time.Minute)
			d.decide(unrenewed)
			d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t)
			d.ownLooks = true
			d.boot()
			row.when(d)
			if d.step.WatchLease != row.looks || d.s.Renews != row.knows {
				t.Errorf("looks: %t, knows: %t; want %t and %t", d.step.WatchLease, d.s.Renews, row.looks, row.knows)
			}
			if d.s.Trial.Content == "" {
				d.expectAccount("none")
			}
		})
	}
}

// From when a missing renewal counts.
func TestSinceWhenALeaseIsMissed(t *testing.T) {
	const lost = "assigned=bad@1 active=- lkg=- False RolledBack run config"
	for _, row := range []struct {
		name string
		when func(d *drive)
	}{
		{"since the API server is in reach again", func(d *drive) {
			d.online = false
			d.assign("bad").pass(10 * time.Minute).online = true
		}},
		{"since the kubelet's start", func(d *drive) { d.assign("bad") }},
		{"since its last renewal", func(d *drive) {
			d.lease["bad"] = true
			d.assign("bad").pass(5 * time.Minute)
			d.lease["bad"] = false
		}},
		{"of one that renewed it itself, though none did before", func(d *drive) {
			d.s.Renews = false
			d.lease["bad"] = true
			d.assign("bad").pass(5 * time.Minute)
			d.lease["bad"] = false
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute)
			d.lease["bad"] = false
			row.when(d)
			d.fresh().pass(58 * time.Second).expectEvents().pass(15 * time.Second).expect(lost)
		})
	}
}

// A look without an answer proves no loss, though it comes when a renewal is overdue.
func TestALookWithoutAnAnswer(t *testing.T) {
	d := newDrive(t).boot().pass(time.Minute)
	d.ownLooks = true
	d.assign("good").hear(LeaseSeen{Reachable: true}).pass(50 * time.Second).hear(LeaseSeen{Reachable: true}).pass(10 * time.Second).fresh()
	d.hear(LeaseSeen{}).expectEvents().hear(LeaseSeen{Reachable: true}).expectEvents()
}

// How long a Lease lasts is known of looks that saw it; a look that could not does not change that.
func TestALookThatSeesNoDuration(t *testing.T) {
	d := newDrive(t).boot().hear(LeaseSeen{Reachable: true, Duration: 300 * time.Second}).hear(LeaseSeen{})
	if got := d.s.Lease.Duration; got != 300*time.Second {
		t.Errorf("the Lease lasts %s", got)
	}
}

// Nobody looks for longer than two limits after a start, to the moment.
func TestHowLongALeaseIsLookedFor(t *testing.T) {
	s := State{Process: Process{Child: Child{Alive: true, Started: time.Minute}}}
	until := s.Child.Started + 2*s.leaseLimit()
	for at, looks := range map[time.Duration]bool{until - 1: true, until: false} {
		if s.Now = at; watchesLease(&s) != looks {
			t.Errorf("%s after the start: it looks: %t", at-s.Child.Started, !looks)
		}
	}
	s.Now, s.Child.Alive = until-1, false
	if watchesLease(&s) {
		t.Error("it looks though no kubelet runs")
	}
}

// A trial in which the Lease was renewed has seen that, whatever a later look says.
func TestARenewalInATrialIsRemembered(t *testing.T) {
	v := &Version{Content: "a"}
	s := State{Process: Process{Child: Child{Alive: true, Version: v}}}
	s.Trial.Content = v.Content
	learnLease(&s, LeaseSeen{Reachable: true, Renewed: true})
	learnLease(&s, LeaseSeen{Reachable: true})
	if !s.Trial.Renewed {
		t.Error("it is forgotten")
	}
}
