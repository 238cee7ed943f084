package core

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// The next kubelet waits beside the one that runs only where nothing has just failed, and where both take the lock. Each row takes one condition away.
func TestWhenTheNextKubeletMayWait(t *testing.T) {
	was, want, other := &Version{Content: "a"}, &Version{Content: "b"}, &Version{Content: "c"}
	for name, row := range map[string]struct {
		but   func(s *State)
		of    *Version
		waits bool
	}{
		"all is well":                              {func(*State) {}, want, true},
		"there is no lock here":                    {func(s *State) { s.Parking = false }, want, false},
		"it is local":                              {func(s *State) { s.Assigned = nil }, nil, false},
		"it is not what is assigned":               {func(*State) {}, other, false},
		"something is suspected":                   {func(s *State) { s.Suspects = []Suspect{{Version: *other}} }, want, false},
		"the disk cannot be written":               {func(s *State) { s.SaveError = "full" }, want, false},
		"what runs holds no lock":                  {func(s *State) { s.Child.Locked = false }, want, false},
		"local runs":                               {func(s *State) { s.Child.Version = nil }, want, false},
		"one did not come to the lock in time":     {func(s *State) { s.Child.Unparkable = true }, want, false},
		"what runs was rejected":                   {func(s *State) { s.Rejected = []Rejection{{Content: "a", Binary: "here"}} }, want, false},
		"what runs is of another program":          {func(s *State) { s.Child.Kubelet = there }, want, false},
		"it was not asked about":                   {func(s *State) { s.Proofs = nil }, want, false},
		"it was refused":                           {func(s *State) { s.Proofs[0].Outcome = kubeletconfig.Refused }, want, false},
		"the kubelet cannot be asked at all":       {func(s *State) { s.Proofs = append(s.Proofs, Proof{Content: AnyContent, Kubelet: here}) }, want, false},
		"it was accepted, by another program only": {func(s *State) { s.Proofs[0].Kubelet = there }, want, false},
	} {
		s := State{Process: Process{OnDisk: here, Child: Child{Alive: true, Locked: true, Version: was, Kubelet: here}}}
		s.Parking, s.Assigned = true, want
		s.Proofs = []Proof{{Content: "b", Kubelet: here, Outcome: kubeletconfig.Accepted}, {Content: "c", Kubelet: here, Outcome: kubeletconfig.Accepted}}
		if row.but(&s); mayPark(&s, row.of) != row.waits {
			t.Errorf("%s: it waits: %t", name, !row.waits)
		}
	}
}

// What waits is let through for exactly the move that it was started for.
func TestWhatGoesOnWithTheKubeletThatWaits(t *testing.T) {
	want, other := &Version{Content: "b"}, &Version{Content: "c"}
	for name, row := range map[string]struct {
		next   move
		parked Parked
		fits   bool
	}{
		"the change":                    {move{kind: replaceChild, want: want}, Parked{want, here, "local"}, true},
		"its start":                     {move{kind: startChild, want: want}, Parked{want, here, "local"}, true},
		"another change":                {move{kind: replaceChild, want: other}, Parked{want, here, "local"}, false},
		"another program is on disk":    {move{kind: replaceChild, want: want}, Parked{want, there, "local"}, false},
		"the node's files have changed": {move{kind: startChild, want: want}, Parked{want, here, "older"}, false},
		"nothing is to be done":         {move{kind: keepChild, want: want}, Parked{want, here, "local"}, false},
	} {
		s := State{Process: Process{OnDisk: here, Local: "local"}}
		if row.parked.fits(&s, row.next) != row.fits {
			t.Errorf("%s: it fits: %t", name, !row.fits)
		}
	}
}

// The way to the lock is told what runs, and what is fallen back to; a try that the disk does not take is no way.
func TestTheWayToTheLock(t *testing.T) {
	was, want := &Version{Content: "a"}, &Version{Content: "b"}
	s := State{Process: Process{Child: Child{Alive: true, Version: was}}}
	s.Assigned, s.LastKnownGood, s.Local = want, was, "local"
	if _, saves := commitPark(&s, want).(Save); !saves {
		t.Fatal("the try is not written first")
	}
	s.SaveError, s.SaveRetry = "full", 1<<40
	if do := commitPark(&s, want); do != nil || s.Trial.Parked {
		t.Errorf("the disk is full: %+v, parked %t", do, s.Trial.Parked)
	}
	s.SaveError, s.SaveRetry = "", 0
	if _, saves := commitPark(&s, want).(Save); !saves {
		t.Fatal("the try is not written again")
	}
	s.Disk = s.durable()
	do, parks := commitPark(&s, want).(Park)
	if !parks || do.Runs != was || do.Fallback != was || do.Version != want || do.Local != "local" {
		t.Errorf("%+v", do)
	}
}

// An answer of the way to the lock that nobody waits for changes nothing; one that failed gives its try back.
func TestTheEndOfTheWayToTheLock(t *testing.T) {
	v := &Version{Content: "b"}
	late := State{Process: Process{Child: Child{Alive: true}}}
	if learnParked(&late, ParkEnded{}); late.Child.Unparkable || late.Parked != nil {
		t.Errorf("a late answer: %+v", late.Child)
	}
	s := State{Doing: Park{Version: v}, Process: Process{Child: Child{Alive: true}}}
	s.Trial = Trial{Tries: 2, Open: true, Parked: true}
	if learnParked(&s, ParkEnded{}); s.Trial.Tries != 1 || s.Trial.Open || s.Trial.Parked || !s.Child.Unparkable || s.Doing != nil {
		t.Errorf("%+v, %+v", s.Trial, s.Child)
	}
}

// What waits is ended for something else; only one more look at the same change says that its way to the lock is too long.
func TestWhatWaitsIsEnded(t *testing.T) {
	want, other := &Version{Content: "b"}, &Version{Content: "c"}
	for name, row := range map[string]struct {
		next  Action
		plain bool
	}{
		"a look at the same change":    {Foresee{Version: want}, true},
		"a look at another change":     {Foresee{Version: other}, false},
		"a question about the content": {Prove{Version: want}, false},
	} {
		s := State{Process: Process{Parked: &Parked{Version: want}}}
		if _, ends := endParked(&s, move{kind: perform, action: row.next}).(Unpark); !ends || s.Child.Unparkable != row.plain {
			t.Errorf("%s: it is ended %t, the plain way from now on %t", name, ends, s.Child.Unparkable)
		}
	}
}

// A try that was written for a kubelet that was to wait is the try of the plain start that follows.
func TestAPlainStartAfterOneThatWasToWait(t *testing.T) {
	v := &Version{Content: "b"}
	var s State
	s.Trial = Trial{Content: "b", Tries: 1, Open: true, Parked: true}
	if spend(&s, v); s.Trial.Parked || s.Trial.Tries != 1 || !s.Trial.Open {
		t.Errorf("%+v", s.Trial)
	}
}

// While a newer change is held, what runs is kept as it is, and what is kept of it is written.
func TestWhatRunsIsKeptWhileTheNewestChangeIsHeld(t *testing.T) {
	runs, want := &Version{Content: "a"}, &Version{Content: "b"}
	s := State{Process: Process{Child: Child{Alive: true, Version: runs}}, Intake: Intake{Pending: &Assigned{Version: Version{Content: "c"}}}}
	s.Disruption = Hold
	if next := planReplace(&s, want); next.kind != keepChild {
		t.Errorf("%+v", next)
	}
}

// What waited and was ended has not run: its try is given back.
func TestWhatWaitedIsGone(t *testing.T) {
	s := State{Doing: Unpark{}, Process: Process{Parked: &Parked{Version: &Version{Content: "b"}}}}
	s.Trial = Trial{Tries: 2, Open: true, Parked: true}
	if learnUnparked(&s); s.Trial.Tries != 1 || s.Trial.Open || s.Trial.Parked || s.Parked != nil || s.Doing != nil {
		t.Errorf("%+v, %+v", s.Trial, s.Parked)
	}
}

// A retry asks at once, and leaves the state as it was that Decide was given.
func TestARetryLeavesTheStateBefore(t *testing.T) {
	d := newDrive(t, holding).boot().pass(time.Minute)
	d.mute["one"] = -1
	d.assign("one").pass(time.Minute)
	before, tries := d.s, d.s.Unanswered[0].Tries
	if d.hear(Retry{}); before.Unanswered[0].Tries != tries {
		t.Errorf("%d tries became %d", tries, before.Unanswered[0].Tries)
	}
}
