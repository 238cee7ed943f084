package core

import (
	"testing"
	"time"
)

// What an end of the kubelet that nobody asked for leads to.
func TestExits(t *testing.T) {
	for _, row := range []struct {
		name  string
		given func(d *drive)
		when  func(d *drive)
		done  []string
		says  string
	}{
		{"a clean one after health is followed by a start at once", nil,
			func(d *drive) { d.hear(ChildExited{Words: "exit code 0", Delay: time.Minute}).pass(time.Second) },
			[]string{"start local"}, "using current (default); nothing is assigned"},
		{"a clean one before any health is not",
			func(d *drive) { d.hangs["slow"] = true; d.assign("slow").pass(time.Second) },
			func(d *drive) {
				d.hear(ChildExited{Words: "exit code 0", Delay: 10 * time.Second}).pass(9 * time.Second)
				d.says(`using current (UID: "uid-of-cm"); exit code 0; it is restarted automatically`).expectDone().pass(time.Second)
			},
			[]string{"start slow"}, `using current (UID: "uid-of-cm"); the kubelet is not healthy yet; wait, or see the kubelet's log`},
		{"a clean one leaves nothing of the crash before it", nil,
			func(d *drive) {
				d.hear(ChildExited{Code: 1, Words: "exit code 1: boom"}).pass(5 * time.Second)
				d.hangs[""] = true
				d.hear(ChildExited{Words: "exit code 0"}).pass(5 * time.Second)
			},
			[]string{"start local", "start local"}, "using current (default); the kubelet is not healthy yet; wait, or see the kubelet's log"},
		{"a crash is followed by a start after its pause", nil,
			func(d *drive) {
				d.hear(ChildExited{Code: 1, Words: "exit code 1: boom", Delay: 10 * time.Second}).pass(9 * time.Second)
				d.says("using current (default); exit code 1: boom; see the kubelet's log").expectDone().pass(time.Second)
			},
			[]string{"start local"}, "using current (default); exit code 1: boom; see the kubelet's log"},
		{"an end of nobody changes nothing", nil,
			func(d *drive) {
				d.hear(ChildExited{Code: 1, Words: "exit code 1: boom", Delay: 10 * time.Second})
				d.hear(ChildExited{Code: 1, Words: "too late", Delay: time.Hour}).pass(9 * time.Second)
				d.says("using current (default); exit code 1: boom; see the kubelet's log").pass(time.Second)
			},
			[]string{"start local"}, "using current (default); exit code 1: boom; see the kubelet's log"},
		{"one in the host's shutdown has no pause when that is called off, and no words",
			func(d *drive) { d.assign("good").pass(time.Minute) },
			func(d *drive) {
				d.hear(HostStopping{}).hear(ChildExited{Code: -1, Words: "signal: terminated", Delay: time.Hour})
				d.expectDone().expectAccount("good with binary-1: try 0, the Lease was renewed before, renewed it")
				if got := account(d.disk.Trial); got != account(d.s.Trial) {
					d.t.Errorf("on disk: %s", got)
				}
				d.hear(HostStopping{CalledOff: true}).pass(time.Second)
			},
			[]string{"start good"}, `using current (UID: "uid-of-cm"); the assigned configuration is on trial for 10m0s of health`},
		{"whatever they are, those that blame the container runtime count for nobody",
			func(d *drive) { d.good("good") },
			func(d *drive) {
				for range 6 {
					d.hear(ChildExited{Code: 1, Words: "no runtime", RuntimeDown: true}).pass(10 * time.Millisecond)
				}
			},
			[]string{"start good", "start good", "start good", "start good", "start good", "start good"},
			`using current (UID: "uid-of-cm"); no runtime; fix the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration`},
		{"the fifth within 10 min falls back; at ten minutes to the dot, too",
			func(d *drive) { d.good("good") },
			func(d *drive) {
				for range 5 {
					d.hear(ChildExited{Code: 1, Words: "boom"}).pass(150 * time.Second)
				}
			},
			[]string{"start good", "start good", "start good", "start good", "start local"},
			`using last-known-good (default); kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1) exited 5 times in 10m0s: boom; assign a good configuration`},
		{"five in more than that do not",
			func(d *drive) { d.good("good") },
			func(d *drive) {
				for range 5 {
					d.hear(ChildExited{Code: 1, Words: "boom"}).pass(150*time.Second + time.Millisecond)
				}
			},
			[]string{"start good", "start good", "start good", "start good", "start good"},
			`using current (UID: "uid-of-cm"); the assigned configuration passed its trial`},
		{"those before a promotion are not counted after it",
			func(d *drive) {
				d.s.TrialPeriod = time.Minute
				for range 4 {
					d.hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Second)
				}
				d.assign("good").pass(2 * time.Minute).expect(goodActive)
			},
			func(d *drive) { d.hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Minute) },
			[]string{"start good"}, `using current (UID: "uid-of-cm"); the assigned configuration passed its trial`},
		{"a person's retry begins the count anew",
			func(d *drive) {
				d.good("good")
				for range 4 {
					d.hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Second)
				}
				d.hear(Retry{})
			},
			func(d *drive) { d.hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Minute) },
			[]string{"start good"}, `using current (UID: "uid-of-cm"); the assigned configuration passed its trial`},
		{"three clean ones a minute to the dot are a failure", nil,
			func(d *drive) {
				for range 2 {
					d.hear(ChildExited{Words: "exit code 0"}).pass(30 * time.Second)
				}
				d.hear(ChildExited{Words: "exit code 0"}).pass(999 * time.Millisecond)
			},
			[]string{"start local", "start local"}, "using current (default); exit code 0, 3 times within 1m0s; see the kubelet's log"},
		{"what could not be rendered is tried again once the kubelet has to be started anyway",
			func(d *drive) {
				d.startErr = map[string]error{"spoilt": errDisk}
				d.assign("spoilt").pass(time.Minute).expect("assigned=spoilt@1 active=- lkg=- False InternalError load config")
				d.startErr = nil
			},
			func(d *drive) { d.hear(ChildExited{Words: "exit code 0"}).pass(time.Second) },
			[]string{"start spoilt"}, `using current (UID: "uid-of-cm"); the assigned configuration is on trial for 10m0s of health`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute)
			if row.given != nil {
				row.given(d)
			}
			d.fresh()
			row.when(d)
			d.expectDone(row.done...).says(row.says)
		})
	}
}

// A start that is given back is closed: what the next one did not live to have is not counted for it.
func TestWhatARefundLeaves(t *testing.T) {
	for name, exit := range map[string]ChildExited{
		"a clean exit":                {Words: "exit code 0"},
		"a state file in the way":     {Code: 1, Words: "refused", StateFile: stateFileName},
		"no container runtime":        {Code: 1, Words: "no runtime", RuntimeDown: true},
		"no lock":                     {Code: 1, Words: "unable to acquire file lock", LockDenied: true},
		"a crash, which is not given": {Code: 1, Words: "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t).boot().assign("good").pass(time.Minute)
			d.hangs["good"] = true
			d.hear(exit).pass(time.Second)
			before := d.s.Trial.Tries
			d.boot()
			if after := d.s.Trial.Tries; after != before+1 {
				t.Errorf("a start that was not healthy before its end made %d tries of %d", after, before)
			}
		})
	}
	t.Run("a start that was healthy once is given back, however it was in the end", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Minute)
		d.hangs["good"] = true
		d.hear(Unhealthy{Words: "x"}).pass(time.Second).boot()
		d.expectAccount("good with binary-1: try 1, open since boot-1, the Lease was renewed before, renewed it")
	})
}

// A promoted configuration that is blamed for what others did is tried again where local cannot run at all: they take turns, and nobody waits for
// a health that never comes.
func TestWhatIsExcusedTakesTurnsWithALocalThatNeverRuns(t *testing.T) {
	local := func(d *drive, e ChildExited) {
		d.hangs[""] = true
		for range 10 {
			if d.s.Child.Version == nil {
				d.hear(e).pass(11 * time.Second)
			}
		}
	}
	for name, fails := range map[string]func(d *drive){
		"it exits": func(d *drive) { local(d, ChildExited{Code: 1, Words: "boom", Delay: 10 * time.Second}) },
		"its container runtime is not there": func(d *drive) {
			local(d, ChildExited{Code: 1, Words: "no runtime", RuntimeDown: true, Delay: 10 * time.Second})
		},
		"it hangs": func(d *drive) {},
	} {
		for _, disruption := range []string{"", Allow, Hold} {
			t.Run(name+" "+disruption, func(t *testing.T) {
				d := newDrive(t, func(s *Settings) { s.Disruption = disruption }).boot().good("good").pass(time.Minute)
				d.hangs[""] = true
				for range exitLimit {
					d.hear(ChildExited{Code: -1, Words: "killed", Delay: 250 * time.Millisecond}).pass(time.Second)
				}
				if d.s.Child.Version != nil {
					t.Fatalf("what was killed runs on: %s", d.shown())
				}
				fails(d)
				d.pass(7 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
				if len(d.disk.Rejected) > 0 {
					t.Errorf("rejected: %+v", d.disk.Rejected)
				}
			})
		}
	}
}
