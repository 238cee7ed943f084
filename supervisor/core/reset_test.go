package core

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Upstream's table of Reset: from every pair of assigned and lastKnownGood on disk to none, with a restart if anything but local
// ran.
func TestResetOfEveryPair(t *testing.T) {
	good, other := version("good", "1", "good"), version("other", "2", "other")
	for _, row := range []struct {
		name                    string
		assigned, lastKnownGood *Version
		restarts                bool
	}{
		{"nothing", nil, nil, false},
		{"assigned alone", good, nil, true},
		{"last known good alone", nil, good, true}, // assigned could not be read: last known good goes on until the reset
		{"both the same", good, good, true},
		{"one and the other", good, other, true},
		{"the other way round", other, good, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t)
			d.disk.Assigned, d.disk.LastKnownGood, d.disk.NodeUID = row.assigned, row.lastKnownGood, "node-uid"
			d.boot().fresh().hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
			if restarts := len(d.did) > 0; restarts != row.restarts {
				t.Errorf("done: %q, a restart is wanted: %v", d.did, row.restarts)
			}
			if d.disk.Assigned != nil || d.disk.LastKnownGood != nil {
				t.Errorf("on disk: assigned %s, last known good %s", nameOf(d.disk.Assigned), nameOf(d.disk.LastKnownGood))
			}
		})
	}
}

// What keeps the kubelet from being asked about local does not keep a node from going there on which no kubelet runs.
func TestResetWithoutAKubelet(t *testing.T) {
	cannotAsk := Proof{Outcome: kubeletconfig.Environment, Words: "fork/exec: resource temporarily unavailable"}
	begin := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().good("good")
		d.refused["local"], d.refused["good"] = cannotAsk, cannotAsk
		d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"})
		d.starts = func(do Start) (Event, bool) {
			return Started{Err: errDisk, Delay: time.Second}, do.Version != nil
		}
		return d.fresh()
	}
	t.Run("none runs", func(t *testing.T) {
		d := begin(t).hear(ChildExited{Code: 1, Words: "boom", Delay: time.Second}).pass(2 * time.Second)
		d.fresh().hear(Cleared{NodeUID: "node-uid"}).pass(30 * time.Second).expect(nothing)
		if last := d.did[len(d.did)-1]; last != "start local" {
			t.Errorf("done: %q", d.did)
		}
	})
	t.Run("one runs", func(t *testing.T) {
		d := begin(t).hear(Cleared{NodeUID: "node-uid"}).pass(10 * time.Minute)
		if !d.s.runs(version("good", "1", "good")) {
			t.Errorf("done: %q", d.did)
		}
	})
}
