package core

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

const goodActive = "assigned=good@1 active=good@1 lkg=good@1 True Active"

// newerKubelet is what a package upgrade leaves on disk while the older one still runs.
var newerKubelet = kubeletconfig.Identity{Binary: "binary-2", Arguments: "arguments-1", Local: "local-1"}

// until answers actions up to one that is as wanted, which is left under way.
func (d *drive) until(what string, wanted func(do Action) bool) {
	d.t.Helper()
	for range 100 {
		if wanted(d.s.Doing) {
			return
		}
		d.decide(d.answer(d.s.Doing))
	}
	d.t.Fatal("never came to " + what)
}

// Events that come while an action is under way: the newest assignment holds, and nothing is forgotten.
func TestInterleaved(t *testing.T) {
	saving := func(content string) func(Action) bool {
		return func(do Action) bool {
			save, is := do.(Save)
			return is && save.Durable.Trial.Content == content
		}
	}
	t.Run("back to what holds while another is being written: the disk follows", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.decide(assigned("newer", "1", "newer"))
		d.disk = d.s.Doing.(Save).Durable
		d.decide(assigned("good", "1", "good"))
		d.hear(Saved{}).pass(time.Minute).expectDone().expect(goodActive)
		if contentOf(d.disk.Assigned) != "good" {
			t.Errorf("on disk is assigned %+v", d.disk.Assigned)
		}
	})
	t.Run("back to what runs while a try of another is being written: its trial goes on", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Minute).fresh()
		d.decide(assigned("newer", "1", "newer"))
		d.until("the try", saving("newer"))
		d.disk = d.s.Doing.(Save).Durable
		d.decide(assigned("good", "1", "good"))
		d.hear(Saved{}).pass(11 * time.Minute).expect(goodActive)
	})
	t.Run("another kubelet binary during a start: the start was with the old one", func(t *testing.T) {
		d := newDrive(t).boot().fresh()
		d.decide(assigned("good", "1", "good"))
		d.until("the start", func(do Action) bool { _, is := do.(Start); return is })
		d.decide(LocalChanged{Kubelet: newerKubelet, Local: "local"})
		d.hear(Started{}).pass(11 * time.Minute).expect(goodActive).expectMessage("LocalChangePending")
	})
	t.Run("a removal during the pre-flight of local is not done before its verdict", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Second)
		d.decide(Cleared{NodeUID: "node-uid"})
		if _, proves := d.s.Doing.(Prove); !proves {
			t.Fatalf("under way is %T", d.s.Doing)
		}
		d.expect("(nothing yet)")
	})
	t.Run("an exit between a stop that is asked for and its end is refunded", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Second)
		d.s.Doing = Save{Durable: d.s.durable()}
		d.decide(StopAsked{})
		d.decide(ChildExited{Code: 143, Words: "exit code 143"})
		d.hear(Saved{})
		if d.disk.Trial.Tries != 0 || d.disk.Trial.Open {
			t.Errorf("on disk is trial %+v", d.disk.Trial)
		}
	})
}

// Verdicts are about the kubelet that runs; what another one on disk would say matters at the next start.
func TestAnotherKubeletOnDisk(t *testing.T) {
	upgraded := LocalChanged{Kubelet: newerKubelet, Local: "local"}
	t.Run("a trial that fails with the old one is held against the content with the old one", func(t *testing.T) {
		d := newDrive(t).boot().fresh()
		d.hangs["slow"] = true
		d.assign("slow").pass(time.Second).hear(upgraded).hear(Retry{Value: "x"})
		d.pass(10 * time.Minute).expect("assigned=slow@1 active=- lkg=- False Rejected run config")
	})
	t.Run("what runs is not stopped because the new one would refuse it", func(t *testing.T) {
		d := newDrive(t).boot().good("good").refuse("bad", false).refuse("good", false)
		d.hear(upgraded).pass(time.Minute).fresh()
		d.assign("bad").pass(5 * time.Minute).expectDone("prove bad").expect("assigned=bad@1 active=good@1 lkg=good@1 False Refused validate config")
	})
	t.Run("retry does not start what runs well on a new trial", func(t *testing.T) {
		d := newDrive(t).boot().good("good").hear(upgraded).hear(Retry{}).pass(time.Minute)
		d.expect(goodActive)
	})
	t.Run("--follow-local: a new trial waits for a disk that can be written", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.FollowLocal = true }).boot().good("good").fresh()
		d.saveErr = errDisk
		d.hear(upgraded).pass(5 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 False InternalError")
		d.saveErr = nil
		d.pass(time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True InTrial")
	})
	t.Run("--follow-local: what is rejected with the new one goes on with the old one", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.FollowLocal = true }).boot().good("good").fresh()
		d.s.Rejected = []Rejection{{Content: "good", Binary: newerKubelet.Binary, Arguments: newerKubelet.Arguments}}
		d.hear(upgraded).pass(5 * time.Minute).expect(goodActive)
	})
}

// Rule 9: a removal waits while local would be refused.
func TestRemovalWaitsForLocal(t *testing.T) {
	waiting := func(t *testing.T) *drive {
		d := newDrive(t).boot().good("good").refuse("broken", false)
		return d.hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).fresh()
	}
	mended := LocalChanged{Kubelet: testKubelet, Local: "mended"}
	t.Run("over an exit of the kubelet", func(t *testing.T) {
		d := waiting(t)
		d.hear(ChildExited{Code: 0}).pass(time.Minute).expectDone("start good").expect("assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken")
		d.fresh().hear(mended).pass(time.Minute).expectDone("prove mended", "stop", "start local").expect(nothing)
	})
	t.Run("over a Node that is re-created", func(t *testing.T) {
		d := waiting(t)
		d.hear(Cleared{NodeUID: "another"}).pass(time.Minute).hear(mended).pass(time.Minute).expect(nothing)
	})
}

// --edit-spread is for healthy nodes that share a ConfigMap: an edit that mends is not kept waiting.
func TestEditSpreadOfTheUnwell(t *testing.T) {
	anHour := func(s *Settings) { s.EditSpread = time.Hour }
	t.Run("the older edit never became healthy", func(t *testing.T) {
		d := newDrive(t, anHour).boot()
		d.hangs["one"] = true
		d.assign("one", "cm", "1").pass(5 * time.Second).fresh()
		d.assign("two", "cm", "2").pass(5*time.Second).expectDone("prove two", "stop", "start two")
	})
	t.Run("the older edit fails while the newer one waits", func(t *testing.T) {
		d := newDrive(t, anHour).boot().pass(time.Minute)
		d.lease["one"] = false
		d.assign("one", "cm", "1").pass(5 * time.Second).fresh()
		d.assign("two", "cm", "2").pass(65*time.Second).expectDone("prove two", "stop", "start two")
	})
	t.Run("equal content in between gives no other turn", func(t *testing.T) {
		d := newDrive(t, anHour).boot()
		d.assign("one", "cm", "1").pass(5*time.Second).edit("one", "2").pass(5 * time.Second)
		d.expect("assigned=one@2 active=one@2 lkg=- True InTrial")
		d.edit("two", "3").pass(5 * time.Second).expect("assigned=two@3 active=one@2 lkg=- Unknown Applying")
	})
}

func TestVerdictsOfThePast(t *testing.T) {
	t.Run("retry forgets also the verdict on what is assigned a moment later", func(t *testing.T) {
		d := newDrive(t).boot()
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(2 * time.Minute).assign("good").pass(time.Minute)
		clear(d.deadly)
		d.fresh().hear(Retry{Value: "both"}).assign("bad").pass(time.Minute).expect("assigned=bad@1 active=bad@1 lkg=- True InTrial")
	})
	t.Run("another assignment during the control leaves it without verdict", func(t *testing.T) {
		d := newDrive(t).boot()
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(8 * time.Second).expect("assigned=bad@1 active=- lkg=- False RolledBack run config")
		d.assign("good").pass(time.Minute)
		if len(d.s.Rejected) > 0 {
			t.Errorf("rejected without a control: %+v", d.s.Rejected)
		}
	})
	t.Run("a lost checkpoint is downloaded again, and is lastKnownGood again", func(t *testing.T) {
		d := seeded(t, func(d *drive) {
			d.good("good")
			broken := &Version{Source: d.disk.Assigned.Source}
			d.disk.Assigned, d.disk.LastKnownGood = broken, broken
		})
		d.crash().assign("good").pass(time.Minute).expect(goodActive)
		d.fresh().refuse("bad", true).assign("bad").pass(time.Minute)
		d.expectDone("prove bad").expect("assigned=bad@1 active=good@1 lkg=good@1 False Refused load config")
	})
	t.Run("no more pre-flight with this kubelet: what it blamed on the environment is forgotten", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.refused["local-b"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "local-b"}).pass(15 * time.Second)
		d.expect("assigned=good@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing")
		delete(d.refused, "local-b")
		d.s.Doing = Prove{Kubelet: testKubelet, Local: "local-b"}
		proof := Proof{Content: "local-b", Kubelet: testKubelet, Outcome: kubeletconfig.Unknown, Words: "went on"}
		d.hear(Proved{Proof: proof, NoMorePreflight: true}).pass(time.Minute).expect(goodActive)
	})
}
