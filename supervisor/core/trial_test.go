package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

func standalone(s *Settings) { s.Standalone = true }

// How the time of a trial is counted, and when it is over (rules 7 and 8).
func TestTrialTime(t *testing.T) {
	const rolledBack = "assigned=good@1 active=- lkg=- False RolledBack run config"
	unhealthy := func(d *drive, span time.Duration) {
		d.hangs["good"] = true
		d.hear(Unhealthy{Words: "healthz does not answer"}).pass(span)
		delete(d.hangs, "good")
	}
	for _, row := range []struct {
		name     string
		settings func(*Settings)
		when     func(d *drive)
		shown    string
	}{
		{"it begins with health, and is over to the moment", standalone, func(d *drive) {
			d.assign("good").pass(healthyAfter + 10*time.Minute - time.Millisecond).expect(inTrial).pass(time.Millisecond)
		}, goodActive},
		{"unhealthy time does not count", standalone, func(d *drive) {
			d.assign("good").pass(5 * time.Minute)
			unhealthy(d, time.Minute)
			d.pass(5 * time.Minute).expect(inTrial).pass(time.Second)
		}, goodActive},
		{"unhealthy for two minutes altogether rolls back", standalone, func(d *drive) {
			d.assign("good").pass(time.Minute)
			unhealthy(d, time.Minute)
			d.pass(time.Minute)
			unhealthy(d, time.Minute-time.Millisecond)
			d.expectEvents("KubeletConfigChanged").pass(time.Second).expect(inTrial)
			d.expectAccount("good with binary-1: try 1, open since boot-1, was healthy, unhealthy for 1m59.999s")
			unhealthy(d, time.Millisecond)
			d.pass(5 * time.Second).expectMessage("unhealthy for 2m0s altogether: healthz does not answer")
		}, rolledBack},
		{"also when health comes back in that very moment", standalone, func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.hangs["good"] = true
			d.hear(Unhealthy{Words: "no answer"}).pass(2*time.Minute - time.Millisecond)
			d.now += time.Millisecond
			d.hear(Healthy{}).pass(5 * time.Second)
			d.says("using last-known-good (default); kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1) unhealthy for 2m0s altogether; correct the configuration")
		}, rolledBack},
		{"time before the first renewal does not count, the API server being in reach", nil, func(d *drive) {
			d.ownLooks = true
			d.assign("good").pass(10 * time.Second).hear(LeaseSeen{Reachable: true}).pass(40 * time.Second)
			for range 59 {
				d.hear(LeaseSeen{Reachable: true, Renewed: true}).pass(10 * time.Second)
			}
			d.hear(LeaseSeen{Reachable: true, Renewed: true}).pass(10*time.Second - time.Millisecond)
		}, inTrial},
		{"time after the last renewal counts for as long as a Lease may go without", nil, func(d *drive) {
			d.ownLooks = true
			d.assign("good").pass(10 * time.Second).hear(LeaseSeen{Reachable: true, Renewed: true}).pass(time.Minute - time.Millisecond).hear(Ticked{})
			if got := d.s.Trial.Healthy; got != Span(time.Minute-time.Millisecond) {
				d.t.Errorf("%s of health", got)
			}
			if d.pass(time.Millisecond); d.s.Trial.Healthy != Span(time.Minute-time.Millisecond) {
				d.t.Errorf("%s of health at the limit", d.s.Trial.Healthy)
			}
			d.pass(30 * time.Minute)
		}, inTrial},
		{"it is not over while the kubelet is unhealthy", nil, func(d *drive) {
			d.online = false
			d.assign("good").pass(11 * time.Minute)
			d.hangs["good"] = true
			d.online = true
			d.hear(Unhealthy{Words: "x"}).hear(LeaseSeen{Reachable: true, Renewed: true}).pass(2 * time.Second).expectEvents("KubeletConfigChanged")
			delete(d.hangs, "good")
			d.pass(lookRetryMost)
		}, goodActive},
		{"its end is a deadline", standalone, func(d *drive) {
			d.assign("good").pass(591 * time.Second)
			if got := d.step.Wake - d.now; got != 9*time.Second+healthyAfter {
				d.t.Errorf("wakes after %s", got)
			}
		}, inTrial},
		{"so is the end of patience", standalone, func(d *drive) {
			d.assign("good").pass(time.Minute)
			unhealthy(d, 110*time.Second)
			if got := d.step.Wake - d.now; got != 10*time.Second {
				d.t.Errorf("wakes after %s", got)
			}
			d.hear(Healthy{})
		}, inTrial},
	} {
		t.Run(row.name, func(t *testing.T) {
			changes := []func(*Settings){}
			if row.settings != nil {
				changes = append(changes, row.settings)
			}
			d := newDrive(t, changes...).boot().pass(time.Minute).fresh()
			row.when(d)
			d.expect(row.shown)
		})
	}
}

// The account of the trial: whose it is, and what of it is on the disk before a kubelet is started (rule 10).
func TestTrialAccount(t *testing.T) {
	boot := func(t *testing.T) *drive { return newDrive(t).boot().pass(time.Minute) }
	crash := ChildExited{Code: 1, Words: "boom"}
	starting := func(do Action) bool { _, is := do.(Start); return is }
	stopping := func(do Action) bool { _, is := do.(Stop); return is }
	saving := func(kubelet kubeletconfig.Identity) func(do Action) bool {
		return func(do Action) bool { save, is := do.(Save); return is && save.Durable.Trial.Kubelet == kubelet }
	}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want string
	}{
		{"the try is on the disk before the old kubelet is ended", func(d *drive) {
			d.decide(assigned("young", "1", "young"))
			d.until("the stop", stopping)
		}, "young with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		{"each start is a try, the longest life is kept", func(d *drive) {
			d.assign("young").pass(time.Second).hear(crash).pass(5 * time.Second).hear(crash).pass(2 * time.Second)
		}, "young with binary-1: try 3, open since boot-1, the Lease was renewed before, lived 5s"},
		{"another configuration has an account of its own", func(d *drive) {
			d.assign("old").pass(time.Minute).hear(crash).decide(assigned("young", "1", "young"))
			d.until("the start", starting)
		}, "young with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		{"so has another kubelet", func(d *drive) {
			d.assign("young").pass(time.Minute).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).decide(crash)
			d.until("the start", starting)
		}, "young with binary-2: try 1, open since boot-1, the Lease was renewed before"},
		{"nothing is left of it once the last known good one runs", func(d *drive) {
			d.good("good").assign("young").pass(time.Minute).assign("good").pass(time.Minute)
		}, "none"},
		{"nor once local runs", func(d *drive) {
			d.assign("young").pass(time.Minute).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		}, "none"},
		{"nor after a rollback", func(d *drive) {
			d.hangs["young"] = true
			d.assign("young").pass(3 * time.Minute)
		}, "none"},
		{"what runs earns nothing for another whose try is being written", func(d *drive) {
			d.decide(assigned("young", "1", "young"))
			d.until("the write", saving(testKubelet))
			d.now += 5 * time.Second
			d.decide(LeaseSeen{Reachable: true, Renewed: true})
			d.until("the stop", stopping)
			if d.disk.Trial.Healthy > 0 {
				d.t.Errorf("healthy for %s", d.disk.Trial.Healthy)
			}
		}, "young with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		{"nor for itself with another kubelet", func(d *drive) {
			d.s.FollowLocal = true
			d.good("good").decide(LocalChanged{Kubelet: newerKubelet, Local: "local"})
			d.until("the write", saving(newerKubelet))
			d.now += 5 * time.Second
			d.decide(LeaseSeen{Reachable: true, Renewed: true})
			d.until("the stop", stopping)
			if d.disk.Trial.Healthy > 0 {
				d.t.Errorf("healthy for %s", d.disk.Trial.Healthy)
			}
		}, "good with binary-2: try 1, open since boot-1, the Lease was renewed before"},
		{"back to what runs while a try of another is being written: its account is opened anew", func(d *drive) {
			d.assign("young").pass(time.Second).decide(assigned("newer", "1", "newer"))
			d.until("the write", func(do Action) bool { save, is := do.(Save); return is && save.Durable.Trial.Content == "newer" })
			d.decide(assigned("young", "1", "young"))
			d.hear(Saved{})
		}, "young with binary-1: try 1, open since boot-1, the Lease was renewed before"},
		{"an asked stop gives a try back that was written and not made", func(d *drive) {
			d.decide(assigned("young", "1", "young"))
			d.until("the write", func(do Action) bool { save, is := do.(Save); return is && save.Durable.Trial.Open })
			d.disk = d.s.Doing.(Save).Durable
			d.decide(StopAsked{})
			d.hear(Saved{}).expectDone("prove young", "stop", "exit")
		}, "young with binary-1: try 0, the Lease was renewed before"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := boot(t).fresh()
			row.when(d)
			d.expectAccount(row.want)
			if got := account(d.disk.Trial); got != row.want {
				t.Errorf("on disk: %s\n   want: %s", got, row.want)
			}
		})
	}
}

// What a failed trial says, and what is kept of it until its control has spoken (rule 8).
func TestFailedTrials(t *testing.T) {
	suspect := func(cause Cause, life time.Duration, words string) []Suspect {
		return []Suspect{{Version: *version("bad", "1", "bad"), Kubelet: testKubelet, Cause: cause, Life: Span(life), Words: words}}
	}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want []Suspect
	}{
		{"exits", func(d *drive) {
			d.assign("bad")
			for _, life := range []time.Duration{3 * time.Second, 30 * time.Second, time.Second} {
				d.pass(life).hear(ChildExited{Code: 1, Words: "boom"})
			}
		}, []Suspect{{Version: *version("bad", "1", "bad"), Kubelet: testKubelet, Cause: Exited, Life: Span(30 * time.Second),
			Words: "exited 3 times in its trial: boom", Times: 3, ExitCode: 1}}},
		{"never healthy", func(d *drive) { d.hangs["bad"] = true; d.assign("bad").pass(2 * time.Minute) },
			suspect(StartTimeout, 2*time.Minute, "not healthy within 2m0s of its start")},
		{"never healthy, and why", func(d *drive) {
			d.hangs["bad"] = true
			d.assign("bad").hear(Unhealthy{Words: "connection refused"}).pass(2 * time.Minute)
		}, suspect(StartTimeout, 2*time.Minute, "not healthy within 2m0s of its start: connection refused")},
		{"a start that failed lived longer", func(d *drive) {
			d.assign("bad").pass(5 * time.Minute).hear(ChildExited{Code: 1, Words: "boom"})
			d.hangs["bad"] = true
			d.hear(ChildExited{Code: 1, Words: "boom"}).pass(2 * time.Minute)
		}, suspect(StartTimeout, 5*time.Minute, "not healthy within 2m0s of its start")},
		{"it lost its Lease", func(d *drive) { d.lease["bad"] = false; d.assign("bad").pass(time.Minute + time.Millisecond) },
			suspect(LeaseLost, time.Minute, "healthy, but its Lease was not renewed for 1m0s although the API server is in reach: the kubelet has lost the node")},
		{"while another is being proved: told once", func(d *drive) {
			d.hangs["bad"] = true
			d.assign("bad").pass(119 * time.Second).decide(assigned("better", "1", "better"))
			d.until("the pre-flight", func(do Action) bool { _, is := do.(Prove); return is })
			for range 3 {
				d.now += time.Second
				d.decide(Ticked{})
			}
			d.hear(d.answer(d.s.Doing)).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigChanged").
				expectDone("prove bad", "stop", "start bad", "prove better", "stop", "start better")
		}, suspect(StartTimeout, 2*time.Minute, "not healthy within 2m0s of its start")},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute - time.Second).fresh()
			row.when(d)
			if !reflect.DeepEqual(d.disk.Suspects, row.want) {
				t.Errorf("on disk: %+v\n   want: %+v", d.disk.Suspects, row.want)
			}
		})
	}
}

// Nobody is blamed for the time in which the kubelet is being ended, or may not be touched.
func TestNoTrialWhileItEnds(t *testing.T) {
	for name, end := range map[string]func(d *drive){
		"the host shuts down":   func(d *drive) { d.hear(HostStopping{}) },
		"it hangs and is ended": func(d *drive) { d.decide(Hung{Words: "hung"}) },
		"a stop waits for a write": func(d *drive) {
			d.decide(Retry{Value: "x"})
			d.decide(StopAsked{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).assign("young").pass(time.Minute).fresh()
			d.decide(Unhealthy{Words: "x"})
			end(d)
			for range 60 {
				d.now += 5 * time.Second
				d.decide(Ticked{})
			}
			d.expectEvents()
		})
	}
}

// A start whose end was not recorded is held against what it was a start of.
func TestAnOpenStartIsOfWhom(t *testing.T) {
	t.Run("the last known good one, on trial with another kubelet, while a refused one is assigned", func(t *testing.T) {
		d := newDrive(t).boot().good("good").refuse("bad", false).assign("bad").pass(time.Minute)
		d.hangs["good"] = true
		for range 4 {
			d.s = New(d.s.Settings)
			d.hear(Booted{Disk: d.disk, Kubelet: newerKubelet, Local: "local", BootID: "boot-1"})
		}
		d.pass(time.Second)
		if x := d.disk.Suspects; len(x) != 1 || x[0].Version.Content != "good" || x[0].Kubelet != newerKubelet {
			t.Errorf("on disk: %+v", x)
		}
		if d.s.Child.Version != nil {
			t.Errorf("runs %s", nameOf(d.s.Child.Version))
		}
	})
	t.Run("nothing that is known", func(t *testing.T) {
		d := newDrive(t)
		d.disk.Trial = Trial{Content: "gone", Kubelet: testKubelet, Tries: 3, Open: true}
		d.boot().expectDone("start local").expectEvents().expectAccount("none")
	})
	t.Run("nobody, where the start was given back", func(t *testing.T) {
		d := newDrive(t).boot().assign("young").pass(time.Second).hear(StopAsked{})
		d.hangs["young"] = true
		d.boot().pass(time.Second).says(`using current (UID: "uid-of-cm"); the kubelet is not healthy yet; wait, or see the kubelet's log`)
	})
}

func TestPauses(t *testing.T) {
	for times, want := range map[int]time.Duration{0: 0, 1: 0, 2: 30 * time.Second, 3: time.Minute, 7: 16 * time.Minute, 8: 30 * time.Minute, 1000: 30 * time.Minute} {
		if got := (Excuses{Times: times}).pause(); got != want {
			t.Errorf("after %d excuses %s, want %s", times, got, want)
		}
	}
}

// Nothing of a trial, of a failure or of what was in the way is left on the disk after a promotion.
func TestTheDiskAfterAPromotion(t *testing.T) {
	d := newDrive(t)
	d.cluster = []string{"key"}
	d.disk.Excuses, d.disk.Asides = Excuses{"good", 3}, []Aside{{BootID: "boot-1"}}
	d.boot().pass(time.Minute).assign("good")
	d.s.Excuses = Excuses{"good", 3} // tried again
	d.pass(11 * time.Minute).expect(goodActive)
	good := version("good", "1", "good")
	want := Durable{Assigned: good, LastKnownGood: good, Proofs: d.disk.Proofs, Account: Account{Active: good, Text: "kube-system/good/kubelet",
		NodeUID: "node-uid", Cluster: []string{"key"}, Renews: true, Before: Conditions{Known: true}, Promoted: Promotion{Content: "good", Kubelet: testKubelet}}}
	if !reflect.DeepEqual(d.disk, want) {
		t.Errorf("on disk: %+v\n   want: %+v", d.disk, want)
	}
}
