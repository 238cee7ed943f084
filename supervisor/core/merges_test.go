package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

const (
	layersActive = "assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active"
	editedTrial  = "assigned=lay/edited@1 active=lay/edited@1 lkg=lay/local@1 True InTrial"
)

func following(s *Settings) { s.FollowLocal = true }

// When the merge of layers with a node's own file that has changed is taken, and when it is not.
func TestWhenAMergeIsTaken(t *testing.T) {
	t.Run("one that comes to the same, at once", func(t *testing.T) {
		d := newDrive(t).boot().layers("all-set", "1").pass(testSettings.TrialPeriod + time.Minute).ownFile("edited").pass(time.Minute)
		if base := d.s.Assigned.Base; base != "edited" || mergePending(&d.s) {
			t.Errorf("assigned lies over %q", base)
		}
	})
	t.Run("a refused one never, with --follow-local either", func(t *testing.T) {
		d := goodLayers(t, following).refuse("lay/edited", false).ownFile("edited").pass(time.Minute).expect(layersActive)
		d.fresh().crashes().expectDone("start lay/local").expect(layersActive)
	})
	t.Run("none while a removal waits", func(t *testing.T) {
		d := goodLayers(t, holding, following)
		d.kills["local"], d.kills["edited"] = 1, 1
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second).ownFile("edited").pass(30 * time.Second)
		d.expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 False WouldDisrupt")
	})
	t.Run("none while another assignment is held", func(t *testing.T) {
		d := goodLayers(t, holding, following)
		d.kills["other"] = 1
		d.assign("other").ownFile("edited").pass(30 * time.Second).expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 False WouldDisrupt")
	})
	t.Run("none of an edit that waits for its turn", func(t *testing.T) {
		d := goodLayers(t, func(s *Settings) { s.EditSpread = time.Hour })
		first := *d.s.Assigned
		first.Content = "lay/first"
		d.s.Assigned, d.s.LastKnownGood, d.s.Child.Version, d.s.Promoted.Content = &first, &first, &first, first.Content
		d.layers("lay", "2").pass(5 * time.Second).ownFile("edited").pass(time.Minute).expect("assigned=lay/local@2 active=lay/first@1 lkg=lay/first@1 Unknown Applying")
	})
	t.Run("one whose effect differs at the next start", func(t *testing.T) {
		d := newDrive(t)
		d.effect["lay/local"], d.effect["lay/edited"] = "told", "told otherwise"
		d.boot().layers("lay", "1").pass(testSettings.TrialPeriod + time.Minute).ownFile("edited").pass(time.Minute).expect(layersActive)
		d.crashes().expect(editedTrial)
	})
	t.Run("one with the same effect, but by another kubelet, at the next start", func(t *testing.T) {
		d := newDrive(t)
		d.effect["lay/local"], d.effect["lay/edited"] = "same", "same"
		d.boot().layers("lay", "1").pass(testSettings.TrialPeriod + time.Minute)
		d.own = "edited"
		d.hear(LocalChanged{Kubelet: newerKubelet, Local: "edited"}).pass(time.Minute).expect(layersActive)
		d.crashes().expect(editedTrial)
	})
	t.Run("what fails is stopped before anything is asked of the next one", func(t *testing.T) {
		d := newDrive(t).boot()
		d.portHeld["lay/local"] = true
		d.layers("lay", "1").fresh().ownFile("edited").pass(10 * time.Second)
		d.expectDone("merge lay", "stop", "prove lay/edited", "start lay/edited")
	})
}

// What was merged is of one file and one assignment.
func TestMergesThatComeTooLate(t *testing.T) {
	merging := func(t *testing.T) *drive {
		d := goodLayers(t)
		d.own = "edited"
		d.decide(LocalChanged{Kubelet: testKubelet, Local: "edited"})
		d.until("the merge", func(do Action) bool { _, is := do.(Merge); return is })
		return d
	}
	t.Run("nobody asked", func(t *testing.T) {
		d := goodLayers(t)
		before := d.s
		if d.decide(Merged{Local: "local", Fault: "x"}); !reflect.DeepEqual(d.s, before) {
			t.Errorf("%+v\nbefore\n%+v", d.s, before)
		}
	})
	t.Run("the file has changed again", func(t *testing.T) {
		d := merging(t)
		late := d.answer(d.s.Doing)
		d.own = "again"
		d.decide(LocalChanged{Kubelet: testKubelet, Local: "again"})
		d.fresh().hear(late).pass(time.Minute).expectDone("merge lay", "prove lay/again", "prove again")
		d.crashes().expect("assigned=lay/again@1 active=lay/again@1 lkg=lay/local@1 True InTrial")
	})
	t.Run("the node is of another cluster", func(t *testing.T) {
		d := merging(t)
		d.s.Cluster = []string{"old"}
		late := d.answer(d.s.Doing)
		d.decide(ClusterSeen{Keys: []string{"new"}})
		if d.hear(late).pass(time.Minute); d.s.Assigned != nil || mergePending(&d.s) {
			t.Errorf("assigned is %s, merged %+v", nameOf(d.s.Assigned), d.s.Today)
		}
	})
	t.Run("another assignment has taken its place", func(t *testing.T) {
		d := goodLayers(t).refuse("lay/edited", false).ownFile("edited").pass(time.Minute)
		if d.assign("all-other").pass(testSettings.TrialPeriod + time.Minute); d.s.LocalChangePending() {
			t.Errorf("it waits for the next start: %+v", d.s.Today)
		}
	})
}

// What waits for the next start is said of a kubelet that runs.
func TestAMergeIsPendingForWhatRuns(t *testing.T) {
	d := goodLayers(t).refuse("lay/edited", false).ownFile("edited").pass(time.Minute)
	if !d.s.LocalChangePending() {
		t.Error("it is not pending")
	}
	if d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Hour}); d.s.LocalChangePending() {
		t.Error("it is pending though nothing runs")
	}
}

// An assignment that is heard of again, while it is being replaced or after its checkpoint was lost.
func TestLayersThatAreHeardOfAgain(t *testing.T) {
	t.Run("while another is being written: it takes its place, over the file as it is now", func(t *testing.T) {
		d := goodLayers(t)
		d.decide(assigned("other", "1", "other"))
		d.own = "edited"
		again := assigned("lay", "1", "")
		again.Version = *d.over(again.Version)
		d.decide(again)
		d.hear(d.answer(d.s.Doing)).hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expect(editedTrial)
	})
	t.Run("over the same file, while another merge waits: it goes on waiting", func(t *testing.T) {
		d := goodLayers(t).ownFile("edited").pass(time.Minute).fresh()
		d.own = "local"
		d.layers("lay", "1").pass(time.Minute).expectDone().expect(layersActive)
		if !mergePending(&d.s) {
			t.Error("it does not wait any more")
		}
	})
	for name, base := range map[string]string{"its checkpoint cannot be read": "", "nor could the file under it": "local"} {
		t.Run(name, func(t *testing.T) {
			d := goodLayers(t, holding)
			d.disk.Assigned = &Version{Source: d.disk.Assigned.Source, Base: base}
			d.disk.LastKnownGood, d.disk.Active = version("good", "1", "good"), nil
			d.kills["lay/local"] = 1
			d.s = New(d.s.Settings)
			d.hear(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "local", BootID: "boot-1"}).pass(time.Minute).fresh()
			d.layers("lay", "1").pass(10 * time.Second).expect("assigned=@1 active=good@1 lkg=good@1 False WouldDisrupt")
			if content := contentOf(d.disk.Assigned); content != "" {
				t.Errorf("on disk is %s", content)
			}
			d.approve().pass(time.Minute).expect(layersActive) // it had passed its trial
		})
	}
}

// Whom to blame is asked of layers that do not run, and is kept with the refusal that it is about.
func TestWhoIsToBlame(t *testing.T) {
	refused := Proof{Outcome: kubeletconfig.Refused, Words: "the kubelet says no", Layers: 3}
	blaming := func(t *testing.T) *drive {
		d := newDrive(t).boot().good("good")
		d.refused["lay/local"], d.refused["lay/edited"] = refused, refused
		a := assigned("lay", "1", "")
		a.Version = *d.over(a.Version)
		d.decide(a)
		d.until("it is found out who is to blame", func(do Action) bool { _, is := do.(Blame); return is })
		return d.fresh()
	}
	t.Run("not of what runs, though the kubelet on the disk would refuse it", func(t *testing.T) {
		d := goodLayers(t)
		d.refused["lay/local"] = refused
		d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Minute).expectDone("prove lay/local", "prove local")
	})
	t.Run("nor of what was rejected, and is not proven with the drop-in files of now", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(time.Minute).hear(LocalChanged{Kubelet: otherDropIns, Local: "local"}).fresh().pass(time.Minute)
		d.expectDone().expect("assigned=bad@1 active=good@1 lkg=good@1 False Rejected run config")
	})
	t.Run("then all else goes on", func(t *testing.T) {
		d := blaming(t)
		d.hear(d.answer(d.s.Doing)).pass(time.Minute).fresh().hear(Retry{}).expectDone("prove lay/local", "blame lay/local")
	})
	t.Run("an older answer ends no newer question", func(t *testing.T) {
		for name, older := range map[string]Blamed{
			"of another content": {Content: "lay/older", Kubelet: testKubelet},
			"of another kubelet": {Content: "lay/local", Kubelet: newerKubelet},
		} {
			d := blaming(t)
			if d.decide(older); d.s.Doing == nil {
				t.Errorf("%s: the question is forgotten", name)
			}
		}
		d := blaming(t)
		d.decide(assigned("newer", "1", "newer"))
		before := d.s.Doing
		if d.decide(Blamed{Content: "lay/local", Kubelet: testKubelet}); !reflect.DeepEqual(d.s.Doing, before) {
			t.Errorf("under way was %T, and is %T", before, d.s.Doing)
		}
	})
	t.Run("it is said of that refusal alone", func(t *testing.T) {
		d := blaming(t)
		with := func(content string, kubelet kubeletconfig.Identity, outcome kubeletconfig.Outcome) Proof {
			return Proof{Content: content, Kubelet: kubelet, Outcome: outcome, Words: "no", Layers: 2}
		}
		others := []Proof{with("lay/edited", testKubelet, kubeletconfig.Refused), with("lay/local", newerKubelet, kubeletconfig.Refused), with("lay/local", testKubelet, kubeletconfig.Accepted)}
		d.s.Proofs = append([]Proof{with("lay/local", testKubelet, kubeletconfig.Refused)}, others...)
		d.decide(Blamed{Content: "lay/local", Kubelet: testKubelet, Words: "without layer gpu, it would be accepted"})
		want := append([]Proof{{Content: "lay/local", Kubelet: testKubelet, Outcome: kubeletconfig.Refused, Words: "without layer gpu, it would be accepted: no"}}, others...)
		if !reflect.DeepEqual(d.s.Proofs, want) {
			t.Errorf("known is %+v\nwant %+v", d.s.Proofs, want)
		}
	})
}
