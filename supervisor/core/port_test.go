package core

import (
	"testing"
	"time"
)

// A healthz port that another process has is known at once: a trial fails by it, and the fallback that is its control fails the same way
// or is healthy (rule 8). Nothing else is ever ended for it (rule 2).
func TestAHealthzPortThatAnotherProcessHas(t *testing.T) {
	const unhealthyLocal = "assigned=- active=- lkg=- Unknown EnvironmentFailing"
	for _, row := range []struct {
		name  string
		when  func(d *drive)
		done  []string
		shown string
	}{
		{"a trial fails by it at once, and the verdict follows", func(d *drive) {
			d.portHeld["bad"] = true
			d.assign("bad").pass(5 * time.Second).expect("assigned=bad@1 active=- lkg=- False RolledBack run config")
			d.expectMessage("using last-known-good (default); ", "was never healthy: "+heldByNginx, "correct the configuration").pass(10 * time.Second)
			d.expectMessage("was never healthy: "+heldByNginx).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigRejected")
			if cause := d.disk.Rejected[0].Cause; cause != PortHeld {
				d.t.Errorf("the cause is %s", cause)
			}
		}, []string{"prove bad", "stop", "start bad", "stop", "start local"}, "assigned=bad@1 active=- lkg=- False Rejected run config"},
		{"back to the last known good one", func(d *drive) {
			d.good("good").fresh()
			d.portHeld["bad"] = true
			d.assign("bad").pass(5 * time.Second)
		}, []string{"prove bad", "stop", "start bad", "stop", "start good"}, "assigned=bad@1 active=good@1 lkg=good@1 False RolledBack run config"},
		{"a fallback that wants the same port fails the same way, which is said at once", func(d *drive) {
			d.portHeld["innocent"], d.portHeld[""] = true, true
			d.assign("innocent").pass(9*time.Second).expectMessage("the fallback fails as well; ", heldByNginx)
			if d.pass(time.Hour); len(d.disk.Rejected) > 0 {
				d.t.Errorf("rejected: %+v", d.disk.Rejected)
			}
		}, []string{"prove innocent", "stop", "start innocent", "stop", "start local"}, "assigned=innocent@1 active=- lkg=- Unknown EnvironmentFailing"},
		{"a port of the fallback's too is no fault of the configuration, although it is free when the fallback asks", func(d *drive) {
			d.portHeld["innocent"], d.portShared = true, true
			d.assign("innocent").pass(5 * time.Second).expectMessage("which is the fallback's port too")
			clear(d.portHeld)
			if d.pass(time.Hour); len(d.disk.Rejected) > 0 {
				d.t.Errorf("rejected: %+v", d.disk.Rejected)
			}
		}, []string{"prove innocent", "stop", "start innocent", "stop", "start local", "stop", "start innocent", "prove local"}, "assigned=innocent@1 active=innocent@1 lkg=innocent@1 True Active"},
		{"and once it is free the configuration is tried again", func(d *drive) {
			d.portHeld["innocent"], d.portHeld[""] = true, true
			d.assign("innocent").pass(time.Hour).fresh()
			clear(d.portHeld)
			d.hear(PortSeen{}).pass(20 * time.Second)
		}, []string{"stop", "start innocent"}, "assigned=innocent@1 active=innocent@1 lkg=- True InTrial"},
		{"a control that fails by it has the time of any other, where the suspect failed by something else", func(d *drive) {
			d.deadly["bad"], d.portHeld[""] = time.Second, true
			d.assign("bad").pass(30*time.Second).expectMessage(heldByNginx, "end that process")
			clear(d.portHeld)
			d.hear(PortSeen{}).pass(20 * time.Second)
		}, []string{"prove bad", "stop", "start bad", "start bad", "start bad", "start local"}, "assigned=bad@1 active=- lkg=- False Rejected run config"},
		{"local is never ended for it, only reported", func(d *drive) {
			d.portHeld[""] = true
			d.hear(ChildExited{Code: 1, Words: "exit code 1", Delay: time.Second}).fresh().pass(time.Hour)
			d.says("using current (default); " + heldByNginx + "; last exit: exit code 1; end that process, or give the kubelet another healthzPort")
		}, []string{"start local"}, unhealthyLocal},
		{"nor is what passed its trial", func(d *drive) {
			d.good("good")
			d.portHeld["good"] = true
			d.boot().fresh().pass(time.Hour).expectMessage(heldByNginx)
		}, nil, "assigned=good@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing"},
		{"what is said goes with the holder", func(d *drive) {
			d.portHeld[""], d.hangs[""] = true, true
			d.hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(time.Minute).expect(unhealthyLocal)
			clear(d.portHeld)
			d.fresh().hear(PortSeen{}).pass(time.Minute).expectMessage("the kubelet is not healthy yet")
		}, nil, "assigned=- active=- lkg=- Unknown Applying"},
		{"and with health", func(d *drive) {
			d.portHeld[""] = true
			d.hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(time.Minute).expect(unhealthyLocal)
			clear(d.portHeld)
			d.fresh().pass(time.Minute)
		}, nil, "assigned=- active=- lkg=- True Local"},
		{"told of a kubelet that is healthy, it comes too late", func(d *drive) {
			d.assign("good").pass(time.Second).fresh().hear(PortSeen{HeldBy: heldByNginx}).pass(time.Second)
		}, nil, inTrial},
		{"so it does of one that was", func(d *drive) {
			d.assign("good").pass(time.Second).fresh()
			d.hangs["good"] = true
			d.hear(Unhealthy{Words: "no answer"}).hear(PortSeen{HeldBy: heldByNginx}).pass(time.Minute).expectMessage("no answer")
		}, nil, "assigned=good@1 active=good@1 lkg=- Unknown Applying"},
		{"and of one that is gone", func(d *drive) {
			d.assign("bad").pass(time.Second).hear(ChildExited{Code: 1, Words: "x", Delay: 10 * time.Second}).fresh()
			d.hear(PortSeen{HeldBy: heldByNginx}).pass(20 * time.Second)
		}, []string{"start bad"}, "assigned=bad@1 active=bad@1 lkg=- True InTrial"},
		{"a host that shuts down is left alone", func(d *drive) {
			d.portHeld["bad"] = true
			d.assign("bad").pass(time.Second).hear(HostStopping{}).fresh().pass(time.Minute)
		}, nil, "assigned=bad@1 active=- lkg=- Unknown Stopped"},
		{"until that is called off", func(d *drive) {
			d.portHeld["bad"] = true
			d.assign("bad").pass(time.Second).hear(HostStopping{}).pass(time.Minute).fresh().hear(HostStopping{CalledOff: true}).pass(time.Second)
		}, []string{"stop", "start local"}, "assigned=bad@1 active=- lkg=- False RolledBack run config"},
		{"a kubelet that waits for its certificate has nobody at its port", func(d *drive) {
			d.hangs["slow"] = true
			d.assign("slow").pass(portSeenAfter).hear(PortSeen{}).pass(2*time.Minute - 10*time.Second)
		}, []string{"prove slow", "stop", "start slow"}, "assigned=slow@1 active=- lkg=- Unknown Applying"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			d.expect(row.shown).expectDone(row.done...)
		})
	}
}
