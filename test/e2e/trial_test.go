//go:build e2e

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// A trial is healthy running time: it goes on over the death of a kubelet and a restart of the supervisor, and at its end the
// configuration is promoted without a restart.
func TestTrial(t *testing.T) {
	n := sharedNode(t)
	flags := []string{"--trial-period=9s"}
	s := n.startedLocal(t, options{Flags: flags})
	config := n.putConfigMap(t, "trial", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 61))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")

	first := s.kubelet(t)
	kill(t, first)
	await(t, "the kubelet that was killed is replaced", func() error { return differs(n.kubelets(t), first) })
	s.kubelet(t)
	await(t, "a third of the trial is over, with one failure", func() error {
		if trial := s.record(t).Trial; trial == nil || time.Duration(trial.Healthy) < 3*time.Second || trial.Failures != 1 {
			return fmt.Errorf("trial %+v", trial)
		}
		return nil
	})
	before := s.record(t).Trial.Healthy
	s.stop(t)

	s = n.startSupervisor(t, options{Flags: flags, After: s})
	begin := time.Now()
	running := s.kubelet(t)
	trial := s.record(t).Trial
	if trial == nil || trial.Healthy < before-core.Span(time.Second) || trial.Failures != 1 {
		t.Fatalf("the trial is %+v after a restart of the supervisor; it had %s of health, and the stop that was asked is no failure", trial, before)
	}
	v = n.awaitReason(t, assignment, "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
	if took := time.Since(begin); took < time.Duration(trial.Left)-time.Second {
		t.Errorf("promoted after %s, though %s of the trial was left", took, trial.Left)
	}
	if now := s.kubelet(t); now.ID != running.ID {
		t.Errorf("the promotion restarted the kubelet: pid %d, then %d", running.ID, now.ID)
	}
}

// A supervisor that is killed leaves its kubelet; the next one puts an end to it, and counts one failure against the trial.
func TestSupervisorKilledInTrial(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=1m"}})
	config := n.putConfigMap(t, "killed", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 62))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "InTrial")
	leftOver := s.kubelet(t)
	s.kill(t)
	if err := syscall.Kill(leftOver.ID, 0); err != nil {
		t.Fatalf("the kubelet with pid %d went with its supervisor: %v", leftOver.ID, err)
	}

	s = n.startSupervisor(t, options{Flags: []string{"--trial-period=3s"}, After: s})
	await(t, "there is one kubelet, another one", func() error { return differs(n.kubelets(t), leftOver) })
	s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 62.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 62", got)
	}
	if trial := s.record(t).Trial; trial != nil && trial.Failures != 1 {
		t.Errorf("the trial has %d failures, want 1 for the supervisor that died in it", trial.Failures)
	}
	holds(t, time.Second, "one kubelet runs", func() error { return differs(n.kubelets(t), leftOver) })
	n.awaitReason(t, assignment, "Active")
}

// kill ends a kubelet as the kernel does when memory is short.
func kill(t *testing.T, p process) {
	t.Helper()
	if err := syscall.Kill(p.ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// differs is nil when exactly one kubelet runs, and not this one.
func differs(found []process, from process) error {
	if len(found) != 1 || found[0].ID == from.ID {
		return fmt.Errorf("kubelets %v; before: pid %d", found, from.ID)
	}
	return nil
}
