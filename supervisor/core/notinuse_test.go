package core

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// A kubelet that was not started with its configuration proves nothing of it, and is blamed for nothing (rules 6 and 25).
func TestAConfigurationThatNoKubeletWasStartedWith(t *testing.T) {
	swallowed := NotInUse{Words: "/opt/start does not hand on the arguments"}
	for _, row := range []struct {
		name  string
		when  func(d *drive)
		done  []string
		shown string
	}{
		{"it is never on trial, and never last known good", func(d *drive) {
			d.assign("good").pass(time.Second).hear(swallowed).pass(time.Hour)
			d.expectMessage("using last-known-good (default); /opt/start does not hand on the arguments", "give the kubelet itself in ExecStart")
			if f := failure(&d.s, findingOf(&d.s)); f == nil || f.Kind != nodev1.FailureNotInUse {
				d.t.Errorf("failure %+v", f)
			}
		}, []string{"prove good", "stop", "start good", "prove local"}, "assigned=good@1 active=- lkg=- False NotInUse"},
		{"its exits are none of the configuration's", func(d *drive) {
			d.assign("good").pass(time.Second).hear(swallowed)
			for range 4 {
				d.hear(ChildExited{Code: 1, Words: "exit code 1"}).pass(15 * time.Second).hear(swallowed)
			}
			if len(d.disk.Rejected) > 0 || len(d.disk.Suspects) > 0 {
				d.t.Errorf("rejected %+v, suspects %+v", d.disk.Rejected, d.disk.Suspects)
			}
		}, []string{"prove good", "stop", "start good", "start good", "prove local", "start good", "start good", "start good"}, "assigned=good@1 active=- lkg=- False NotInUse"},
		{"local heals it", func(d *drive) {
			d.assign("good").pass(time.Second).hear(swallowed).pass(time.Minute).fresh().hear(Cleared{NodeUID: d.s.NodeUID}).pass(time.Minute)
		}, []string{"stop", "start local"}, "assigned=- active=- lkg=- True Local"},
		{"and so does a script that hands on: the next start is on trial", func(d *drive) {
			d.assign("good").pass(time.Second).hear(swallowed).pass(time.Minute).fresh()
			d.hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(time.Hour)
		}, []string{"start good"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"a script that was on its way to the kubelet is forgiven", func(d *drive) {
			d.assign("good").pass(time.Second).hear(swallowed).pass(time.Second).hear(NotInUse{}).pass(time.Hour)
		}, []string{"prove good", "stop", "start good", "prove local"}, "assigned=good@1 active=good@1 lkg=good@1 True Active"},
		{"a script that did not become the kubelet is ended for nothing", func(d *drive) {
			d.hangs["good"] = true
			d.assign("good").pass(2 * time.Second).hear(swallowed).pass(time.Hour)
		}, []string{"prove good", "stop", "start good"}, "assigned=good@1 active=- lkg=- False NotInUse"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			d.expect(row.shown).expectDone(row.done...)
		})
	}
}
