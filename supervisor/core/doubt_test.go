package core

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// A pod that the hold has named, and of which a look can say neither that it goes nor that it stays, is one that may be lost: memory that is
// freed until nobody can tell, or a file system that could not be measured this time.
func TestALossThatIsInDoubtNowHolds(t *testing.T) {
	doubtful := func(d *drive) {
		d.kills["one"], d.doubtful = 0, []nodev1.Loss{{Pod: "default/pod-1", UID: "uid-pod-1", Reason: "Evicted"}}
	}
	held := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().pass(time.Minute)
		d.pods, d.kills["one"] = "pod-", 4
		return d.assign("one").pass(time.Second).expect(heldLocal).fresh()
	}
	t.Run("it holds", func(t *testing.T) {
		d := held(t)
		doubtful(d)
		d.pass(2 * time.Hour).expect(heldLocal)
		if h := d.s.HoldStatus(); h == nil || len(h.Losses) != 4 {
			t.Errorf("the status says %+v", h)
		}
	})
	t.Run("over a restart", func(t *testing.T) {
		d := held(t)
		doubtful(d)
		d.pass(10 * time.Minute).boot().assign("one").pass(time.Hour).expect(heldLocal)
	})
	t.Run("until it is gone", func(t *testing.T) {
		d := held(t)
		doubtful(d)
		d.pass(10 * time.Minute)
		d.doubtful = nil
		d.pass(10 * time.Minute).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
	t.Run("or approved", func(t *testing.T) {
		d := held(t)
		doubtful(d)
		d.pass(10 * time.Minute)
		d.hear(Consented{Value: d.approval()}).pass(10 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
	t.Run("another pod in doubt is a warning", func(t *testing.T) {
		d := held(t)
		d.kills["one"], d.doubtful = 0, []nodev1.Loss{{Pod: "default/other", UID: "uid-other"}}
		d.pass(10 * time.Minute).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
}

// A change that is held, and of which nobody can say any more what it would do, waits for its approval alone, and the one that the Node names is
// enough: the kubelet's program is a script now, or pre-flights were turned off.
func TestWhatCannotBeKnownAnyMoreCanBeApproved(t *testing.T) {
	d := heldOne(t)
	d.kills["one"], d.unsure = 0, "the kubelet is a script"
	d.pass(10 * time.Minute).expect(heldLocal)
	d.hear(Consented{Value: d.approval()}).pass(10 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
}

// A retry has what nobody answered asked again, and takes neither the hold nor its approval off the Node.
func TestARetryKeepsTheHold(t *testing.T) {
	d := newDrive(t, holding).boot().pass(time.Minute)
	d.mute["one"] = -1
	d.assign("one").pass(2 * time.Minute)
	before, tries := d.s.HoldStatus(), len(d.tries)
	if d.hear(Retry{Value: "x"}).pass(time.Second); len(d.tries) == tries {
		t.Error("nothing was asked again")
	}
	if after := d.s.HoldStatus(); before == nil || after == nil || after.Approval != before.Approval {
		t.Errorf("held was %+v, and is %+v", before, after)
	}
}
