package core

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What the status document says of a failure, in JSON: an exit code of 0 is said, and one that is not known is not.
func TestFailureStatus(t *testing.T) {
	const exited = `{"kind":"Exited","exitCode":1,"times":3,"message":"exited 3 times in its trial: exit code 1: it is deadly"}`
	deadly := func(d *drive) *drive { d.deadly["bad"] = time.Second; return d.assign("bad") }
	for _, row := range []struct {
		name string
		when func(d *drive)
		want string
	}{
		{"local", func(*drive) {}, "null"},
		{"in its trial", func(d *drive) { d.assign("good").pass(time.Minute) }, "null"},
		{"with tries left", func(d *drive) { deadly(d).pass(2 * time.Second) }, "null"},
		{"good", func(d *drive) { d.good("good") }, "null"},
		{"refused", func(d *drive) { d.refuse("bad", true).assign("bad") }, `{"kind":"Refused","message":"the kubelet says no"}`},
		{"exited, and in its control", func(d *drive) {
			deadly(d).pass(6*time.Second).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack")
		}, exited},
		{"exited, verdict confirmed", func(d *drive) {
			deadly(d).pass(time.Minute).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigRejected")
		}, exited},
		{"with 0, again and again", func(d *drive) {
			d.assign("bad")
			for range cleanExitLimit * testSettings.TrialFailures {
				d.pass(2 * time.Second).hear(ChildExited{Code: 0, Words: "exit code 0"})
			}
		}, `{"kind":"Exited","exitCode":0,"times":3,"message":"exited 3 times in its trial: exit code 0, 3 times within 1m0s"}`},
		{"by a signal", func(d *drive) {
			d.assign("bad")
			for range testSettings.TrialFailures {
				d.pass(2 * time.Second).hear(ChildExited{Code: -1, Words: "killed by SIGSEGV"})
			}
		}, `{"kind":"Exited","times":3,"message":"exited 3 times in its trial: killed by SIGSEGV"}`},
		{"the last known good one", func(d *drive) {
			d.good("good")
			for range exitLimit {
				d.pass(2 * time.Second).hear(ChildExited{Code: 255, Words: "exit code 255"})
			}
		}, `{"kind":"Exited","exitCode":255,"times":5,"message":"exited 5 times in 10m0s: exit code 255"}`},
		{"the host went down", func(d *drive) {
			d.assign("bad").pass(time.Minute)
			for d.bootID = "boot-2"; len(d.s.Suspects)+len(d.s.Rejected) == 0; d.bootID += "+" {
				d.boot()
			}
		}, `{"kind":"Exited","times":3,"message":"the host went down during its trial"}`},
		{"never healthy", func(d *drive) { d.hangs["bad"] = true; d.assign("bad").pass(3 * time.Minute) },
			`{"kind":"NotHealthy","message":"not healthy within 2m0s of its start"}`},
		{"its port is held", func(d *drive) { d.portHeld["bad"] = true; d.assign("bad").pass(time.Minute) },
			`{"kind":"PortHeld","message":"was never healthy: ` + heldByNginx + `"}`},
		{"its Lease is lost", func(d *drive) {
			d.s.Standalone, d.s.Renews, d.lease["bad"] = false, true, false
			d.assign("bad").pass(2 * time.Minute)
		}, `{"kind":"LeaseLost","message":"healthy, but its Lease was not renewed for 1m0s although the API server is in reach: the kubelet has lost the node"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, standalone).boot().pass(time.Minute).fresh()
			row.when(d)
			got, err := json.Marshal(failure(&d.s, findingOf(&d.s)))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != row.want {
				t.Errorf("%s\nwant %s; %s", got, row.want, d.shown())
			}
		})
	}
}

// The newest assignment is the one that the status speaks of; what it says is bounded.
func TestWhichFailure(t *testing.T) {
	d := newDrive(t).boot()
	d.deadly["bad"] = time.Second
	d.assign("bad").pass(2 * time.Minute).assign("good")
	if got := failure(&d.s, findingOf(&d.s)); got != nil {
		t.Errorf("of what is not assigned any more: %+v", got)
	}
	d.s.Rejected[0].Words = strings.Repeat("x", 5000)
	d.assign("bad")
	if got := failure(&d.s, findingOf(&d.s)); got == nil || len(got.Message) != failureLimit {
		t.Errorf("%+v", got)
	}
}
