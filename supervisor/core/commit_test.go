package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// What the shell is told to do, in full.
func TestActions(t *testing.T) {
	good, young := version("good", "1", "good"), version("young", "1", "young")
	start := func(v, fallback *Version, onTrial bool) Start {
		return Start{Version: v, Fallback: fallback, OnTrial: onTrial, Kubelet: testKubelet, Local: "local"}
	}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want Action
	}{
		{"local is started without a fallback", func(d *drive) { d.hear(ChildExited{}) }, start(nil, nil, false)},
		{"a new one is started on trial, local is its fallback", func(d *drive) { d.assign("young") }, start(young, nil, true)},
		{"or the last known good one is", func(d *drive) { d.good("good").assign("young") }, start(young, good, true)},
		{"the last known good one is on no trial, and local is its fallback", func(d *drive) { d.good("good").hear(ChildExited{}) }, start(good, nil, false)},
		{"a last known good one that is refused is no fallback", func(d *drive) {
			d.good("good")
			d.s.Proofs = append(d.s.Proofs, Proof{Content: "good", Kubelet: newerKubelet, Outcome: kubeletconfig.Refused})
			d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).assign("young")
		}, Start{Version: young, OnTrial: true, Kubelet: newerKubelet, Local: "local"}},
		{"a new one is proved beside local", func(d *drive) { d.assign("young") },
			Prove{Version: young, Kubelet: testKubelet, Local: "local"}},
		{"or beside the last known good one", func(d *drive) { d.good("good").assign("young") },
			Prove{Version: young, Control: good, Kubelet: testKubelet, Local: "local"}},
		{"local is proved beside what should run", func(d *drive) {
			d.good("good").hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute)
		},
			Prove{Control: good, Kubelet: testKubelet, Local: "edited"}},
		{"or alone", func(d *drive) { d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute) },
			Prove{Alone: true, Kubelet: testKubelet, Local: "edited"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			got := d.actions[reflect.TypeOf(row.want)]
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("%+v\nwant %+v", got, row.want)
			}
		})
	}
}

// What is done when nothing may be done, and what is told only once it is time.
func TestCommit(t *testing.T) {
	t.Run("nothing before the state on the disk is known", func(t *testing.T) {
		d := newDrive(t)
		d.hear(assigned("good", "1", "good")).hear(Retry{}).hear(LeaseSeen{Reachable: true})
		d.expectDone().expect("(nothing yet)").hear(Booted{Kubelet: testKubelet, Local: "local"}).expectDone("prove good", "start good")
	})
	t.Run("but the supervisor may be asked to stop", func(t *testing.T) {
		newDrive(t).hear(StopAsked{}).expectDone()
	})
	t.Run("an edit whose turn has come is a young change again", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		d.assign("one", "cm", "1").pass(time.Minute).edit("two", "2").pass(spread("node-uid", "2", time.Hour) - time.Millisecond)
		d.now += time.Millisecond
		d.decide(Ticked{})
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.expect("(nothing yet)").now += 2 * time.Second
		d.decide(Ticked{})
		d.expect("assigned=two@2 active=one@1 lkg=one@1 Unknown Applying").expectMessage("a change is under way")
	})
	t.Run("a reset when its time has come is on the disk to the letter", func(t *testing.T) {
		d := newDrive(t)
		d.cluster = []string{"key"}
		d.boot().hear(Retry{Value: "asked"}).good("good").refuse("bad", false).assign("bad").pass(time.Minute)
		d.s.Asides, d.s.Excuses = []Aside{{BootID: "boot-1"}}, Excuses{"good", 2}
		d.s.Rejected, d.s.Suspects = []Rejection{{Content: "worse"}}, []Suspect{{Version: *version("other", "1", "other")}}
		proofs := d.disk.Proofs
		d.hear(Cleared{NodeUID: "another", Text: "local"}).pass(time.Minute).expect(nothing)
		want := Durable{Proofs: proofs, Account: Account{NodeUID: "another", Retry: "asked", Cluster: []string{"key"}, Renews: true, Before: Conditions{Known: true}, Asides: []Aside{{BootID: "boot-1"}}}}
		if !reflect.DeepEqual(d.disk, want) {
			t.Errorf("on disk: %+v\n   want: %+v", d.disk, want)
		}
	})
}

// Events in full: their type, reason and message.
func TestEventsInFull(t *testing.T) {
	const bad, good = "kube-system/bad/kubelet (UID uid-of-cm, resourceVersion 1)", "kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1)"
	change := func(v *Version) NodeEvent { return NodeEvent{"Normal", "KubeletConfigChanged", changeMessage(v)} }
	for _, row := range []struct {
		name string
		when func(d *drive)
		want []NodeEvent
	}{
		{"a promotion", func(d *drive) { d.good("good") }, []NodeEvent{change(version("good", "1", "good")),
			{"Normal", "KubeletConfigPromoted", good + " passed its trial and is the last known good configuration"}}},
		{"a refusal", func(d *drive) { d.refuse("bad", true).assign("bad") }, []NodeEvent{{"Warning", "KubeletConfigRefused", bad + " is refused: the kubelet says no"}}},
		{"a rollback to local, and its verdict", func(d *drive) { d.deadly["bad"] = time.Second; d.assign("bad").pass(time.Minute) }, []NodeEvent{
			change(version("bad", "1", "bad")),
			{"Warning", "KubeletConfigRolledBack", bad + " exited 3 times in its trial: exit code 1: it is deadly; falling back to the local configuration"},
			{"Warning", "KubeletConfigRejected", bad + " is rejected: exited 3 times in its trial: exit code 1: it is deadly; the fallback runs well"}}},
		{"a rollback to the last known good one", func(d *drive) {
			d.good("good").fresh().deadly["bad"] = time.Second
			d.assign("bad").pass(9 * time.Second)
		}, []NodeEvent{
			change(version("bad", "1", "bad")),
			{"Warning", "KubeletConfigRolledBack", bad + " exited 3 times in its trial: exit code 1: it is deadly; falling back to " + good}}},
		{"a lost assignment, once", func(d *drive) {
			d.good("good").fresh().hear(Cleared{NodeUID: "another"}).hear(Cleared{NodeUID: "another"})
		}, []NodeEvent{{"Warning", "AssignmentLost", "the Node was re-created without its assignment; the kubelet keeps " + good}}},
		{"a reset", func(d *drive) { d.good("good").fresh().hear(Cleared{Text: "local"}) }, []NodeEvent{change(nil)}},
		{"local is changed by hand: a refusal of it is no event of an assignment", func(d *drive) {
			d.good("good").fresh().refuse("edited", false).hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(time.Minute)
		}, nil},
		{"what was not renderable runs again: from local back to the last known good one", func(d *drive) {
			d.good("good").refuse("bad", false).assign("bad")
			d.startErr = map[string]error{"good": errDisk}
			d.hear(ChildExited{}).pass(time.Minute).fresh().startErr = nil
			d.hear(Retry{})
		}, []NodeEvent{{"Warning", "KubeletConfigRefused", bad + " is refused: the kubelet says no"}, change(version("good", "1", "good"))}},
		{"a newer one comes as the older one fails", func(d *drive) {
			d.hangs["bad"] = true
			d.assign("bad").pass(119 * time.Second).fresh().decide(assigned("good", "1", "good"))
			d.now += 2 * time.Second
			d.decide(Ticked{})
			d.hear(Saved{})
		}, []NodeEvent{{"Warning", "KubeletConfigRolledBack", bad + " not healthy within 2m0s of its start; falling back to the local configuration"},
			change(version("good", "1", "good"))}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			if !reflect.DeepEqual(d.told, row.want) {
				t.Errorf("told: %+v\nwant: %+v", d.told, row.want)
			}
		})
	}
}
