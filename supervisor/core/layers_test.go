package core

import (
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// over is what the layers of a version are over the node's own file: NAME/FILE, or NAME alone where the file makes no difference to them.
func (d *drive) over(v Version) *Version {
	v.Content, v.Base = v.Source.Name+"/"+d.own, d.own
	if strings.HasPrefix(v.Source.Name, "all-") {
		v.Content = v.Source.Name
	}
	return &v
}

// layers assigns layers that lie over the node's own file.
func (d *drive) layers(name, rv string) *drive {
	a := assigned(name, rv, "")
	a.Version = *d.over(a.Version)
	return d.hear(a)
}

// ownFile changes the node's own file.
func (d *drive) ownFile(content string) *drive {
	d.own = content
	return d.hear(LocalChanged{Kubelet: testKubelet, Local: content})
}

// goodLayers are what runs, and passed their trial.
func goodLayers(t *testing.T, changes ...func(*Settings)) *drive {
	return newDrive(t, changes...).boot().layers("lay", "1").pass(testSettings.TrialPeriod + time.Minute).
		expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active").fresh()
}

func (d *drive) crashes() *drive {
	return d.hear(ChildExited{Code: 1, Words: "exit code 1", Delay: time.Second}).pass(5 * time.Second)
}

// A node's own file that changes is another configuration for the layers over it: proven at once, taken at the next start, and then on trial.
func TestTheFileUnderLayersChanges(t *testing.T) {
	t.Run("taken at the next start", func(t *testing.T) {
		d := goodLayers(t).ownFile("edited").pass(time.Minute)
		d.expectDone("merge lay", "prove lay/edited", "prove edited").expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active")
		d.expectMessage("LocalChangePending")
		d.fresh().crashes().expectDone("start lay/edited").expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/local@1 True InTrial")
		d.pass(testSettings.TrialPeriod + time.Minute).expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/edited@1 True Active")
	})
	t.Run("the merge that was good is its fallback", func(t *testing.T) {
		d := goodLayers(t).ownFile("edited").pass(time.Minute).fresh()
		d.deadly["lay/edited"] = time.Second
		d.crashes().pass(time.Minute).expect("assigned=lay/edited@1 active=lay/local@1 lkg=lay/local@1 False Rejected run config")
		if base := d.s.Child.Version.Base; base != "local" {
			t.Errorf("it runs over %q", base)
		}
	})
	t.Run("and local alone the last", func(t *testing.T) {
		d := goodLayers(t).ownFile("edited").pass(time.Minute).fresh()
		d.deadly["lay/edited"], d.deadly["lay/local"] = time.Second, time.Second
		d.crashes().pass(5 * time.Minute)
		if !d.s.Child.Alive || d.s.Child.Version != nil {
			t.Errorf("%s runs: %q", nameOf(d.s.Child.Version), d.did)
		}
	})
	t.Run("at a boot", func(t *testing.T) {
		d := goodLayers(t)
		d.own = "edited"
		d.boot().expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/local@1 True InTrial").expectDone("prove lay/edited", "start lay/edited")
	})
	t.Run("with --follow-local", func(t *testing.T) {
		d := goodLayers(t, func(s *Settings) { s.FollowLocal, s.EditSpread = true, time.Minute }).ownFile("edited").pass(2 * time.Minute)
		d.expectDone("merge lay", "prove lay/edited", "prove edited", "stop", "start lay/edited").expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/local@1 True InTrial")
	})
	t.Run("with --follow-local over running pods", func(t *testing.T) {
		d := goodLayers(t, holding, func(s *Settings) { s.FollowLocal = true })
		d.kills["lay/edited"] = 2
		d.ownFile("edited").pass(time.Minute).expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 False WouldDisrupt")
		d.approve().pass(time.Minute).expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/local@1 True InTrial")
	})
	t.Run("during a trial", func(t *testing.T) {
		d := newDrive(t).boot().layers("lay", "1").pass(testSettings.TrialPeriod / 2).fresh().ownFile("edited")
		d.pass(testSettings.TrialPeriod/2+time.Minute).expectDone("merge lay", "prove lay/edited", "prove edited")
		d.expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active").expectMessage("LocalChangePending")
	})
	t.Run("and back", func(t *testing.T) {
		d := goodLayers(t).ownFile("edited").pass(time.Minute).ownFile("local").pass(time.Minute).fresh()
		if d.s.LocalChangePending() {
			t.Error("a change is pending")
		}
		d.crashes().expectDone("start lay/local").expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active")
	})
	t.Run("to the same result", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.FollowLocal = true }).boot().layers("all-set", "1").pass(testSettings.TrialPeriod + time.Minute).fresh()
		d.ownFile("edited").pass(time.Minute).expectDone("merge all-set", "prove edited")
		d.expect("assigned=all-set@1 active=all-set@1 lkg=all-set@1 True Active")
		if base := d.s.Assigned.Base; base != "edited" || mergePending(&d.s) {
			t.Errorf("assigned lies over %q", base)
		}
	})
	t.Run("to what the kubelet takes for the same", func(t *testing.T) {
		d := newDrive(t).boot()
		d.effect["lay/local"], d.effect["lay/edited"] = "same", "same"
		d.layers("lay", "1").pass(testSettings.TrialPeriod + time.Minute).fresh().ownFile("edited").pass(time.Minute)
		d.expectDone("merge lay", "prove lay/edited", "prove edited").expect("assigned=lay/edited@1 active=lay/edited@1 lkg=lay/edited@1 True Active")
	})
	t.Run("heard of with the assignment", func(t *testing.T) {
		d := goodLayers(t)
		d.own = "edited"
		d.layers("lay", "1").hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute)
		d.expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active").expectMessage("LocalChangePending")
	})
}

// The layers over the changed file are refused: what runs goes on, and is started again as it was.
func TestTheFileUnderLayersIsBad(t *testing.T) {
	t.Run("with the layers", func(t *testing.T) {
		d := goodLayers(t).refuse("lay/edited", false).ownFile("edited").pass(time.Minute)
		d.expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 True Active").expectMessage("which would be refused: the kubelet says no")
		d.fresh().crashes().expectDone("start lay/local")
	})
	t.Run("alone", func(t *testing.T) {
		d := goodLayers(t)
		d.broken["broken"] = true
		d.refuse("broken", true).ownFile("broken").pass(time.Minute).expect("assigned=lay/local@1 active=lay/local@1 lkg=lay/local@1 False FallbackBroken")
		d.fresh().crashes().expectDone("start lay/local")
		d.own = "mended"
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "mended"}).pass(time.Minute).fresh().crashes().expectDone("start lay/mended")
	})
	t.Run("in a trial, with nothing but that file to go back to", func(t *testing.T) {
		d := newDrive(t).boot().layers("lay", "1").pass(20 * time.Second)
		d.refused["lay/broken"] = Proof{Outcome: kubeletconfig.Environment, Words: "the kubelet says no"}
		d.refuse("broken", false).ownFile("broken").pass(time.Minute).expect("assigned=lay/local@1 active=lay/local@1 lkg=- Unknown EnvironmentFailing")
		d.fresh().crashes().expectDone("start lay/local")
		d.ownFile("mended").pass(time.Minute).fresh().crashes().expectDone("start lay/mended")
	})
	t.Run("at a boot", func(t *testing.T) {
		d := goodLayers(t)
		d.own = "broken"
		d.disk.Assigned = &Version{Source: d.disk.Assigned.Source, Base: "unusable"}
		d.s = New(d.s.Settings)
		d.broken["broken"] = true
		d.refuse("broken", true).hear(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "broken", BootID: "boot-1"}).pass(time.Minute)
		d.expect("assigned=@1 active=lay/local@1 lkg=lay/local@1 False FallbackBroken load config").expectMessage("cannot be laid over the local configuration: it does not decode")
		d.fresh().ownFile("mended").pass(time.Minute).expect("assigned=lay/mended@1 active=lay/mended@1 lkg=lay/local@1 True InTrial")
	})
	t.Run("at a boot in a trial", func(t *testing.T) {
		d := newDrive(t).boot().layers("lay", "1").pass(20 * time.Second)
		d.refused["lay/broken"] = Proof{Outcome: kubeletconfig.Environment, Words: "the kubelet says no"}
		d.refuse("broken", false)
		d.own, d.s = "broken", New(d.s.Settings)
		d.fresh().hear(Booted{Disk: d.disk, Kubelet: testKubelet, Local: "broken", BootID: "boot-1"}).pass(5 * time.Second)
		d.expectDone("merge lay", "prove lay/broken", "start lay/local")
		d.fresh().ownFile("mended").pass(time.Minute).fresh().crashes().expectDone("start lay/mended")
	})
	t.Run("at the assignment", func(t *testing.T) {
		problem := Problem{OfNode: true, Error: "failed to sync: internal failure, see Kubelet log for details", Words: "no base"}
		d := newDrive(t).boot().good("good").hear(SyncFailed{Text: "x", Problem: problem})
		d.expect("assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken sync: internal failure").expectMessage("no base", "correct the local configuration")
	})
}

// What was refused is looked at again when the file under it is another one.
func TestTheFileUnderRefusedLayersIsMended(t *testing.T) {
	d := newDrive(t).boot().good("good").refuse("lay/local", false).layers("lay", "1").pass(time.Minute).expect("assigned=lay/local@1 active=good@1 lkg=good@1 False Refused validate config")
	d.fresh().ownFile("edited").pass(time.Minute).expect("assigned=lay/edited@1 active=lay/edited@1 lkg=good@1 True InTrial")
}

// Where the node's own file alone is refused, the layers are not to blame.
func TestRefusedOverABrokenFile(t *testing.T) {
	d := newDrive(t).boot().good("good").refuse("lay/broken", false).refuse("broken", false).ownFile("broken").layers("lay", "1").pass(time.Minute)
	d.expect("assigned=lay/broken@1 active=good@1 lkg=good@1 False FallbackBroken validate config")
}

// A refusal is told first, and then which layer it is about.
func TestWhichLayerIsToBlame(t *testing.T) {
	refused := func(t *testing.T, layers int) *drive {
		d := newDrive(t).boot().good("good")
		d.refused["lay/local"] = Proof{Outcome: kubeletconfig.Refused, Words: "the kubelet says no", Layers: layers}
		d.guilty = "without layer gpu, it would be accepted"
		return d.fresh().layers("lay", "1")
	}
	d := refused(t, 3)
	d.expect("assigned=lay/local@1 active=good@1 lkg=good@1 False Refused validate config").expectDone("prove lay/local", "blame lay/local")
	d.expectMessage("is refused: without layer gpu, it would be accepted: the kubelet says no").pass(time.Hour).expectDone("prove lay/local", "blame lay/local")
	d = refused(t, 0)
	d.pass(time.Hour).expectDone("prove lay/local")
}

// While it is being found out, nothing else waits.
func TestBlameIsGivenUp(t *testing.T) {
	d := newDrive(t).boot().good("good")
	d.refused["lay/local"] = Proof{Outcome: kubeletconfig.Refused, Words: "no", Layers: 3}
	d.fresh()
	d.guilty = "without layer gpu, it would be accepted"
	a := assigned("lay", "1", "")
	a.Version = *d.over(a.Version)
	d.decide(a)
	d.until("it is found out who is to blame", func(do Action) bool { _, is := do.(Blame); return is })
	late := d.answer(d.s.Doing)
	d.hear(assigned("newer", "1", "newer"))
	d.decide(late)
	d.pass(time.Minute).expect("assigned=newer@1 active=newer@1 lkg=good@1 True InTrial")
}

// An edit of a layer, a removal and another assignment go as ever, whatever waits of the node's own file.
func TestAssignmentsOverPendingMerges(t *testing.T) {
	pending := func(t *testing.T) *drive { return goodLayers(t).ownFile("edited").pass(time.Minute).fresh() }
	t.Run("removed", func(t *testing.T) {
		pending(t).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect("assigned=- active=- lkg=- True Local")
	})
	t.Run("another", func(t *testing.T) {
		pending(t).assign("other").pass(time.Minute).expect("assigned=other@1 active=other@1 lkg=lay/local@1 True InTrial")
	})
	t.Run("edited", func(t *testing.T) {
		pending(t).layers("lay", "2").pass(time.Minute).expect("assigned=lay/edited@2 active=lay/edited@2 lkg=lay/local@1 True InTrial")
	})
}
