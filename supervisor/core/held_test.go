package core

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
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
	d.assign("two").pass(2 * time.Second).expect("assigned=one@1 active=one@1 lkg=good@1 False WouldDisrupt")
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

// Of what is held nothing is written but the verdicts and that it is held, and the report speaks of the newest that was asked for.
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
			if r, _ := Report(d.s); r.Reason != nodev1.ReasonWouldDisrupt || r.Observed == nil || *r.Observed != row.observed {
				t.Errorf("it speaks of %v: %s", r.Observed, d.shown())
			}
			verdicts := without(d.did, func(did string) bool { return !strings.HasPrefix(did, "prove ") })
			if len(d.saves) > len(verdicts)+1 { // one is of the hold itself
				t.Errorf("%d writes beside %q", len(d.saves), d.did)
			}
		})
	}
}

// Looks of many nodes are spread over a tenth less and a tenth more than the pause.
func TestLooksOfManyNodesAreSpread(t *testing.T) {
	first, last := time.Hour, time.Duration(0)
	for i := range 1000 {
		s := State{Intake: Intake{NodeUID: fmt.Sprint(i)}, Held: Held{Outlook: Outlook{At: time.Hour, Pause: time.Minute}}}
		first, last = min(first, lookAgainAfter(&s)), max(last, lookAgainAfter(&s))
	}
	if first < 54*time.Second || first > 54200*time.Millisecond || last < 65800*time.Millisecond || last > 66*time.Second {
		t.Errorf("the first after %s, the last after %s", first, last)
	}
}

// A ConfigMap that is edited without end costs a node six pre-flights, looks and events a minute, also while its edits are held: what waits for
// quiet is an edit of what is held. It stays told that one is.
func TestAStormOfEditsOfWhatIsHeld(t *testing.T) {
	for name, before := range map[string]func(d *drive){
		"of what runs":                func(d *drive) { d.assign("one", "cm", "1").pass(11 * time.Minute) },
		"of what never came to run":   func(d *drive) { d.kills["one"] = 2; d.assign("one", "cm", "1") },
		"of a change to another one":  func(d *drive) { d.good("good"); d.kills["one"] = 2; d.assign("one", "cm", "1") },
		"of what was refused at once": func(d *drive) { d.good("good").refuse("one", false).assign("one", "cm", "1").pass(20 * time.Second) },
	} {
		for _, every := range []time.Duration{100 * time.Millisecond, 3 * time.Second} {
			t.Run(fmt.Sprint(name, " every ", every), func(t *testing.T) {
				d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot().pass(time.Minute)
				before(d)
				held := ""
				d.fresh()
				for i := range int(time.Minute / every) {
					content := fmt.Sprint("new-", i)
					d.kills[content] = 2
					d.assign(content, "cm", fmt.Sprint(1000+i)).pass(every)
					if r, _ := Report(d.s); held != "" && r.Reason != nodev1.ReasonWouldDisrupt {
						t.Fatalf("%s, and it is shown: %s", held, d.shown())
					}
					if len(d.events) > 0 {
						held = "a change was held"
					}
				}
				d.pass(editPeriod)
				for what, times := range map[string]int{"pre-flights": d.times("prove new"), "looks": d.times("foresee new"), "events": len(d.events)} {
					if times < 6 || times > 7 {
						t.Errorf("%d %s: %q, %q", times, what, d.did, d.events)
					}
				}
				last := fmt.Sprint("new-", int(time.Minute/every)-1)
				d.approve().pass(2 * time.Hour)
				if !d.s.runs(version("cm", "", last)) {
					t.Errorf("in the end %s runs: %s", nameOf(d.s.Child.Version), d.shown())
				}
			})
		}
	}
}

// times is how often something that begins so was done.
func (d *drive) times(what string) (n int) {
	for _, did := range d.did {
		if strings.HasPrefix(did, what) {
			n++
		}
	}
	return n
}

// What makes something else more urgent does not wait for a look.
func TestALookIsGivenUp(t *testing.T) {
	for name, event := range map[string]Event{
		"a removal":                            Cleared{NodeUID: "node-uid"},
		"an assignment that cannot be had":     gone,
		"another process has the healthz port": PortSeen{HeldBy: heldByNginx},
		"the kubelet hangs":                    Hung{Words: "no watchdog ping"},
		"the host shuts down":                  HostStopping{},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding).boot().pass(time.Minute)
			d.hangs["one"] = true
			d.assign("one").pass(time.Second)
			d.decide(assigned("two", "1", "two"))
			d.until("the look", func(do Action) bool { _, is := do.(Foresee); return is })
			d.decide(event)
			if do, looks := d.s.Doing.(Foresee); looks && do.Content == "two" {
				t.Error("the look goes on")
			}
		})
	}
}

// What is given back goes through in the end as it was assigned.
func TestAnEditThatIsGivenBack(t *testing.T) {
	d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot()
	d.assign("one", "cm", "1").pass(12*time.Minute).edit("two", "2").pass(time.Second)
	before := d.disk
	d.kills["two"] = 1
	d.pass(time.Hour).expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt")
	d.kills["two"] = 0
	d.pass(3 * time.Hour).expect("assigned=two@2 active=two@2 lkg=two@2 True Active")
	if contentOf(before.Assigned) != "two" || d.disk.Text != before.Text || d.disk.NodeUID != before.NodeUID {
		t.Errorf("on disk is %s by %q of %q, was %s by %q of %q", nameOf(d.disk.Assigned), d.disk.Text, d.disk.NodeUID, nameOf(before.Assigned), before.Text, before.NodeUID)
	}
}

// An assignment that waits for a slow disk, and is held after all, leaves nothing of itself on the disk. Once it may be made it waits for no
// turn, for it is no edit.
func TestAnAssignmentThatIsHeldAfterAll(t *testing.T) {
	for name, before := range map[string]func(d *drive){
		"over local":      func(*drive) {},
		"over a good one": func(d *drive) { d.good("good") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot()
			before(d)
			was := d.pass(time.Minute).disk.Assigned
			d.decide(assigned("one", "1", "one"))
			d.until("its write", func(do Action) bool {
				save, is := do.(Save)
				return is && save.assigned != nil
			})
			d.kills["one"] = 2
			d.now += 6 * time.Second
			d.hear(d.answer(d.s.Doing)).pass(time.Second)
			if r, _ := Report(d.s); r.Reason != nodev1.ReasonWouldDisrupt {
				t.Errorf("shown is %s", d.shown())
			}
			if d.disk.Text != "" || !reflect.DeepEqual(d.disk.Assigned, was) {
				t.Errorf("on disk is %s by %q, was %s", nameOf(d.disk.Assigned), d.disk.Text, nameOf(was))
			}
			if d.approve().pass(2 * time.Second); !d.s.runs(version("one", "1", "one")) {
				t.Errorf("it waits: %s", d.shown())
			}
		})
	}
}

// A removal that waits for a slow disk, and is held after all, is none for a supervisor that starts now. It is still to come for this one.
func TestARemovalThatWaitsForASlowDisk(t *testing.T) {
	begin := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.decide(Cleared{NodeUID: "node-uid"})
		d.until("its write", func(do Action) bool {
			save, is := do.(Save)
			return is && save.Durable.Assigned == nil
		})
		d.kills["local"] = 2
		d.now += 6 * time.Second
		return d.hear(d.answer(d.s.Doing)).pass(time.Second)
	}
	t.Run("it is held", func(t *testing.T) {
		d := begin(t).expectMessage("the local configuration waits: 2 of 7")
		if contentOf(d.disk.Assigned) != "good" {
			t.Errorf("on disk is %s", nameOf(d.disk.Assigned))
		}
		d.fresh().boot().expectDone("start good")
	})
	t.Run("and made", func(t *testing.T) {
		d := begin(t).approve().pass(time.Minute).expect(nothing)
		if d.disk.NodeUID != "node-uid" || d.disk.Assigned != nil {
			t.Errorf("on disk is %s of Node %q", nameOf(d.disk.Assigned), d.disk.NodeUID)
		}
	})
}

// An edit whose turn comes while a newer change waits: under a hold it is not made, for the newest change is the one that counts.
func TestTheTurnOfAnEditWhileANewerChangeWaits(t *testing.T) {
	waiting := func(t *testing.T, disruption string) *drive {
		d := newDrive(t, func(s *Settings) { s.EditSpread, s.Disruption = time.Hour, disruption }).boot()
		d.assign("one", "cm", "1").pass(12*time.Minute).edit("two", "2").pass(time.Second)
		d.kills["other"], d.kills["local"] = 1, 1
		return d.expect("assigned=two@2 active=one@1 lkg=one@1 Unknown Applying").fresh()
	}
	t.Run("another assignment is held", func(t *testing.T) {
		d := waiting(t, Hold).assign("other").pass(time.Hour)
		if d.times("stop") > 0 {
			t.Errorf("done: %q", d.did)
		}
		d.expect("assigned=two@2 active=one@1 lkg=one@1 False WouldDisrupt")
	})
	t.Run("a removal is held", func(t *testing.T) {
		d := waiting(t, Hold).hear(Cleared{NodeUID: "node-uid"}).pass(time.Hour)
		if d.times("stop") > 0 {
			t.Errorf("done: %q", d.did)
		}
		d.expect("assigned=two@2 active=one@1 lkg=one@1 False WouldDisrupt")
	})
	t.Run("a removal waits for local, and nothing is held", func(t *testing.T) {
		d := waiting(t, Allow).refuse("broken", false).hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).hear(Cleared{NodeUID: "node-uid"}).pass(time.Hour)
		if !d.s.runs(version("cm", "2", "two")) {
			t.Errorf("%s runs: %q", nameOf(d.s.Child.Version), d.did)
		}
	})
}
