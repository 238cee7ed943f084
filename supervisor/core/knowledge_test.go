package core

import (
	"reflect"
	"testing"
	"time"
)

// A start that fails, for the kubelet's sake and not for its configuration's.
func TestStartsThatFail(t *testing.T) {
	for _, row := range []struct {
		name    string
		given   func(d *drive)
		answer  Started
		done    []string
		says    string
		account string
	}{
		{"there is no kubelet", func(*drive) {}, Started{Err: errDisk, Delay: 10 * time.Second}, []string{"start local"},
			"using current (default); no space left on device; fix the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration", "none"},
		{"nor a file of local, which has none", func(*drive) {}, Started{Err: errDisk, Unrenderable: true, Delay: 10 * time.Second}, []string{"start local"},
			"using current (default); no space left on device; fix the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration", "none"},
		{"none for one on trial", func(d *drive) { d.assign("good") }, Started{Err: errDisk, Delay: 10 * time.Second}, []string{"start good"},
			`using current (UID: "uid-of-cm"); no space left on device; fix the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration`,
			"good with binary-1: try 0, the Lease was renewed before, renewed it"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute)
			row.given(d)
			d.pass(time.Minute).fresh()
			d.starts = func(Start) (Event, bool) { return row.answer, true }
			d.hear(ChildExited{}).pass(9 * time.Second).expectDone(row.done...).says(row.says).expectAccount(row.account)
			d.pass(2 * time.Second).expectDone(append(row.done, row.done...)...)
			d.starts = nil
			d.fresh().pass(10 * time.Second).expectDone(row.done...).hangs[""], d.hangs["good"] = true, true
			d.hear(Unhealthy{Words: "no answer"}).pass(2 * time.Second).expectMessage("; no space left on device; ")
		})
	}
	t.Run("a file that cannot be made gives its try back", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.startErr = map[string]error{"good": errDisk}
		d.hangs[""] = true
		d.decide(assigned("good", "1", "good"))
		d.until("the start of local", func(do Action) bool { start, is := do.(Start); return is && start.Version == nil })
		d.expectDone("prove good", "stop", "start good").expectAccount("none")
		if d.s.Exit != "" || d.s.Environment != "" || d.s.Child.Words != errDisk.Error() {
			t.Errorf("%q, %q, %q", d.s.Exit, d.s.Environment, d.s.Child.Words)
		}
	})
}

// What comes when nothing was asked for, or for a kubelet that is no more, changes nothing.
func TestTooLate(t *testing.T) {
	begin := func(t *testing.T) *drive { return newDrive(t).boot().good("good").fresh() }
	for name, event := range map[string]Event{
		"a write that failed":  Saved{Err: errDisk},
		"a start":              Started{},
		"a start that failed":  Started{Err: errDisk},
		"health, told twice":   Healthy{},
		"that nothing is down": Ticked{},
	} {
		t.Run(name, func(t *testing.T) {
			d := begin(t)
			before := d.s
			d.decide(event)
			if !reflect.DeepEqual(d.s, before) || d.step.Do != nil {
				t.Errorf("%+v\nbefore\n%+v", d.s, before)
			}
		})
	}
	t.Run("health of a kubelet that is no more", func(t *testing.T) {
		d := begin(t).hear(ChildExited{Code: 1, Words: "no runtime", RuntimeDown: true, Delay: time.Hour}).hear(Healthy{}).pass(2 * time.Second)
		d.expect("assigned=good@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing").expectMessage("; no runtime; ")
		if d.s.Child.Healthy || d.s.Child.EverHealthy {
			t.Error("what does not run is healthy")
		}
	})
	t.Run("health told twice is one stretch of it", func(t *testing.T) {
		d := newDrive(t).boot()
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(9 * time.Second).hear(Healthy{}).pass(6 * time.Second).expect("assigned=bad@1 active=- lkg=- False Rejected run config")
	})
}

// When something is written: at once what decides, trial time every half minute, and after a failure every ten seconds.
func TestWrites(t *testing.T) {
	for _, row := range []struct {
		name string
		when func(d *drive)
		want []time.Duration // since then
	}{
		{"nothing at a start that changes nothing", func(d *drive) { d.good("good").fresh().boot().pass(time.Hour) }, nil},
		{"trial time", func(d *drive) { d.assign("good").fresh().pass(100 * time.Second) },
			[]time.Duration{8 * time.Second, 10300 * time.Millisecond, 10300 * time.Millisecond, 40300 * time.Millisecond, 70300 * time.Millisecond}},
		{"of a trial that went on", func(d *drive) {
			d.assign("good").pass(time.Minute).fresh()
			d.s = New(d.s.Settings)
			d.hear(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "local", BootID: "boot-1"}).pass(45 * time.Second)
		}, []time.Duration{0, 10300 * time.Millisecond, 40300 * time.Millisecond}},
		{"onto a full disk", func(d *drive) {
			d.assign("good").pass(30 * time.Second).fresh().saveErr = errDisk
			d.pass(45 * time.Second)
		},
			[]time.Duration{10300 * time.Millisecond, 20300 * time.Millisecond, 30300 * time.Millisecond, 40300 * time.Millisecond}},
		{"a trial whose time stands still", func(d *drive) { d.hangs["slow"] = true; d.assign("slow").fresh().pass(100 * time.Second) }, []time.Duration{8 * time.Second}},
		{"outside a trial", func(d *drive) { d.good("good").fresh().pass(time.Hour) }, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(61 * time.Second)
			row.when(d)
			var got []time.Duration
			for _, at := range d.saves {
				got = append(got, at-d.began)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("written after %s, want %s", got, row.want)
			}
			if d.saveErr == nil && !reflect.DeepEqual(significant(d.disk), significant(d.s.durable())) {
				t.Errorf("on disk: %+v\n   want: %+v", d.disk, d.s.durable())
			}
			if d.saveErr == nil && d.s.OnTrial() && d.s.Trial.Healthy-d.disk.Trial.Healthy > Span(persistInterval) {
				t.Errorf("on disk are %s of health, in truth %s", d.disk.Trial.Healthy, d.s.Trial.Healthy)
			}
		})
	}
	t.Run("a state folder that can be used again is tried though there is nothing to write", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		disk := d.disk
		d.s = New(d.s.Settings)
		d.hear(Booted{Disk: disk, Kubelet: testKubelet, Local: "local", BootID: "boot-1", Useless: "not a folder"}).pass(9 * time.Second)
		d.expect("assigned=good@1 active=good@1 lkg=good@1 False InternalError").pass(2 * time.Second).expect(goodActive)
		if len(d.saves) != 1 || !reflect.DeepEqual(d.disk, disk) {
			t.Errorf("on disk: %+v\n   want: %+v", d.disk, disk)
		}
	})
}

// When there is something to tell: a change is told when it is over, or when it has taken a second.
func TestWhenThereIsSomethingToTell(t *testing.T) {
	due := func(d *drive) bool { _, is := Report(d.s); return is }
	t.Run("an assignment that is being written is a change", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(assigned("newer", "1", "newer"))
		if due(d) || d.step.Wake != d.now+time.Second {
			t.Errorf("due: %t, wakes after %s", due(d), d.step.Wake-d.now)
		}
		d.now += time.Second - 1
		if d.decide(Ticked{}); due(d) {
			t.Error("due before its second is over")
		}
		d.now++
		if d.decide(Ticked{}); !due(d) {
			t.Error("not due after its second")
		}
	})
	t.Run("a pre-flight of changed files is none", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(LocalChanged{Kubelet: testKubelet, Local: "edited"})
		d.until("the pre-flight", func(do Action) bool { _, is := do.(Prove); return is })
		d.expect(goodActive)
	})
	t.Run("a stop is told at once", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(StopAsked{})
		d.expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Stopped")
	})
	t.Run("in a change, too", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(assigned("newer", "1", "newer"))
		d.decide(StopAsked{})
		d.expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Stopped")
	})
	t.Run("what failed is not said to fail while it is tried again", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		for range 5 {
			d.hear(ChildExited{Code: 1, Words: "boom"})
		}
		d.pass(time.Minute).expect("assigned=good@1 active=- lkg=good@1 False LastKnownGoodFailed run config").decide(Retry{})
		d.until("the pre-flight", func(do Action) bool { _, is := do.(Prove); return is })
		d.now += 2 * time.Second
		d.decide(Ticked{})
		d.expect("assigned=good@1 active=- lkg=good@1 Unknown Applying")
	})
	t.Run("the last known good one has not failed for good before local runs", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.ownLooks, d.s = true, New(d.s.Settings)
		d.hear(Booted{Disk: d.disk, Kubelet: newerKubelet, Local: "local"}).pass(time.Second).hear(LeaseSeen{Reachable: true}).pass(time.Minute)
		d.decide(LeaseSeen{Reachable: true})
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.now += 2 * time.Second
		d.decide(Ticked{})
		d.expect("assigned=good@1 active=good@1 lkg=good@1 False RolledBack run config")
	})
	t.Run("nothing before the disk was read", func(t *testing.T) {
		d := newDrive(t)
		d.decide(StopAsked{})
		d.expect("(nothing yet)")
	})
	t.Run("a kubelet that hangs is told while it is ended", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(Hung{Words: "no watchdog ping"})
		d.now += time.Second
		d.decide(Ticked{})
		d.expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Applying").expectMessage("; no watchdog ping; wait")
	})
	t.Run("what runs meanwhile is what is told", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.hangs["slow"] = true
		d.assign("slow").pass(time.Minute).decide(assigned("newer", "1", "newer"))
		d.until("the pre-flight", func(do Action) bool { _, is := do.(Prove); return is })
		d.now += time.Second
		d.decide(Ticked{})
		d.says(`using last-known-good (UID: "uid-of-cm"); the kubelet is not healthy yet; wait, or see the kubelet's log`)
	})
}

// What a Node shows of sources, in upstream's form.
func TestSourcesShown(t *testing.T) {
	d := newDrive(t).boot().good("good").refuse("bad", true).assign("bad").pass(time.Second)
	r, _ := Report(d.s)
	if c := r.Config; c.Assigned.ConfigMap.Name != "bad" || c.Active.ConfigMap.Name != "good" || *c.LastKnownGood.ConfigMap != version("good", "1", "good").Source {
		t.Errorf("%+v", r.Config)
	}
	d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second)
	if r, _ := Report(d.s); r.Config != (nodeConfig(&newDrive(t).s)) {
		t.Errorf("%+v", r.Config)
	}
}

// Rows of the condition that take more than one fault to come to.
func TestFindings(t *testing.T) {
	for _, row := range []struct {
		name  string
		when  func(d *drive)
		shown string
		says  string
	}{
		{"local is not healthy for a while", func(d *drive) { d.hangs[""] = true; d.hear(Unhealthy{Words: "no answer"}) },
			"assigned=- active=- lkg=- Unknown EnvironmentFailing", "using current (default); no answer; see the kubelet's log"},
		{"local is not healthy yet", func(d *drive) { d.hangs[""] = true; d.hear(ChildExited{}) },
			"assigned=- active=- lkg=- Unknown Applying", "using current (default); the kubelet is not healthy yet; wait, or see the kubelet's log"},
		{"an assigned one has crashed", func(d *drive) { d.good("good").hear(ChildExited{Code: 1, Words: "boom", Delay: time.Hour}) },
			"assigned=good@1 active=good@1 lkg=good@1 Unknown Applying", `using current (UID: "uid-of-cm"); boom; it is restarted automatically`},
		{"a suspect of another kubelet says nothing of the environment", func(d *drive) {
			d.good("good")
			d.s.Suspects = []Suspect{{Version: *version("bad", "1", "bad"), Kubelet: newerKubelet, Excused: true, Words: "x"}}
		}, goodActive, `using current (UID: "uid-of-cm"); the assigned configuration passed its trial`},
		{"a reset waits for local", func(d *drive) {
			d.good("good").refuse("broken", false).hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).pass(time.Minute).hear(Cleared{NodeUID: "node-uid"})
		}, "assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken",
			`using current (UID: "uid-of-cm"); the reset to the local configuration waits: the local configuration would be refused: the kubelet says no; correct the local configuration`},
		{"a reset waits for a verdict", func(d *drive) {
			d.assign("good").pass(time.Second).decide(Cleared{NodeUID: "node-uid"})
			d.until("the pre-flight", func(do Action) bool { _, is := do.(Prove); return is })
			d.now += 2 * time.Second
			d.decide(Ticked{})
			d.expect("assigned=good@1 active=good@1 lkg=- Unknown Applying").says(`using current (UID: "uid-of-cm"); the reset to the local configuration is under way`)
			d.hear(d.answer(d.s.Doing))
		}, nothing, "using current (default); nothing is assigned"},
		{"both checkpoints cannot be read", func(d *drive) {
			d.good("good")
			d.disk.Assigned, d.disk.LastKnownGood = &Version{Source: d.disk.Assigned.Source}, &Version{Source: d.disk.Assigned.Source}
			d.boot()
		}, "assigned=@1 active=- lkg=@1 False LastKnownGoodFailed load config",
			"using last-known-good (default); kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1): its checkpoint cannot be read; assign a good configuration"},
		{"the time of a trial that is not healthy is not full", func(d *drive) {
			d.online = false
			d.assign("good").pass(11 * time.Minute).expectMessage("which it has had")
			d.hear(ChildExited{})
		}, inTrial, `using current (UID: "uid-of-cm"); the assigned configuration is on trial for 10m0s of health, which it has had; ` +
			"it becomes the last known good one when the API server is in reach and its Lease was seen to be renewed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute)
			row.when(d)
			d.pass(2 * time.Second).expect(row.shown).says(row.says)
		})
	}
	t.Run("a trial whose time is full to the moment", func(t *testing.T) {
		d := newDrive(t).boot()
		d.online = false
		d.assign("good").pass(time.Minute).s.Trial.Healthy = Span(testSettings.TrialPeriod)
		d.expectMessage("which it has had")
	})
	if got := (&State{Doing: Start{}}).Phase(); got != "Starting" {
		t.Errorf("a start is %s", got)
	}
}
