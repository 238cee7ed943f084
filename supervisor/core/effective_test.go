package core

import (
	"reflect"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// otherDropIns is the kubelet of testKubelet with other drop-in files.
var otherDropIns = kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-1", Local: "local-2"}

// Rule 5: what comes to the same effective configuration is not restarted for, and what was earned carries over.
func TestEqualEffectiveConfigurations(t *testing.T) {
	const bothActive = "assigned=two@2 active=two@2 lkg=two@2 True Active"
	begin := func(t *testing.T, changes ...func(*Settings)) *drive {
		d := newDrive(t, changes...)
		d.effect["one"], d.effect["two"], d.effect["three"], d.effect["other"] = "same", "same", "same", "else"
		return d.boot()
	}
	good := func(t *testing.T, changes ...func(*Settings)) *drive {
		return begin(t, changes...).assign("one", "cm", "1").pass(11 * time.Minute).fresh()
	}
	t.Run("an edit of what passed its trial", func(t *testing.T) {
		d := good(t).edit("two", "2").pass(time.Hour)
		d.expectDone("prove two").expect(bothActive).expectEvents()
		if !reflect.DeepEqual(d.disk.LastKnownGood, version("cm", "2", "two")) || d.disk.Promoted.Content != "two" {
			t.Errorf("on disk is %+v, promoted %+v", d.disk.LastKnownGood, d.disk.Promoted)
		}
		d.crash().expectDone("start two").pass(time.Minute).expect(bothActive)
	})
	t.Run("it waits for no turn", func(t *testing.T) {
		d := good(t, func(s *Settings) { s.EditSpread = time.Hour }).edit("two", "2").pass(2 * time.Second)
		d.expectDone("prove two").expect(bothActive)
	})
	t.Run("another assignment", func(t *testing.T) {
		good(t).assign("two", "cm2", "2").pass(time.Minute).expectDone("prove two").expect(bothActive)
	})
	t.Run("a trial goes on", func(t *testing.T) {
		d := begin(t).assign("one", "cm", "1").pass(6 * time.Minute).fresh()
		d.edit("two", "2").pass(time.Second).expect("assigned=two@2 active=two@2 lkg=- True InTrial")
		d.expectAccount("two with binary-1: try 1, open since boot-1, was healthy, the Lease was renewed before, renewed it")
		d.pass(5 * time.Minute).expectDone("prove two").expect(bothActive)
	})
	t.Run("a crash of the supervisor in a trial that goes on", func(t *testing.T) {
		d := begin(t).assign("one", "cm", "1").pass(6*time.Minute).edit("two", "2").pass(time.Minute)
		d.crash().expectDone("start two").pass(5 * time.Minute).expect(bothActive)
	})
	t.Run("failures of a trial go on", func(t *testing.T) {
		d := begin(t)
		d.deadly["one"], d.deadly["two"] = 15*time.Second, 15*time.Second
		d.assign("one", "cm", "1").pass(20 * time.Second).fresh()
		d.edit("two", "2").pass(45*time.Second).expectDone("prove two", "start two", "start local").expect("assigned=two@2 active=- lkg=- False RolledBack run config")
	})
	t.Run("edits one after another", func(t *testing.T) {
		d := good(t).edit("two", "2").pass(time.Minute).edit("three", "3").pass(time.Minute).edit("one", "4").pass(time.Minute)
		d.expectDone("prove two", "prove three").expect("assigned=one@4 active=one@4 lkg=one@4 True Active")
		if !reflect.DeepEqual(d.s.Child.From, version("cm", "1", "one")) {
			t.Errorf("started from %+v", d.s.Child.From)
		}
		d.hear(ChildExited{Code: 1}).pass(time.Minute)
		if d.s.Child.From != nil {
			t.Errorf("a kubelet that was started anew, from %+v", d.s.Child.From)
		}
	})
	t.Run("what falls back", func(t *testing.T) {
		d := good(t)
		d.deadly["other"] = time.Second
		d.assign("other", "cm", "2").pass(10 * time.Second).expect("assigned=other@2 active=one@1 lkg=one@1 False RolledBack run config").fresh()
		d.assign("two", "cm", "3").pass(time.Minute).expectDone("prove two").expect("assigned=two@3 active=two@3 lkg=two@3 True Active")
	})
	t.Run("what is restarted for: another effective configuration", func(t *testing.T) {
		good(t).assign("other", "cm", "2").pass(time.Minute).expectDone("prove other", "stop", "start other")
	})
	t.Run("what is restarted for: one that is not known", func(t *testing.T) {
		good(t).assign("unknown", "cm", "2").pass(time.Minute).expectDone("prove unknown", "stop", "start unknown")
	})
	t.Run("what is restarted for: what runs is not known", func(t *testing.T) {
		d := begin(t).assign("unknown", "cm", "1").pass(time.Minute).fresh()
		d.effect["unknown"] = "same"
		d.assign("two", "cm", "2").pass(time.Minute).expectDone("prove two", "stop", "start two")
	})
	t.Run("what is restarted for: dynamic to local, and back", func(t *testing.T) {
		d := good(t)
		d.effect["local"] = "same"
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectDone("stop", "start local")
		d.assign("two", "cm", "2").pass(time.Minute).expectDone("stop", "start local", "prove two", "stop", "start two")
	})
	t.Run("what is restarted for: another binary", func(t *testing.T) {
		d := good(t).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).fresh()
		d.effect["two "+newerKubelet.Local] = "same"
		d.assign("two", "cm", "2").pass(time.Minute).expectDone("prove two", "stop", "start two")
	})
	t.Run("a refused one that says the same", func(t *testing.T) {
		d := good(t)
		d.refused["two"] = Proof{Outcome: kubeletconfig.Refused, Words: "no", Effective: "same"}
		d.assign("two", "cm", "2").pass(time.Minute).expectDone("prove two").expect("assigned=two@2 active=one@1 lkg=one@1 False Refused validate config")
	})
	t.Run("it comes while the kubelet is being stopped", func(t *testing.T) {
		d := good(t)
		d.decide(assigned("cm", "2", "other"))
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.decide(assigned("cm", "3", "two"))
		d.hear(ChildExited{Asked: true, Code: 143}).pass(time.Minute).expect("assigned=two@3 active=two@3 lkg=one@1 True InTrial")
	})
}

// Drop-in files that change nothing are nothing that waits for a restart.
func TestEqualEffectiveConfigurationsOfLocalFiles(t *testing.T) {
	begin := func(t *testing.T, changes ...func(*Settings)) *drive {
		d := newDrive(t, changes...)
		d.effect["one"], d.effect["one local-2"] = "same", "same"
		return d.boot().assign("one", "cm", "1").pass(11 * time.Minute).fresh()
	}
	changed := LocalChanged{Kubelet: otherDropIns, Local: "local"}
	t.Run("drop-in files", func(t *testing.T) {
		d := begin(t).hear(changed).pass(time.Minute)
		d.expectDone("prove one", "prove local").expect("assigned=one@1 active=one@1 lkg=one@1 True Active")
		if d.s.LocalChangePending() {
			t.Error("it waits for the next start")
		}
		d.crash()
		d.s.OnDisk = otherDropIns
		if d.s.Promoted != (Promotion{Content: "one", Kubelet: otherDropIns}) {
			t.Errorf("promoted is %+v", d.s.Promoted)
		}
	})
	t.Run("drop-in files that change something", func(t *testing.T) {
		d := begin(t)
		d.effect["one local-2"] = "else"
		d.hear(changed).pass(time.Minute)
		if d.expectDone("prove one", "prove local"); !d.s.LocalChangePending() {
			t.Error("it does not wait for the next start")
		}
	})
	t.Run("--follow-local: nothing to follow", func(t *testing.T) {
		begin(t, func(s *Settings) { s.FollowLocal = true }).hear(changed).pass(time.Hour).expectDone("prove one", "prove local")
	})
	t.Run("--follow-local: the local file", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.FollowLocal = true })
		d.effect["local"], d.effect["edited"], d.effect["again"] = "same", "same", "same"
		d.boot().pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expectDone("prove edited", "stop", "start local") // what ran was never told
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "again"}).pass(time.Minute).expectDone("prove edited", "stop", "start local", "prove again")
	})
}

func TestShadowedFields(t *testing.T) {
	shadowed := []nodev1.ShadowedField{{Field: "maxPods", Value: "60", By: "--max-pods", Effective: "20"}, {Field: "podsPerCore", Value: "1", By: "10.conf", Effective: "2"}}
	for name, row := range map[string]struct {
		effective string
		want      string
	}{
		"told by the kubelet": {"told", "Shadowed: maxPods (60) by --max-pods (20), podsPerCore (1) by 10.conf (2)"},
		"our own reading":     {"", "Shadowed: maxPods (60) by --max-pods (20), podsPerCore (1) by 10.conf (2) (by our own reading: the kubelet does not tell)"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			d.effect["one"], d.shadowed = row.effective, shadowed
			d.boot().assign("one").pass(time.Minute).says(`using current (UID: "uid-of-cm"); the assigned configuration is on trial for 10m0s of health; ` + row.want)
			if fields, own := d.s.ShadowedFields(); !reflect.DeepEqual(fields, shadowed) || own != (row.effective == "") {
				t.Errorf("%v, by our own reading: %v", fields, own)
			}
			d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
			if fields, _ := d.s.ShadowedFields(); fields != nil {
				t.Errorf("of local: %v", fields)
			}
		})
	}
	d := newDrive(t).boot().refuse("one", false)
	d.refused["one"] = Proof{Outcome: kubeletconfig.Refused, Words: "no", Shadowed: shadowed}
	if fields, _ := d.assign("one").pass(time.Minute).s.ShadowedFields(); fields != nil {
		t.Errorf("of what is refused: %v", fields)
	}
}
