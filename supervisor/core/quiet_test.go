package core

import (
	"testing"
	"time"
)

// Of a change that is held, an edit in place waits for quiet. What is no edit of it does not.
func TestWhatIsAnEditOfWhatIsHeld(t *testing.T) {
	held := func(t *testing.T) *drive {
		d := newDrive(t, holding, func(s *Settings) { s.EditSpread = time.Hour }).boot().good("good").pass(time.Minute)
		d.kills["one"], d.kills["two"] = 1, 1
		return d.assign("one", "cm", "1").pass(time.Minute).fresh()
	}
	t.Run("an edit", func(t *testing.T) {
		held(t).assign("two", "cm", "2").pass(editQuiet-1).expectDone().pass(1).expectDone("prove two", "foresee two")
	})
	t.Run("another assignment", func(t *testing.T) {
		held(t).assign("two", "other", "1").expectDone("prove two", "foresee two")
	})
	t.Run("that of another Node of the name", func(t *testing.T) {
		a := assigned("cm", "2", "two")
		a.NodeUID = "another"
		held(t).hear(a).expectDone("prove two", "foresee two")
	})
	t.Run("what runs, which withdraws the change", func(t *testing.T) {
		d := held(t).assign("good").pass(time.Minute).expectDone().expect(goodActive)
		if *d.s.Observed != "kube-system/good/kubelet" {
			t.Errorf("it speaks of %s", *d.s.Observed)
		}
	})
	t.Run("after its ConfigMap was gone: it is held, and no more said to be gone", func(t *testing.T) {
		d := held(t).hear(gone).pass(time.Second).assign("two", "cm", "2").pass(time.Second)
		d.expectDone("prove two", "foresee two").expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	})
}

// What comes while an edit waits for quiet, and makes it void.
func TestWhatEndsAnEditThatWaits(t *testing.T) {
	for name, event := range map[string]Event{
		"its ConfigMap is gone":              gone,
		"the assignment is removed":          Cleared{NodeUID: "node-uid"},
		"the Node is re-created without it":  Cleared{NodeUID: "another"},
		"the node is of another cluster now": ClusterSeen{Keys: []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot().assign("one", "cm", "1").pass(11 * time.Minute).fresh()
			d.s.Cluster = []string{"old"}
			d.assign("two", "cm", "2").pass(time.Second).hear(event).pass(time.Hour)
			if d.times("prove two") > 0 {
				t.Errorf("done: %q, shown: %s", d.did, d.shown())
			}
		})
	}
}
