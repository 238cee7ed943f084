package core

import (
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// seeded gives a drive whose disk holds what an earlier supervisor left, not booted yet.
func seeded(t *testing.T, before func(d *drive), changes ...func(*Settings)) *drive {
	d := newDrive(t, changes...).boot()
	before(d)
	return d.fresh()
}

// crash is the end of supervisor and kubelet without a word.
func (d *drive) crash() *drive {
	d.fresh()
	return d.boot()
}

// stop is an asked stop.
func (d *drive) stop() *drive { return d.hear(StopAsked{}).fresh() }

// Rule 10: tries are counted before they are spent, and refunded only by a recorded asked stop.
func TestTriesOverRestarts(t *testing.T) {
	t.Run("crashes of the supervisor before any health count: the third rolls back", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.hangs["good"] = true; d.assign("good").pass(time.Second) })
		d.crash().expectDone("start good")
		d.crash().expectDone("start good")
		d.crash().expectDone("start local")
		d.pass(5 * time.Second).expect("assigned=good@1 active=- lkg=- False RolledBack run config").expectMessage("the supervisor died")
	})
	t.Run("a crash after 10 s of health counts nothing", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.assign("good").pass(time.Minute) })
		for range 10 {
			d.crash().expectDone("start good").pass(20 * time.Second)
		}
		d.expect(inTrial)
	})
	t.Run("asked stops are refunded", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.assign("good").pass(2 * time.Second) })
		for range 10 {
			d.stop()
			d.boot().expectDone("start good").fresh()
		}
		d.expect(inTrial)
	})
	t.Run("exits that blame the container runtime are refunded", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.assign("good").pass(2 * time.Second) })
		for range 10 {
			d.hear(ChildExited{Code: 1, RuntimeDown: true, Words: "the container runtime does not answer", Delay: time.Second})
			d.hangs["good"] = true
			d.pass(3 * time.Second)
		}
		d.expect("assigned=good@1 active=good@1 lkg=- Unknown EnvironmentFailing")
		delete(d.hangs, "good")
		d.pass(time.Second).expect(inTrial)
	})
}

func TestRestarts(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(d *drive)
		done   []string
		shown  string
	}{
		{"nothing assigned", func(*drive) {}, []string{"start local"}, nothing},
		{"a promoted configuration starts at once, its verdict is kept",
			func(d *drive) { d.good("good") }, []string{"start good"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"a trial goes on where it was",
			func(d *drive) { d.assign("good").pass(9 * time.Minute).stop() }, []string{"start good"}, inTrial},
		{"a refused one stays refused, lastKnownGood starts",
			func(d *drive) { d.good("good").refuse("bad", true).assign("bad").pass(time.Second) }, []string{"start good"},
			"assigned=bad@1 active=good@1 lkg=good@1 False Refused load config"},
		{"a rejected one stays rejected",
			func(d *drive) { d.deadly["bad"] = time.Second / 2; d.assign("bad").pass(time.Minute) }, []string{"start local"},
			"assigned=bad@1 active=- lkg=- False Rejected run config"},
		{"the control is resumed",
			func(d *drive) { d.deadly["bad"] = time.Second / 2; d.assign("bad").pass(9 * time.Second) }, []string{"start local"},
			"assigned=bad@1 active=- lkg=- False RolledBack run config"},
		{"a checkpoint that cannot be read falls back to lastKnownGood (rule 2)",
			func(d *drive) {
				d.good("good").assign("young").pass(time.Second)
				d.disk.Assigned = &Version{Source: d.disk.Assigned.Source}
			},
			[]string{"start good"}, "assigned=@1 active=good@1 lkg=good@1 False InternalError load config"},
		{"an assignment that cannot be read leaves lastKnownGood (rule 2)",
			func(d *drive) {
				d.good("good").assign("young").pass(time.Second)
				d.disk.Assigned = nil
			},
			[]string{"start good"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"both checkpoints broken: local (rule 2)",
			func(d *drive) {
				d.good("good")
				d.disk.Assigned, d.disk.LastKnownGood = &Version{Source: d.disk.Assigned.Source}, &Version{Source: d.disk.Assigned.Source}
			},
			[]string{"start local"}, "assigned=@1 active=- lkg=@1 False LastKnownGoodFailed load config"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := seeded(t, row.before)
			d.crash().pass(time.Second).expectDone(row.done...).expect(row.shown)
		})
	}
	t.Run("a trial that went on ends when its time is full", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.assign("good").pass(9 * time.Minute) })
		d.crash().pass(2 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("the broken one is downloaded again and taken", func(t *testing.T) {
		d := seeded(t, func(d *drive) {
			d.good("good")
			d.disk.Assigned = &Version{Source: d.disk.Assigned.Source}
			d.disk.LastKnownGood = nil
		})
		d.crash().assign("good").pass(time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
}

// Rule 9: a promotion holds for one effective identity.
func TestKubeletUpgrade(t *testing.T) {
	newer := kubeletconfig.Identity{Binary: "binary-2", Arguments: "arguments-1", Local: "local-1"}
	upgraded := func(t *testing.T, before func(d *drive)) *drive {
		d := seeded(t, before)
		d.s = New(d.s.Settings)
		d.hear(Booted{Disk: d.disk, Kubelet: newer, Local: "local"})
		return d.pass(time.Second)
	}
	t.Run("proved before its first start, and on trial again", func(t *testing.T) {
		d := upgraded(t, func(d *drive) { d.good("good") })
		d.expectDone("prove good", "start good").expect("assigned=good@1 active=good@1 lkg=good@1 True InTrial")
		d.pass(11 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("refused by the new kubelet: local, lastKnownGood stays on disk", func(t *testing.T) {
		d := upgraded(t, func(d *drive) { d.good("good").refuse("good", false) })
		d.expectDone("prove good", "start local").expect("assigned=good@1 active=- lkg=good@1 False LastKnownGoodFailed validate config")
	})
	t.Run("deadly with the new kubelet: local", func(t *testing.T) {
		d := upgraded(t, func(d *drive) { d.good("good").deadly["good"] = time.Second / 2 })
		d.pass(20 * time.Second).expect("assigned=good@1 active=- lkg=good@1 False LastKnownGoodFailed run config")
	})
	t.Run("a rejected one is tried again with the new kubelet", func(t *testing.T) {
		d := upgraded(t, func(d *drive) {
			d.deadly["bad"] = time.Second / 2
			d.assign("bad").pass(time.Minute)
			delete(d.deadly, "bad")
		})
		d.expectDone("prove bad", "start bad")
	})
	t.Run("under a running kubelet it waits for the next start", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.hear(LocalChanged{Kubelet: newer, Local: "local"}).pass(time.Minute)
		d.expectDone("prove good", "prove local").expectMessage("LocalChangePending").expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
		d.fresh().hear(ChildExited{Code: 0}).pass(time.Second).expectDone("start good").expect("assigned=good@1 active=good@1 lkg=good@1 True InTrial")
	})
	t.Run("refused under a running kubelet restarts nothing and says so", func(t *testing.T) {
		d := newDrive(t).boot().good("good").refuse("good", false).fresh()
		d.hear(LocalChanged{Kubelet: newer, Local: "local"}).pass(time.Minute)
		d.expectDone("prove good", "prove local").expectMessage("would be refused")
	})
}

func TestFollowLocal(t *testing.T) {
	follow := func(s *Settings) { s.FollowLocal = true }
	t.Run("an accepted change restarts a local kubelet", func(t *testing.T) {
		d := newDrive(t, follow).boot().pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expectDone("prove edited", "stop", "start local")
	})
	t.Run("a refused one never does", func(t *testing.T) {
		d := newDrive(t, follow).boot().pass(time.Minute).refuse("broken", true).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).pass(time.Minute).expectDone("prove broken").
			expect("assigned=- active=- lkg=- False FallbackBroken")
	})
	t.Run("the local file does not concern a dynamic configuration", func(t *testing.T) {
		d := newDrive(t, follow).boot().good("good").fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expectDone("prove edited")
	})
	t.Run("without the flag it is only reported", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expectDone("prove edited").
			expect(nothing).expectMessage("LocalChangePending")
	})
}

// In-place edits are spread; everything else is immediate.
func TestEditSpread(t *testing.T) {
	spreadEdits := func(s *Settings) { s.EditSpread = time.Hour }
	edited := func(t *testing.T) *drive {
		d := newDrive(t, spreadEdits).boot()
		return d.assign("one", "cm", "1").pass(11 * time.Minute).fresh()
	}
	turn := spread("node-uid", "2", time.Hour)
	if turn < 10*time.Second || turn > time.Hour-time.Minute {
		t.Fatalf("the test needs a resourceVersion whose turn is in the middle, not %s", turn)
	}
	t.Run("proved when it has settled, applied at its turn", func(t *testing.T) {
		d := edited(t).edit("two", "2")
		d.pass(turn - time.Second).expectDone("prove two").expect("assigned=two@2 active=one@1 lkg=one@1 Unknown Applying").expectMessage("waits for its turn until 20")
		d.pass(3*time.Second).expectDone("prove two", "stop", "start two").expect("assigned=two@2 active=two@2 lkg=one@1 True InTrial")
	})
	t.Run("a newer edit takes the turn of the older", func(t *testing.T) {
		d := edited(t).edit("two", "2").pass(time.Second).edit("three", "3")
		d.pass(turn).expectDone("prove two", "prove three", "stop", "start three")
	})
	t.Run("an edit that mends a refused one is immediate", func(t *testing.T) {
		d := edited(t).refuse("two", true).edit("two", "2").pass(editPeriod).assign("three", "cm", "3")
		d.expectDone("prove two", "prove three", "stop", "start three")
	})
	t.Run("another assignment is immediate", func(t *testing.T) {
		edited(t).assign("two", "other", "2").pass(time.Second).expectDone("prove two", "stop", "start two")
	})
	t.Run("a kubelet that dies meanwhile starts with what it ran, and the edit waits", func(t *testing.T) {
		d := edited(t).edit("two", "2").hear(ChildExited{Code: 0}).expectDone("prove two", "start one")
		d.pass(turn+time.Second).expectDone("prove two", "start one", "stop", "start two")
	})
	t.Run("a retry is immediate", func(t *testing.T) {
		d := edited(t).edit("two", "2").hear(Retry{Value: "now"})
		if got := nameOf(d.s.Child.Version); got != "two" {
			t.Errorf("runs %s after a retry, want two", got)
		}
	})
}

// Rule 8, the other half: the environment is to blame.
func TestEnvironmentIsToBlame(t *testing.T) {
	d := newDrive(t).boot().fresh()
	d.deadly["good"], d.deadly[""] = time.Second/2, time.Second/2
	d.assign("good").pass(time.Minute)
	if len(d.s.Rejected) > 0 {
		t.Fatalf("rejected %v though local fails the same way", d.s.Rejected)
	}
	if r, due := Report(d.s); due && r.Status == "True" {
		t.Errorf("shown: %s", d.shown())
	}
	clear(d.deadly)
	d.pass(time.Minute).expect(inTrial)
}

// Only the newest of the assignments that arrive while something is under way is kept, and nothing is done before it is durable.
func TestQueueOfOne(t *testing.T) {
	d := newDrive(t).boot().fresh()
	d.decide(assigned("one", "1", "one"))
	if _, saves := d.step.Do.(Save); !saves {
		t.Fatalf("first %T, want Save: durable before dangerous", d.step.Do)
	}
	for _, content := range []string{"two", "three", "four"} {
		d.decide(assigned(content, "1", content))
		if d.step.Do != nil {
			t.Fatalf("%T while a Save is under way", d.step.Do)
		}
	}
	d.hear(Saved{}).pass(time.Second).expectDone("prove four", "stop", "start four")
}

// What was asked last is what counts, and what the report speaks of.
func TestNewestAssignmentCounts(t *testing.T) {
	t.Run("a removal while a newer assignment is being written", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(assigned("newer", "1", "newer"))
		d.decide(Cleared{NodeUID: "node-uid"})
		d.disk = d.s.Doing.(Save).Durable
		d.hear(Saved{}).pass(time.Second).expect(nothing)
		if *d.s.Observed != "" {
			t.Errorf("observed %q after the removal", *d.s.Observed)
		}
	})
	t.Run("a malformed assignment takes a waiting reset back", func(t *testing.T) {
		d := newDrive(t).boot().good("good").refuse("broken", false)
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		d.hear(SyncFailed{Text: "///", Problem: Problem{Malformed: true, Error: "failed to sync: x"}})
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "mended"}).pass(time.Minute)
		d.expect("assigned=good@1 active=good@1 lkg=good@1 False InvalidAssignment sync: x")
	})
}

// A kubelet that could not tell once is asked again by the next supervisor.
func TestUnknownIsNotKept(t *testing.T) {
	d := seeded(t, func(d *drive) {
		d.refused["good"] = Proof{Outcome: kubeletconfig.Unknown}
		d.assign("good").pass(time.Minute)
	})
	d.crash().expectDone("prove good", "start good")
}

// Words of an exit do not outlive it.
func TestOldExitsAreForgotten(t *testing.T) {
	d := newDrive(t).boot().hear(ChildExited{Code: 1, Words: "exit code 1: long ago"}).pass(time.Minute)
	d.s, d.step = Decide(d.s, Moment{Now: d.now}, Unhealthy{Words: "healthz does not answer"})
	d.s.Now += 2 * time.Second
	if r, due := Report(d.s); !due || strings.Contains(r.Message, "long ago") || !strings.Contains(r.Message, "does not answer") {
		t.Errorf("message %q", r.Message)
	}
}
