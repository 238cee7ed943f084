package core

import (
	"testing"
	"time"
)

// A kubelet that stops feeding its watchdog is made to say what it hangs at and ended. Its end is an exit that nobody asked for.
func TestAKubeletThatHangs(t *testing.T) {
	hung := Hung{Words: "no watchdog ping for more than 30s"}
	t.Run("outside a trial it is restarted, with backoff", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.hear(hung).pass(100 * time.Millisecond).expectDone("dump")
		if d.s.Exit != hung.Words {
			t.Errorf("its exit: %q", d.s.Exit)
		}
		d.pass(time.Minute).expectDone("dump", "start good").expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("so is local, the last fallback", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.hear(hung).pass(time.Minute).expectDone("dump", "start local").expect("assigned=- active=- lkg=- True Local")
	})
	t.Run("in a trial it is a failure, the third rolls back", func(t *testing.T) {
		d := newDrive(t).boot().assign("bad").pass(time.Minute).fresh()
		for range testSettings.TrialFailures {
			d.hear(hung).pass(time.Minute)
		}
		d.expectDone("dump", "start bad", "dump", "start bad", "dump", "start local")
		d.pass(10 * time.Minute).expect("assigned=bad@1 active=- lkg=- False Rejected run config").expectMessage("no watchdog ping")
	})
	t.Run("five times within 10 min try the next fallback", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		for range exitLimit {
			d.hear(hung).pass(time.Minute)
		}
		d.expectDone("dump", "start good", "dump", "start good", "dump", "start good", "dump", "start good", "dump", "start local")
	})
	t.Run("an exit with 0 after the dump counts all the same", func(t *testing.T) {
		d := newDrive(t).boot().assign("bad").pass(time.Minute)
		d.decide(hung)
		d.hear(ChildExited{Code: 0, Words: hung.Words, Delay: time.Second})
		if failures := d.s.Trial.Tries; d.s.Trial.Open || failures != 1 {
			t.Errorf("%d failures, %+v", failures, d.s.Trial)
		}
	})
	t.Run("a host that shuts down is left alone", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.hear(HostStopping{}).hear(hung).pass(time.Minute).expectDone()
		d.hear(HostStopping{CalledOff: true}).expectDone("dump")
	})
	t.Run("an asked stop is an asked stop", func(t *testing.T) {
		d := newDrive(t).boot().assign("good").pass(time.Minute).hear(HostStopping{}).hear(hung).fresh()
		d.hear(StopAsked{}).expectDone("stop", "exit")
		if d.disk.Trial.Tries != 0 {
			t.Errorf("the try was not refunded: %+v", d.disk.Trial)
		}
	})
	t.Run("what comes too late is about nobody", func(t *testing.T) {
		d := newDrive(t).boot().assign("bad").pass(time.Minute)
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Minute}).fresh()
		d.hear(hung).pass(30 * time.Second).expectDone()
		d.pass(time.Minute).expectDone("start bad")
	})
}
