package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func allowing(s *Settings) { s.Disruption = Allow }

// How a removal fares while the kubelet is away: under a hold it is started again first, for nobody chose its end. Where changes are
// allowed, local is started in its place.
func TestARemovalWhileTheKubeletIsAway(t *testing.T) {
	away := func(t *testing.T, disruption func(*Settings)) *drive {
		d := newDrive(t, disruption).boot().good("good").pass(time.Minute).fresh()
		d.decide(ChildExited{Code: 1, Words: "x", Delay: 10 * time.Second})
		return d.hear(Cleared{NodeUID: "node-uid"}).pass(5 * time.Second)
	}
	t.Run("held", func(t *testing.T) {
		away(t, holding).expectDone().pass(10*time.Second).expectDone("start good", "foresee local", "stop", "start local")
	})
	t.Run("allowed", func(t *testing.T) {
		away(t, allowing).expectDone("start local").pass(10 * time.Second).expect(nothing)
	})
}

// A local configuration that has failed as often as a trial may is nothing to keep: what may mend it does not wait for its next start.
func TestLocalThatFailsAgainAndAgainIsNotKept(t *testing.T) {
	failed := func(t *testing.T, times int) *drive {
		d := newDrive(t, holding)
		d.hangs[""], d.kills["one"] = true, 4
		d.boot()
		for range times - 1 {
			d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(2 * time.Second)
		}
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Minute}).fresh()
		return d.assign("one").pass(2 * time.Second)
	}
	t.Run("twice", func(t *testing.T) {
		failed(t, 2).expectDone().pass(time.Minute).expectDone("start local", "prove one", "foresee one")
	})
	t.Run("three times", func(t *testing.T) {
		failed(t, 3).expectDone("prove one", "start one")
	})
}

// A change is made within five seconds of the look, or looked at again: here the write of the assignment takes its time.
func TestALookGetsOld(t *testing.T) {
	for after, done := range map[time.Duration][]string{
		5 * time.Second:                    {"prove one", "foresee one", "stop", "start one"},
		5*time.Second + 1*time.Millisecond: {"prove one", "foresee one", "foresee one", "stop", "start one"},
	} {
		t.Run(after.String(), func(t *testing.T) {
			d := newDrive(t, holding).boot().pass(time.Minute).fresh()
			d.decide(assigned("one", "1", "one"))
			d.until("the write of the assignment", func(do Action) bool {
				save, is := do.(Save)
				return is && save.assigned != nil
			})
			d.now += after
			d.hear(d.answer(d.s.Doing)).pass(time.Second).expectDone(done...)
		})
	}
}

// While what runs is rolled back, its failure is told, and not that a newer change waits.
func TestARollbackIsToldBeforeWhatWaits(t *testing.T) {
	d := newDrive(t, holding).boot().good("good").assign("one").pass(time.Minute)
	d.kills["two"] = 3
	d.assign("two").pass(2 * time.Second).expect("assigned=one@1 active=one@1 lkg=good@1 False WouldDisrupt run config")
	d.ownLooks = true
	for range 12 {
		if len(d.s.Suspects) > 0 {
			break
		}
		d.pass(10 * time.Second).decide(LeaseSeen{Reachable: true})
	}
	d.until("the stop of what failed", func(do Action) bool { _, is := do.(Stop); return is })
	d.now += 2 * time.Second
	d.decide(Ticked{})
	d.expect("assigned=one@1 active=one@1 lkg=good@1 False RolledBack run config")
}

// Each held change is told once, and is looked at again after a minute at first, whatever was held before it.
func TestAnotherChangeThatIsHeld(t *testing.T) {
	const soon = 67 * time.Second // at most a tenth more than a minute
	d := newDrive(t, holding).boot()
	d.kills["one"], d.kills["two"] = 1, 4
	d.fresh().assign("one").pass(2*soon).expectDone("prove one", "foresee one", "foresee one").expectEvents("KubeletConfigHeld")
	d.pass(2 * soon).fresh().assign("two").pass(soon)
	d.expectDone("prove two", "foresee two", "foresee two").expectEvents("KubeletConfigHeld")
}

// Of what is held nothing is written but the verdicts, and the report speaks of the newest that was asked for.
func TestWhatIsHeldWritesNothing(t *testing.T) {
	follow := func(s *Settings) { s.FollowLocal = true }
	for _, row := range []struct {
		name           string
		before, change func(d *drive)
		observed       string
	}{
		{"a removal", func(d *drive) { d.good("good") }, func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) }, ""},
		{"a change of the files of what is assigned", func(d *drive) { d.good("good") },
			func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) }, "kube-system/good/kubelet"},
		{"a change of the local file", func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute) },
			func(d *drive) { d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, holding, follow).boot()
			row.before(d)
			d.kills["good"], d.kills["local"], d.kills["edited"] = 2, 2, 2
			d.fresh()
			row.change(d)
			d.pass(20 * time.Second).expectEvents("KubeletConfigHeld")
			if r, _ := Report(d.s); r.Reason != ReasonWouldDisrupt || r.Observed == nil || *r.Observed != row.observed {
				t.Errorf("it speaks of %v: %s", r.Observed, d.shown())
			}
			verdicts := without(d.did, func(did string) bool { return !strings.HasPrefix(did, "prove ") })
			if len(d.saves) != len(verdicts) {
				t.Errorf("%d writes beside %q", len(d.saves), d.did)
			}
		})
	}
}

// Looks of many nodes are spread over a tenth less and a tenth more than the pause.
func TestLooksOfManyNodesAreSpread(t *testing.T) {
	first, last := time.Hour, time.Duration(0)
	for i := range 1000 {
		s := State{Durable: Durable{Account: Account{NodeUID: fmt.Sprint(i)}}, Outlook: Outlook{At: time.Hour, Pause: time.Minute}}
		first, last = min(first, s.lookAgainAfter()), max(last, s.lookAgainAfter())
	}
	if first < 54*time.Second || first > 54200*time.Millisecond || last < 65800*time.Millisecond || last > 66*time.Second {
		t.Errorf("the first after %s, the last after %s", first, last)
	}
}
