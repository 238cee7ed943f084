package core

import (
	"testing"
	"time"
)

// A disk that cannot be written applies nothing new and stops nothing old.
func TestUnwritableDisk(t *testing.T) {
	t.Run("a new assignment waits", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.saveErr = errDisk
		d.assign("better").pass(time.Minute).expectDone().expect("assigned=good@1 active=good@1 lkg=good@1 False InternalError").expectMessage("no space left")
		d.saveErr = nil
		d.pass(time.Minute).expectDone("prove better", "stop", "start better").expect("assigned=better@1 active=better@1 lkg=good@1 True InTrial")
	})
	t.Run("a rollback does not", func(t *testing.T) {
		d := newDrive(t).boot().good("good").assign("slow").fresh()
		d.saveErr, d.hangs["slow"] = errDisk, true
		d.s.Child.Healthy, d.s.Child.EverHealthy = false, false
		d.pass(3*time.Minute).expectDone("stop", "start good")
	})
	t.Run("a reset does not", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.saveErr = errDisk
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second).expectDone("stop", "start local")
	})
	t.Run("a start at boot does not: lastKnownGood, for tries cannot be counted", func(t *testing.T) {
		d := seeded(t, func(d *drive) { d.good("good").assign("young").pass(time.Second) })
		d.saveErr = errDisk
		d.crash().pass(time.Second).expectDone("start good")
	})
}

// A state folder that cannot be used at all: the kubelet runs its local configuration, and the Node says why.
func TestUselessStateFolder(t *testing.T) {
	d := newDrive(t)
	d.saveErr = errDisk
	d.hear(Booted{Kubelet: testKubelet, Local: "local", Useless: "not a folder"}).pass(time.Second)
	d.expectDone("start local").expect("assigned=- active=- lkg=- False InternalError").expectMessage("not a folder")
	d.assign("good").pass(time.Hour).expectDone("start local")
}

// Rule 2: a version whose file cannot be made is passed over, and taken again when its checkpoint was written anew.
func TestSpoiltFile(t *testing.T) {
	d := newDrive(t).boot().good("good").assign("young").pass(time.Minute).fresh()
	d.startErr = map[string]error{"young": errDisk, "good": errDisk}
	d.hear(ChildExited{Code: 0}).pass(time.Second).expectDone("start young", "start good", "start local").
		expect("assigned=young@1 active=- lkg=good@1 False LastKnownGoodFailed load config").expectMessage("no space left")
	d.startErr = nil
	d.fresh().assign("young").pass(time.Second).expectDone("stop", "start young").expect("assigned=young@1 active=young@1 lkg=good@1 True InTrial")
}
