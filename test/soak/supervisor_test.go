//go:build linux

package main

import (
	"os"
	"os/exec"
	"testing"
)

// Only a supervisor that is neither frozen nor asked to end answers for a kubelet that is missing.
func TestWhichSupervisorIsAble(t *testing.T) {
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	s := &service{}
	if s.able() {
		t.Error("able, and none runs")
	}
	s.process = command.Process
	for _, test := range []struct {
		sent signalName
		able bool
	}{{"", true}, {"STOP", false}, {"CONT", true}, {"KILL", false}} {
		if test.sent != "" {
			if err := s.signal(t.Context(), test.sent); err != nil {
				t.Fatal(err)
			}
		}
		if s.able() != test.able {
			t.Errorf("after %q: able is %v", test.sent, s.able())
		}
	}
}

// A supervisor that was frozen and let go on has not ended by that.
func TestFreezingIsNoReasonToEnd(t *testing.T) {
	s := &service{process: &os.Process{Pid: -1}}
	for _, sent := range []signalName{"STOP", "CONT"} {
		_ = s.signal(t.Context(), sent)
	}
	if len(s.signals) > 0 {
		t.Errorf("signals that end it: %q", s.signals)
	}
	if err := s.rested(t.Context()); err != nil {
		t.Error(err)
	}
}
