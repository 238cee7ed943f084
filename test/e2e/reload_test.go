//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// An upgrade in the middle of a trial: the real kubelet notices nothing, the trial goes on, a broken program is refused, and the exit
// status of the kubelet is still had.
func TestUpgradeInPlace(t *testing.T) {
	n := sharedNode(t)
	program := filepath.Join(t.TempDir(), "kubelet-supervisor")
	whole, err := os.ReadFile(supervisorBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	install := func(content []byte) {
		t.Helper()
		if err := errors.Join(os.WriteFile(program+".new", content, 0o755), os.Rename(program+".new", program)); err != nil {
			t.Fatal(err)
		}
	}
	install(whole)
	s := n.startedLocal(t, options{Binary: program, Flags: []string{"--trial-period=1h"}})
	assignment := n.putConfigMap(t, "reload", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 77))}).assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "InTrial")
	kubelet, trial, configz := s.kubelet(t), s.record(t).Trial, s.configz(t)

	s.binary = supervisorBinary(t) // of the commands
	install(whole[:len(whole)/3])
	if stdout, stderr, code := s.run(t, "reload"); code != 70 || !strings.Contains(stderr, "the reload was refused and the running program goes on") {
		t.Errorf("a broken program: code %d, %s%s", code, stdout, stderr)
	}
	install(whole)
	for range 3 {
		if stdout, stderr, code := s.run(t, "reload"); code != 0 {
			t.Fatalf("code %d, %s%s", code, stdout, stderr)
		}
	}
	if after := s.kubelet(t); after.ID != kubelet.ID {
		t.Errorf("the kubelet was process %d and is %d", kubelet.ID, after.ID)
	}
	if after := s.configz(t); !reflect.DeepEqual(after, configz) {
		t.Errorf("its configuration changed: %v", after)
	}
	n.awaitReason(t, assignment, "InTrial")
	if record := s.record(t); record.Supervisor.PID != s.pid() || record.Trial == nil || record.Trial.Healthy < trial.Healthy || record.Reloads != 4 {
		t.Errorf("after it: %+v", record)
	}

	if err := syscall.Kill(kubelet.ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "another kubelet", func() error {
		if record := s.record(t); record.Child == nil || record.Child.PID == kubelet.ID || !record.Healthy {
			return fmt.Errorf("%+v", record.Child)
		}
		return nil
	})
	if exits := s.record(t).Exits; !strings.Contains(exits[len(exits)-1].Words, "killed by SIGKILL") {
		t.Errorf("its exit: %+v", exits)
	}
}
