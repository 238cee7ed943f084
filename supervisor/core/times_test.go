package core

import (
	"testing"
	"time"
)

// The numbers that the design fixes.
func TestNumbers(t *testing.T) {
	for _, row := range []struct {
		name      string
		got, want time.Duration
	}{
		{"health that counts", healthThatCounts, 10 * time.Second},
		{"a Lease without a renewal", leaseLimitLeast, time.Minute},
		{"more for one that lasts longer", leaseLimitSlack, 10 * time.Second},
		{"between writes of trial time", persistInterval, 30 * time.Second},
		{"until a change is told", applyingAfter, time.Second},
		{"for exits outside a trial", exitWindow, 10 * time.Minute},
		{"until a write is tried again", saveRetryAfter, 10 * time.Second},
		{"until the environment is asked again", environmentRecheck, 30 * time.Second},
		{"late for a stall", stallAfter, 10 * time.Second},
		{"bytes of a message", messageLimit, 1024},
		{"bytes of a failure", failureLimit, 600},
		{"entries of a list", storedEntries, 20},
		{"pods that a hold has named before", namedMost, 500},
		{"a look lasts", outlookLasts, 5 * time.Second},
		{"what is held is looked at again", lookAgainLeast, time.Minute},
		{"at most", lookAgainMost, 5 * time.Minute},
		{"what did not answer is asked again", askAgainLeast, time.Second},
		{"at most", askAgainMost, time.Minute},
		{"until what did not answer holds", askedForLong, time.Minute},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", row.name, row.got, row.want)
		}
	}
	var list []int
	for i := range 25 {
		list = newest(list, i)
	}
	if len(list) != 20 || list[0] != 5 {
		t.Errorf("kept of 25: %v", list)
	}
}

// A deadline that is heard of ten seconds late is late; more than that is a time in which nobody looked.
func TestAStall(t *testing.T) {
	for late, unseen := range map[time.Duration]bool{stallAfter: false, stallAfter + 1: true} {
		d := newDrive(t).boot().assign("good").pass(time.Minute)
		d.now = d.step.Wake + late
		if d.decide(Ticked{}); (d.s.Unseen > 0) != unseen {
			t.Errorf("%s late: %s unseen", late, d.s.Unseen)
		}
	}
}

func TestTheFirstSecondIsYoung(t *testing.T) {
	d := newDrive(t)
	d.decide(Booted{Kubelet: testKubelet, Local: "local"})
	d.expect("(nothing yet)")
}

func TestSame(t *testing.T) {
	one, other, lost := version("a", "1", "x"), version("b", "2", "x"), &Version{}
	if !Same(one, other) || !Same(nil, nil) || Same(one, nil) || Same(nil, one) || Same(lost, lost) || Same(one, lost) {
		t.Error("sameness is of content, and what cannot be read equals nothing")
	}
}
