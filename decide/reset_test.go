package decide

import (
	"testing"
	"time"
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
