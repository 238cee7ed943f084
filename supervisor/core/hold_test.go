package core

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

func holding(s *Settings) { s.Disruption = Hold }

const nothingYet = "assigned=- active=- lkg=- "

// Rule 19. Each row is what happens on a node whose local configuration runs, and what comes of it.
func TestHold(t *testing.T) {
	held := nothingYet + "False WouldDisrupt"
	for _, row := range []struct {
		name  string
		lives func(d *drive)
		done  []string
		shown string
		told  []string
	}{
		{"a change that kills nothing is made", func(d *drive) { d.assign("one") },
			[]string{"prove one", "foresee one", "stop", "start one"}, "assigned=one@1 active=one@1 lkg=- True InTrial", []string{"KubeletConfigChanged"}},
		{"one that would kill pods moves nothing", func(d *drive) { d.kills["one"] = 4; d.assign("one") },
			[]string{"prove one", "foresee one"}, held, []string{"KubeletConfigHeld"}},
		{"a drained node passes by itself", func(d *drive) {
			d.kills["one"] = 4
			d.assign("one").pass(10 * time.Second)
			d.kills["one"] = 0
			d.pass(70 * time.Second)
		},
			[]string{"prove one", "foresee one", "foresee one", "stop", "start one"}, "assigned=one@1 active=one@1 lkg=- True InTrial", []string{"KubeletConfigHeld", "KubeletConfigChanged"}},
		{"a person's approval lets it through, after a fresh look", func(d *drive) {
			d.kills["one"] = 4
			d.assign("one").pass(10 * time.Second).approve()
		}, []string{"prove one", "foresee one", "foresee one", "stop", "start one"}, "assigned=one@1 active=one@1 lkg=- True InTrial", []string{"KubeletConfigHeld", "KubeletConfigChanged"}},
		{"any other value does not", func(d *drive) { d.kills["one"] = 4; d.hear(Consented{Value: "two"}).assign("one") },
			[]string{"prove one", "foresee one"}, held, []string{"KubeletConfigHeld"}},
		{"a newer assignment takes its place", func(d *drive) { d.kills["one"] = 4; d.assign("one").assign("two") },
			[]string{"prove one", "foresee one", "prove two", "foresee two", "stop", "start two"}, "assigned=two@1 active=two@1 lkg=- True InTrial", []string{"KubeletConfigHeld", "KubeletConfigChanged"}},
		{"equal content at another version is held without another look", func(d *drive) { d.kills["one"] = 4; d.assign("one").assign("one", "cm", "2") },
			[]string{"prove one", "foresee one"}, held, []string{"KubeletConfigHeld"}},
		{"a removal ends it", func(d *drive) { d.kills["one"] = 4; d.assign("one").hear(Cleared{NodeUID: "node-uid"}) },
			[]string{"prove one", "foresee one"}, nothingYet + "True Local", []string{"KubeletConfigHeld"}},
		{"an assignment that cannot be had ends it", func(d *drive) { d.kills["one"] = 4; d.assign("one").hear(gone) },
			[]string{"prove one", "foresee one"}, nothingYet + "False SyncFailed sync: x", []string{"KubeletConfigHeld"}},
		{"what is refused is no change, and is looked at no further", func(d *drive) { d.kills["one"] = 4; d.refuse("one", false).assign("one") },
			[]string{"prove one"}, "assigned=one@1 active=- lkg=- False Refused validate config", []string{"KubeletConfigRefused"}},
		{"a crash of the kubelet is restarted without a look", func(d *drive) {
			d.kills["one"], d.kills["local"] = 4, 4
			d.assign("one").hear(ChildExited{Code: 1, Words: "x"})
		}, []string{"prove one", "foresee one", "start local"}, held, []string{"KubeletConfigHeld"}},
		{"what is not foreseen is made", func(d *drive) { d.unsure = "the node's pods: no answer"; d.assign("one") },
			[]string{"prove one", "foresee one", "stop", "start one"}, "assigned=one@1 active=one@1 lkg=- True InTrial", []string{"KubeletConfigChanged"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, holding).boot().pass(time.Minute).fresh()
			row.lives(d)
			d.pass(15 * time.Second)
			d.did = without(d.did, func(did string) bool { return did == "prove local" })
			d.expectDone(row.done...).expect(row.shown).expectEvents(row.told...)
		})
	}
}

func TestHeldMessage(t *testing.T) {
	t.Run("of an assignment", func(t *testing.T) {
		d := newDrive(t, holding).boot()
		d.kills["one"] = 4
		d.assign("one")
		d.says("using current (default); kube-system/one/kubelet (UID uid-of-cm, resourceVersion 1) waits: " +
			"4 of 7 running pods would be killed at the restart; drain the node, or set annotation kubelet-supervisor.io/allow-disruption=" + d.approval())
		if r, _ := Report(d.s); r.Observed == nil || *r.Observed != "kube-system/one/kubelet" {
			t.Errorf("it is not said which assignment it is about: %v", r.Observed)
		}
	})
	t.Run("of a removal", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.kills["local"] = 2
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second).expectMessage("the local configuration waits: 2 of 7", "allow-disruption="+d.approval())
		d.expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
		d.approve().pass(time.Second).expect(nothing)
	})
	t.Run("of what was not foreseen, as long as it is on trial", func(t *testing.T) {
		d := newDrive(t, holding).boot()
		d.unsure = "the node's pods: no answer"
		d.assign("one").pass(time.Second).expectMessage("what it would do to running pods was not foreseen: the node's pods: no answer")
		d.pass(11 * time.Minute).says(`using current (UID: "uid-of-cm"); the assigned configuration passed its trial`)
	})
	t.Run("of pods that were lost all the same", func(t *testing.T) {
		d := newDrive(t, holding).boot().assign("one").pass(time.Minute).fresh()
		d.hear(PodsLost{Words: "1 running pod was lost at the restart: default/a"}).expectMessage("default/a").expectEvents("KubeletConfigPodsLost")
		if d.assign("two").pass(time.Minute); d.s.PodsLost != "" {
			t.Error("the next change still tells of it")
		}
	})
}

// What a look is given.
func TestForesee(t *testing.T) {
	look := func(d *drive) Foresee { return d.actions[reflect.TypeFor[Foresee]()].(Foresee) }
	d := newDrive(t, holding).boot().good("good").assign("one")
	want := Foresee{Change: Change{Content: "one", Kubelet: testKubelet, Runs: "good", RunsKubelet: testKubelet}, Version: version("one", "1", "one"),
		RunsVersion: version("good", "1", "good"), Local: "local", MayAsk: true}
	if got := look(d); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	d = newDrive(t, holding).boot()
	d.s.Proofs = []Proof{{Content: AnyContent, Kubelet: testKubelet, Outcome: kubeletconfig.Unknown}}
	d.assign("one")
	want = Foresee{Change: Change{Content: "one", Kubelet: testKubelet, Runs: "local", RunsKubelet: testKubelet}, Version: version("one", "1", "one"), Local: "local"}
	if got := look(d); !reflect.DeepEqual(got, want) {
		t.Errorf("of a kubelet that must not be asked: got %+v\nwant %+v", got, want)
	}
}

// What a restart costs is only counted where somebody looked before it.
func TestStopsThatWereLookedAt(t *testing.T) {
	looked := func(d *drive) bool { return d.actions[reflect.TypeFor[Stop]()].(Stop).Looked }
	d := newDrive(t, holding).boot().good("good")
	if !looked(d) {
		t.Error("a change was not looked at")
	}
	d.assign("bad")
	if !looked(d) {
		t.Error("the next change was not looked at")
	}
	d.lease["bad"] = false
	if looked(d.pass(2 * time.Minute).expect("assigned=bad@1 active=good@1 lkg=good@1 False RolledBack run config")) {
		t.Error("a rollback was looked at")
	}
	if looked(d.hear(StopAsked{})) {
		t.Error("a stop was looked at")
	}
}

// What was foreseen is of one change: other files, another kubelet on the disk and another content are looked at anew.
func TestOutlookIsOfOneChange(t *testing.T) {
	held := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().pass(time.Minute)
		d.kills["one"] = 4
		return d.assign("one").fresh()
	}
	t.Run("another kubelet on the disk", func(t *testing.T) {
		held(t).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).expectDone("prove one", "foresee one", "prove local")
	})
	t.Run("another assignment is not said to be held", func(t *testing.T) {
		d := held(t)
		d.decide(assigned("two", "1", "two"))
		if want, _, is := heldChange(&d.s); is {
			t.Errorf("held is %s", nameOf(want))
		}
	})
	t.Run("a kubelet that has gone holds nothing", func(t *testing.T) {
		d := held(t)
		d.decide(ChildExited{Code: 1, Words: "x", Delay: time.Second})
		if want, _, is := heldChange(&d.s); is {
			t.Errorf("held is %s", nameOf(want))
		}
	})
	t.Run("while the kubelet is away, it is started before anything is asked", func(t *testing.T) {
		d := held(t)
		d.decide(ChildExited{Code: 1, Words: "x", Delay: time.Second})
		d.hear(assigned("two", "1", "two")).pass(500 * time.Millisecond).expectDone()
		d.pass(time.Second).expectDone("start local", "prove two", "foresee two", "stop", "start two")
	})
}

// What is held is looked at every minute, doubling to five, with jitter.
func TestHeldIsLookedAtAgain(t *testing.T) {
	d := newDrive(t, holding).boot()
	d.kills["one"] = 4
	var looks []time.Duration
	d.assign("one").fresh()
	for last, seen := d.now, 0; d.now-d.began < 25*time.Minute; {
		d.pass(time.Second)
		if len(d.did) > seen {
			seen = len(d.did)
			looks, last = append(looks, d.now-last), d.now
		}
	}
	if len(looks) < 6 {
		t.Fatalf("it is looked at after %s", looks)
	}
	for i, about := range []time.Duration{1, 2, 4, 5, 5, 5} {
		if about *= time.Minute; looks[i] < about*9/10 || looks[i] > about*11/10+time.Second {
			t.Errorf("look %d after %s, want about %s", i+1, looks[i], about)
		}
	}
	d.expect(nothingYet + "False WouldDisrupt").expectEvents()
}

// Nothing of a held change is on the disk: after a restart of the supervisor, or of the host, what ran last is started.
func TestHeldIsNotDurable(t *testing.T) {
	d := newDrive(t, holding).boot().good("good").pass(time.Minute)
	before := fmt.Sprintf("%+v %+v", *d.disk.Assigned, d.disk.LastKnownGood)
	d.kills["one"] = 4
	d.assign("one").pass(time.Minute)
	if after := fmt.Sprintf("%+v %+v", *d.disk.Assigned, d.disk.LastKnownGood); after != before {
		t.Errorf("on disk is %s, was %s", after, before)
	}
	d.fresh().boot().expectDone("start good")
	d.assign("one").pass(time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	t.Run("heard of before the kubelet is started", func(t *testing.T) {
		d.s = New(d.s.Settings)
		d.decide(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "local", BootID: d.bootID})
		d.decide(assigned("one", "1", "one"))
		d.fresh().until("rest", func(do Action) bool { return do == nil })
		d.expectDone("start good", "foresee one").pass(time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	})
	t.Run("a removal that is", func(t *testing.T) {
		d.s = New(d.s.Settings)
		d.kills["local"] = 4
		d.decide(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "local", BootID: d.bootID})
		d.decide(Cleared{NodeUID: "node-uid"})
		d.fresh().until("rest", func(do Action) bool { return do == nil })
		d.expectDone("start good", "foresee local").pass(time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	})
}

func TestTrialGoesOnUnderAHold(t *testing.T) {
	onTrial := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().good("good").assign("one").pass(time.Minute)
		d.kills["good"], d.kills["two"] = 3, 3
		return d.fresh()
	}
	t.Run("a newer one is held, and the older one becomes last known good", func(t *testing.T) {
		d := onTrial(t).assign("two").pass(11 * time.Minute)
		d.expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt")
	})
	t.Run("a newer one is refused, and going back would kill pods", func(t *testing.T) {
		d := onTrial(t).refuse("bad", false).assign("bad").pass(time.Second).expectDone("prove bad", "foresee good")
		d.expect("assigned=one@1 active=one@1 lkg=good@1 False Refused validate config").expectMessage("is refused", "3 of 7", "correct the configuration, or: drain the node")
		d.pass(11 * time.Minute).expect("assigned=bad@1 active=one@1 lkg=one@1 False Refused validate config")
	})
	t.Run("it fails: going back is a rollback, and is never held; then the newer one is looked at again", func(t *testing.T) {
		d := onTrial(t).assign("two").pass(time.Second)
		d.lease["one"] = false
		d.fresh().pass(70 * time.Second)
		if d.did[0] == "foresee two" { // its minute was over before
			d.did = d.did[1:]
		}
		d.expectDone("stop", "start good", "foresee two")
		d.expect("assigned=one@1 active=good@1 lkg=good@1 False WouldDisrupt")
	})
}

// What comes to the same effective configuration restarts nothing, and so nobody looks.
func TestEqualIsNoChange(t *testing.T) {
	d := newDrive(t, holding)
	d.effect["good"], d.effect["shadowed"] = "same", "same"
	d.boot().good("good")
	d.kills["shadowed"] = 4
	d.fresh().assign("shadowed").pass(time.Second).expectDone("prove shadowed").expect("assigned=shadowed@1 active=shadowed@1 lkg=shadowed@1 True Active")
}

func TestHeldEdit(t *testing.T) {
	waiting := func(t *testing.T) *drive {
		d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		d.assign("one", "cm", "1").pass(12*time.Minute).fresh().edit("two", "2")
		return d.expectDone("prove two", "foresee two").pass(2 * time.Second).expect("assigned=two@2 active=one@1 lkg=one@1 Unknown Applying")
	}
	t.Run("at its turn it is looked at again", func(t *testing.T) {
		waiting(t).pass(time.Hour).expectDone("prove two", "foresee two", "foresee two", "stop", "start two")
	})
	t.Run("a hold at its turn gives the pointers back", func(t *testing.T) {
		d := waiting(t)
		d.kills["two"] = 1
		d.pass(time.Hour).expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt")
		if d.disk.Assigned.Content != "one" {
			t.Errorf("on disk is assigned %s", nameOf(d.disk.Assigned))
		}
		d.kills["two"] = 0
		d.pass(3 * time.Hour).expect("assigned=two@2 active=two@2 lkg=two@2 True Active")
	})
	t.Run("nor does a restart of the supervisor, where it goes back to what passed its trial", func(t *testing.T) {
		d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		d.assign("one", "cm", "1").pass(12*time.Minute).edit("two", "2").pass(d.s.ApplyAt - d.now + time.Second).expect("assigned=two@2 active=two@2 lkg=one@1 True InTrial")
		d.edit("one", "3").pass(2 * time.Second).expect("assigned=one@3 active=two@2 lkg=one@3 Unknown Applying")
		d.kills["one"] = 1
		d.fresh().boot().pass(10*time.Second).expectDone("start two", "foresee one").expect("assigned=two@2 active=two@2 lkg=one@3 False WouldDisrupt")
	})
	t.Run("a start that fails after a crash, or at a boot, does not make it", func(t *testing.T) {
		for name, ends := range map[string]func(*drive){
			"crash": func(d *drive) { d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}) },
			"boot":  func(d *drive) { d.bootID = "boot-2"; d.boot() },
		} {
			t.Run(name, func(t *testing.T) {
				d, failures := waiting(t), 2
				d.kills["two"] = 1
				d.starts = func(Start) (Event, bool) {
					failures--
					return Started{Err: errDisk, Delay: time.Second}, failures >= 0
				}
				ends(d.fresh())
				if d.pass(10 * time.Second); d.times("start one") != 3 || d.times("start two") > 0 {
					t.Errorf("done: %q", d.did)
				}
			})
		}
	})
}

func TestNeverHeld(t *testing.T) {
	t.Run("a rollback", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good")
		d.kills["good"], d.deadly["bad"] = 4, time.Second
		d.fresh().assign("bad").pass(time.Minute).expect("assigned=bad@1 active=good@1 lkg=good@1 False Rejected run config")
	})
	t.Run("what takes the place of a kubelet that never was healthy", func(t *testing.T) {
		d := newDrive(t, holding)
		d.hangs[""] = true
		d.boot()
		d.silent = away
		d.assign("one").pass(70*time.Second).fresh().pass(55*time.Second).expectDone("foresee one", "stop", "start one")
	})
	t.Run("but pods that a look has named are kept all the same", func(t *testing.T) {
		d := newDrive(t, holding)
		d.hangs[""] = true
		d.boot()
		d.kills["one"] = 4
		d.fresh().assign("one").pass(70*time.Second).expectDone("prove one", "foresee one", "foresee one")
		if d.fresh().pass(time.Hour); d.times("stop") > 0 {
			t.Errorf("done: %q", d.did)
		}
	})
	t.Run("also where a local kubelet that ran for hours does not start any more", func(t *testing.T) {
		d := newDrive(t, holding).boot().pass(time.Minute)
		d.kills["one"] = 4
		d.assign("one").pass(3 * time.Hour).expect(nothingYet + "False WouldDisrupt")
		d.fresh().hangs[""] = true
		for range 2 * patience * d.s.TrialFailures {
			d.hear(ChildExited{Code: 1, Words: "swap is on", Delay: time.Second}).pass(2 * time.Second)
		}
		if d.times("start one") > 0 {
			t.Errorf("done: %q", d.did)
		}
		delete(d.hangs, "")
		d.hear(ChildExited{Code: 1, Words: "swap is on", Delay: time.Second}).pass(time.Minute).expect(nothingYet + "False WouldDisrupt")
	})
	t.Run("nor is a local one given up that was healthy before", func(t *testing.T) {
		d := newDrive(t, holding).boot().pass(time.Minute)
		d.hangs[""], d.silent = true, away
		for range 4 {
			d.hear(ChildExited{Code: 1, Words: "validate CRI", Delay: time.Second}).pass(2 * time.Second)
		}
		if d.fresh().assign("one").pass(10 * time.Minute); d.times("start one") > 0 {
			t.Errorf("done: %q", d.did)
		}
		for range 10 * d.s.TrialFailures {
			d.hear(ChildExited{Code: 1, Words: "swap is on", Delay: time.Second}).pass(2 * time.Second)
		}
		if d.times("start one") == 0 {
			t.Errorf("what may mend it is never started: %q", d.did)
		}
	})
	t.Run("but a last known good one is kept, however long it takes to get healthy", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good")
		d.hangs["good"] = true
		d.boot().pass(5 * time.Minute)
		d.kills["one"] = 4
		d.fresh().assign("one").pass(10*time.Second).expectDone("prove one", "foresee one")
	})
	t.Run("what takes the place of a kubelet that exits at once", func(t *testing.T) {
		d := newDrive(t, holding)
		d.deadly[""] = 100 * time.Millisecond
		d.boot()
		d.kills["one"] = 4
		d.assign("one").pass(20 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
	t.Run("but one start that fails, of a node that has just booted, lets nothing through", func(t *testing.T) {
		for name, answer := range map[string]Event{
			"no kubelet on the disk":        Started{Err: errDisk, Delay: time.Second},
			"the container runtime is down": ChildExited{Code: 1, Words: "x", RuntimeDown: true, Delay: time.Second},
			"an exit":                       ChildExited{Code: 1, Words: "x", Delay: time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				d := newDrive(t, holding)
				d.kills["one"] = 4
				failed := false
				d.starts = func(Start) (Event, bool) {
					err, is := answer.(Started)
					if !failed && is {
						failed = true
						return err, true
					}
					return nil, false
				}
				d.decide(Booted{Kubelet: testKubelet, Local: "local", BootID: d.bootID})
				d.hear(d.answer(d.s.Doing))
				if _, exits := answer.(ChildExited); exits {
					d.hear(answer)
				}
				d.assign("one").pass(10 * time.Second).expect(nothingYet + "False WouldDisrupt")
			})
		}
	})
	t.Run("with --disruption=allow it is looked at once, and made", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.Disruption = Allow }).boot().fresh()
		d.kills["one"] = 4
		d.assign("one").pass(time.Second).expectDone("prove one", "foresee one", "stop", "start one").expectEvents("KubeletConfigChanged")
	})
}

func TestHeldLocalChange(t *testing.T) {
	d := newDrive(t, holding, func(s *Settings) { s.FollowLocal = true }).boot().good("good")
	d.kills["good"] = 2
	d.fresh().hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(15 * time.Second)
	d.expectDone("prove good", "foresee good", "prove local").expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	d.expectMessage("the change of local files waits: 2 of 7")
	d.kills["good"] = 0
	d.fresh().pass(2*time.Minute).expectDone("foresee good", "stop", "start good")
}

// A look takes time. What happens meanwhile does not wait for it.
func TestWhileALookIsUnderWay(t *testing.T) {
	looking := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().pass(time.Minute).fresh()
		d.decide(assigned("one", "1", "one"))
		d.until("the look", func(do Action) bool { _, is := do.(Foresee); return is })
		return d.fresh()
	}
	late := func(d *drive, do Action) *drive {
		return d.hear(Foreseen{Change: do.(Foresee).Change, Lost: 4, Words: "4 of 7"})
	}
	t.Run("an exit of the kubelet", func(t *testing.T) {
		d := looking(t)
		do := d.s.Doing
		d.hear(ChildExited{Code: 0}).expectDone("start local", "foresee one", "stop", "start one")
		late(d, do).pass(time.Minute).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
	t.Run("another assignment", func(t *testing.T) {
		d := looking(t)
		do := d.s.Doing
		d.hear(assigned("two", "1", "two")).expectDone("prove two", "foresee two", "stop", "start two")
		late(d, do).pass(time.Minute).expect("assigned=two@1 active=two@1 lkg=- True InTrial")
	})
	t.Run("an answer that comes while something else is under way is none", func(t *testing.T) {
		d := looking(t)
		do := d.s.Doing.(Foresee)
		d.decide(assigned("two", "1", "two"))
		for _, is := range []func(Action) bool{
			func(do Action) bool { _, is := do.(Prove); return is }, func(do Action) bool { _, is := do.(Foresee); return is },
		} {
			d.until("the next", is)
			d.decide(Foreseen{Change: do.Change, Lost: 4, Words: "4 of 7"})
			if !is(d.s.Doing) || d.s.Outlook.Lost > 0 {
				t.Errorf("under way is %T, and foreseen %+v", d.s.Doing, d.s.Outlook)
			}
		}
	})
	t.Run("its ConfigMap goes", func(t *testing.T) {
		d := looking(t)
		do := d.s.Doing
		d.hear(gone)
		late(d, do).pass(time.Minute).expect(nothingYet + "False SyncFailed sync: x").expectEvents()
		if d.s.Reset != nil || d.s.Pending != nil {
			t.Errorf("to come are %+v and %+v", d.s.Reset, d.s.Pending)
		}
	})
	t.Run("a request to stop", func(t *testing.T) {
		looking(t).hear(StopAsked{}).expectDone("stop", "exit")
	})
}

// A look that is made again when the removal was taken already, for a person asked for a retry, may hold it after all.
func TestARemovalThatIsHeldAfterAll(t *testing.T) {
	d := newDrive(t, holding).boot().good("good").fresh()
	d.decide(Cleared{NodeUID: "node-uid"})
	d.until("the removal's save", func(do Action) bool {
		save, is := do.(Save)
		return is && save.Durable.Assigned == nil
	})
	d.kills["local"] = 1
	d.decide(Retry{})
	d.hear(d.answer(d.s.Doing)).pass(10 * time.Second)
	d.expectDone("foresee local", "foresee local").expectMessage("1 of 7 running pods would be killed")
	if r, _ := Report(d.s); r.Reason != nodev1.ReasonWouldDisrupt || !d.s.runs(version("good", "1", "good")) {
		t.Errorf("runs %s: %s", nameOf(d.s.Child.Version), d.shown())
	}
	d.kills["local"] = 0
	d.pass(10 * time.Minute).expect("assigned=- active=- lkg=- True Local")
}
