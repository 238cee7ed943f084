package core

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// What is taken for what runs, and what is not (rule 5). Configurations one and two, and local, come to the same effective one; one runs.
func TestWhatIsTakenForWhatRuns(t *testing.T) {
	moreDropIns := kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-1", Local: "local-3"}
	changed := func(kubelet kubeletconfig.Identity) LocalChanged {
		return LocalChanged{Kubelet: kubelet, Local: "local"}
	}
	begin := func(t *testing.T, changes ...func(*Settings)) *drive {
		d := newDrive(t, changes...)
		d.effect["one"], d.effect["two"], d.effect["local"] = "same", "same", "same"
		return d.boot().assign("one", "cm", "1").pass(6 * time.Minute).fresh()
	}
	follow := func(s *Settings) { s.FollowLocal = true }
	t.Run("local is restarted for, and so is a way back from it", func(t *testing.T) {
		d := begin(t).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectDone("stop", "start local")
		d.fresh().assign("two", "cm", "2").pass(time.Minute).expectDone("prove two", "stop", "start two")
	})
	t.Run("so is another command line", func(t *testing.T) {
		d := begin(t).hear(changed(kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-2", Local: "local-1"})).fresh()
		d.assign("two", "cm", "2").pass(time.Minute).expectDone("prove two", "stop", "start two")
	})
	t.Run("drop-in files that change nothing, in a trial: it goes on", func(t *testing.T) {
		d := begin(t)
		d.effect["one "+otherDropIns.Local] = "same"
		d.hear(changed(otherDropIns)).pass(5 * time.Minute).expect("assigned=one@1 active=one@1 lkg=one@1 True Active")
	})
	t.Run("the turn that it would have had is no other's", func(t *testing.T) {
		d := begin(t, follow, func(s *Settings) { s.EditSpread = time.Hour }).edit("two", "2").pass(time.Second)
		d.expectDone("prove two").fresh().hear(changed(otherDropIns)).pass(5*time.Second).expectDone("prove two", "stop", "start two")
	})
	t.Run("what is being stopped earns nothing more", func(t *testing.T) {
		d := begin(t, follow)
		d.effect["one "+moreDropIns.Local], d.effect["one "+otherDropIns.Local] = "same", "else"
		d.pass(5 * time.Minute).hear(changed(moreDropIns)).pass(time.Minute).hear(changed(testKubelet)).pass(time.Minute).fresh()
		d.decide(changed(otherDropIns))
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.decide(changed(moreDropIns))
		d.hear(d.answer(d.s.Doing)).pass(time.Minute).expectDone("prove one", "stop", "start one").expect("assigned=one@1 active=one@1 lkg=one@1 True InTrial")
	})
	t.Run("a refused local file is not, whatever it says", func(t *testing.T) {
		d := newDrive(t)
		d.effect["local"] = "same"
		d.refused["edited"] = Proof{Outcome: kubeletconfig.Refused, Words: "no", Effective: "same"}
		d.boot().good("good").hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute).expectDone("prove edited")
		if !d.s.LocalChangePending() {
			t.Error("it is not pending")
		}
	})
}

// Without fields that are shadowed there is nothing to say of how they are known.
func TestNothingIsShadowed(t *testing.T) {
	for name, d := range map[string]*drive{
		"nothing assigned": newDrive(t).boot(),
		"refused":          newDrive(t).boot().refuse("one", false).assign("one").pass(time.Minute),
	} {
		if fields, own := d.s.ShadowedFields(); fields != nil || own {
			t.Errorf("%s: %q, by our own reading: %t", name, fields, own)
		}
	}
}
