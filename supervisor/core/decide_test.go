package core

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

const (
	nothing = "assigned=- active=- lkg=- True Local"
	inTrial = "assigned=good@1 active=good@1 lkg=- True InTrial"
)

// Upstream's T1 (e2e_node/dynamic_kubelet_config_test.go): every ordered pair of states, in both directions.
func TestAssignmentTransitions(t *testing.T) {
	states := []struct {
		name, shown string
		set         func(d *drive)
		runs        string
	}{
		{"nil", nothing, func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) }, "local"},
		{"correct", inTrial, func(d *drive) { d.assign("good") }, "good"},
		{"fail-parse", "assigned=unparsable@1 active=- lkg=- False Refused load config", func(d *drive) { d.refuse("unparsable", true).assign("unparsable") }, "local"},
		{"fail-validate", "assigned=invalid@1 active=- lkg=- False Refused validate config", func(d *drive) { d.refuse("invalid", false).assign("invalid") }, "local"},
	}
	for _, first := range states {
		for _, second := range states {
			t.Run(first.name+" to "+second.name, func(t *testing.T) {
				d := newDrive(t).boot()
				first.set(d)
				d.pass(5 * time.Second).expect(first.shown)
				second.set(d)
				d.pass(5 * time.Second).expect(second.shown)
				if got := nameOf(d.s.Child.Version); got != second.runs {
					t.Errorf("runs %s, want %s", got, second.runs)
				}
				first.set(d)
				d.pass(5 * time.Second).expect(first.shown)
			})
		}
	}
}

// Each row: what is done, and what is shown in the end.
func TestBehaviour(t *testing.T) {
	for _, row := range []struct {
		name  string
		given func(d *drive)
		when  func(d *drive)
		done  []string
		shown string
	}{
		{"a good configuration costs one restart", nil,
			func(d *drive) { d.assign("good") },
			[]string{"prove good", "stop", "start good"}, inTrial},
		{"a refused one costs none (rule 4)", nil,
			func(d *drive) { d.refuse("bad", false).assign("bad") },
			[]string{"prove bad"}, "assigned=bad@1 active=- lkg=- False Refused validate config"},
		{"T2: back from a refused one to lastKnownGood costs none",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.refuse("bad", true).assign("bad").pass(time.Minute).assign("good") },
			[]string{"prove bad"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"T4: a second good one becomes lastKnownGood",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.assign("better").pass(11 * time.Minute) },
			[]string{"prove better", "stop", "start better"}, "assigned=better@1 active=better@1 lkg=better@1 True Active"},
		{"a refused one while another is on trial falls back to lastKnownGood, once (rule 4)",
			func(d *drive) { d.good("good").assign("young").pass(time.Minute) },
			func(d *drive) { d.refuse("bad", true).assign("bad") },
			[]string{"prove bad", "stop", "start good"}, "assigned=bad@1 active=good@1 lkg=good@1 False Refused load config"},
		{"T7: an in-place edit that is refused keeps the older version",
			func(d *drive) { d.assign("good", "cm", "1").pass(11 * time.Minute) },
			func(d *drive) { d.refuse("bad", true).assign("bad", "cm", "2") },
			[]string{"prove bad"}, "assigned=bad@2 active=good@1 lkg=good@1 False Refused load config"},
		{"a label edit moves the pointers and restarts nothing (rule 5)",
			func(d *drive) { d.assign("good", "cm", "1").pass(11 * time.Minute) },
			func(d *drive) { d.assign("good", "cm", "2") },
			nil, "assigned=good@2 active=good@2 lkg=good@2 True Active"},
		{"equal content carries a trial over (rule 5)",
			func(d *drive) { d.assign("good", "cm", "1").pass(9 * time.Minute) },
			func(d *drive) { d.assign("good", "other", "7").pass(2 * time.Minute) },
			nil, "assigned=good@7 active=good@7 lkg=good@7 True Active"},
		{"between local and dynamic there is always a restart",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) },
			[]string{"stop", "start local"}, nothing},
		{"T9: a missing ConfigMap changes nothing, and its error goes away with it",
			func(d *drive) { d.good("good") },
			func(d *drive) {
				d.hear(SyncFailed{Text: "kube-system/gone/kubelet", Problem: Problem{Error: "failed to sync: failed to download config, see Kubelet log for details"}})
				d.pass(time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 False SyncFailed sync: failed to download config")
				d.assign("good")
			},
			nil, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"upstream 1.4: an error does not outlive its assignment", nil,
			func(d *drive) {
				d.hear(SyncFailed{Text: "x", Problem: Problem{Malformed: true, Error: "failed to sync: spec.configSource: Invalid value"}})
				d.expect("assigned=- active=- lkg=- False InvalidAssignment sync: spec.configSource: Invalid value")
				d.hear(Cleared{NodeUID: "node-uid"})
			}, nil, nothing},
		{"a deadly one is rolled back after three quick exits, and rejected when local stays healthy (rule 8)", nil,
			func(d *drive) {
				d.deadly["deadly"] = 500 * time.Millisecond
				d.assign("deadly").pass(9 * time.Second)
				d.expect("assigned=deadly@1 active=- lkg=- False RolledBack run config").pass(10 * time.Second)
			},
			[]string{"prove deadly", "stop", "start deadly", "start deadly", "start deadly", "start local"},
			"assigned=deadly@1 active=- lkg=- False Rejected run config"},
		{"a rejected one is not tried again, and a good one works at once",
			func(d *drive) {
				d.deadly["deadly"] = 500 * time.Millisecond
				d.assign("deadly").pass(time.Minute)
			},
			func(d *drive) { d.assign("deadly", "copy", "9").pass(time.Minute).assign("good") },
			[]string{"prove good", "stop", "start good"}, inTrial},
		{"a person asks: a rejected one is tried again",
			func(d *drive) {
				d.deadly["deadly"] = 500 * time.Millisecond
				d.assign("deadly").pass(time.Minute)
			},
			func(d *drive) { delete(d.deadly, "deadly"); d.hear(Retry{Value: "please"}) },
			[]string{"prove deadly", "stop", "start deadly"}, "assigned=deadly@1 active=deadly@1 lkg=- True InTrial"},
		{"a removal while the new one starts abandons it without blame (rule 1)", nil,
			func(d *drive) {
				d.hangs["slow"] = true
				d.assign("slow").pass(time.Second).hear(Cleared{NodeUID: "node-uid"})
			},
			[]string{"prove slow", "stop", "start slow", "prove local", "stop", "start local"}, nothing},
		{"not healthy in time rolls back (rule 8)", nil,
			func(d *drive) { d.hangs["slow"] = true; d.assign("slow").pass(2*time.Minute + 5*time.Second) },
			[]string{"prove slow", "stop", "start slow", "stop", "start local"}, "assigned=slow@1 active=- lkg=- False RolledBack run config"},
		{"a Lease that is not renewed rolls back (rule 7)", func(d *drive) { d.pass(time.Minute) },
			func(d *drive) { d.lease["bogus"] = false; d.assign("bogus").pass(70 * time.Second) },
			[]string{"prove bogus", "stop", "start bogus", "prove local", "stop", "start local"}, "assigned=bogus@1 active=- lkg=- False RolledBack run config"},
		{"API unreachable: the trial's clock runs, promotion waits for the Lease (rule 7)", nil,
			func(d *drive) {
				d.assign("good")
				d.online = false
				d.pass(30 * time.Minute).expect(inTrial)
				d.online = true
				d.pass(time.Minute)
			},
			[]string{"prove good", "stop", "start good", "prove local"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"an unasked exit 0 is restarted at once and counts nothing (rule 10)",
			func(d *drive) { d.assign("good").pass(time.Minute) },
			func(d *drive) {
				for range 10 {
					d.hear(ChildExited{Code: 0}).pass(31 * time.Second)
				}
			},
			[]string{"start good", "start good", "start good", "start good", "start good", "start good", "start good", "start good", "start good", "start good"}, inTrial},
		{"outside a trial, 5 exits in 10 min try local as a control; it runs well: lastKnownGood failed (rule 9)",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.deadly["good"] = 20 * time.Second; d.pass(5 * time.Minute) },
			[]string{"start good", "start good", "start good", "start good", "start local"},
			"assigned=good@1 active=- lkg=good@1 False LastKnownGoodFailed run config"},
		{"an unfinished host shutdown: hands off (rule 13)", nil,
			func(d *drive) { d.hear(HostStopping{}).hear(ChildExited{Code: -1}).assign("good").pass(time.Minute) },
			nil, "assigned=- active=- lkg=- Unknown Stopped"},
		{"a host shutdown that is called off: the kubelet comes back", nil,
			func(d *drive) { d.hear(HostStopping{}).hear(ChildExited{Code: -1}).hear(HostStopping{CalledOff: true}) },
			[]string{"start local"}, nothing},
		{"asked to stop: the kubelet first, then the supervisor", nil,
			func(d *drive) { d.hear(StopAsked{}) },
			[]string{"stop", "exit"}, "assigned=- active=- lkg=- Unknown Stopped"},
		{"a Node re-created without its assignment resets nothing",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.hear(Cleared{NodeUID: "another"}).pass(time.Minute) },
			nil, "assigned=good@1 active=good@1 lkg=good@1 False AssignmentLost"},
		{"the explicit local resets whatever Node it is on",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.hear(Cleared{Text: "local", NodeUID: "another"}) },
			[]string{"stop", "start local"}, nothing},
		{"a reset to a local configuration that would be refused waits until that heals (rule 9)",
			func(d *drive) {
				d.good("good").refuse("broken", false)
				d.hear(LocalChanged{Kubelet: testKubelet, Local: "broken"})
				d.expect("assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken").fresh()
			},
			func(d *drive) {
				d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
				d.expect("assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken").expectDone()
				d.hear(LocalChanged{Kubelet: testKubelet, Local: "mended"})
			},
			[]string{"prove mended", "stop", "start local"}, nothing},
		{"environment: the pre-flight blames nothing and changes nothing",
			func(d *drive) {
				d.refused["good"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag: --foo"}
			},
			func(d *drive) {
				d.assign("good").pass(5 * time.Second).expect("assigned=good@1 active=- lkg=- Unknown EnvironmentFailing")
				d.expectDone("prove good")
				delete(d.refused, "good")
				d.pass(environmentRecheck)
			},
			[]string{"prove good", "prove good", "stop", "start good"}, inTrial},
		{"an unknown verdict goes on to the trial",
			func(d *drive) { d.refused["good"] = Proof{Outcome: kubeletconfig.Unknown} },
			func(d *drive) { d.assign("good") },
			[]string{"prove good", "stop", "start good"}, inTrial},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot()
			if row.given != nil {
				row.given(d)
			}
			d.fresh()
			row.when(d)
			d.pass(2 * time.Second)
			d.expectDone(row.done...).expect(row.shown)
		})
	}
}
