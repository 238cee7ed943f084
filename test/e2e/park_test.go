//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// otherPorts keep nothing apart: two kubelets of which one has them would both be well on this node.
var otherPorts = changes(with("port", 10350), with("readOnlyPort", 0))

// locks are the kubelets of this node that are past its lock, or were not given it, and those that were given it and do not hold it.
func (s *supervised) locks(t *testing.T) (past, wait []int) {
	t.Helper()
	file := filepath.Join(s.StateDir, "kubelet.lock")
	for _, kubelet := range s.node.kubelets(t) {
		holds := !slices.Contains(kubelet.Arguments, "--lock-file="+file)
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", kubelet.ID))
		for _, path := range files {
			info, _ := os.ReadFile(path)
			target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", kubelet.ID, filepath.Base(path)))
			holds = holds || strings.TrimSuffix(target, " (deleted)") == file && strings.Contains(string(info), "FLOCK")
		}
		if holds {
			past = append(past, kubelet.ID)
		} else {
			wait = append(wait, kubelet.ID)
		}
	}
	if len(past) < 2 {
		return past, wait
	}
	// They were not looked at at once: what holds the lock ends before another does. So who is still there held it all the while.
	still := s.node.kubelets(t)
	ended := func(pid int) bool { return !slices.ContainsFunc(still, func(p process) bool { return p.ID == pid }) }
	return slices.DeleteFunc(past, ended), wait
}

// watchLocks looks at the kubelets of this node until it is asked what it saw: which were past the lock, and which waited while another
// was. Two past it are a failure. One that was not given the lock is past it from its first moment on.
func (s *supervised) watchLocks(t *testing.T) (saw func() (past, waited []int)) {
	done := make(chan struct{})
	var looking sync.WaitGroup
	var past, waited []int
	looking.Go(func() {
		ticker := time.NewTicker(3 * time.Millisecond)
		defer ticker.Stop()
		for {
			hold, wait := s.locks(t)
			if len(hold) > 1 {
				t.Errorf("two kubelets past the lock: %v", hold)
			}
			past = append(past, hold...)
			if len(hold) > 0 {
				waited = append(waited, wait...)
			}
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	saw = sync.OnceValues(func() ([]int, []int) {
		close(done)
		looking.Wait()
		return past, waited
	})
	t.Cleanup(func() { _, _ = saw() }) // of a test that ended before it asked
	return saw
}

// From one dynamic configuration to another the next kubelet waits at the lock of the one that runs, validated, and goes on when that has
// ended. Never are two past the lock, although nothing but the lock keeps them apart.
func TestTheNextKubeletWaitsForTheEndOfTheOne(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=1h"}})
	if argv := s.kubelet(t).Arguments; slices.ContainsFunc(argv, func(word string) bool { return strings.HasPrefix(word, "--lock-file") }) {
		t.Errorf("local has a lock: %q", argv)
	}
	one := n.putConfigMap(t, "one", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 81))})
	n.assign(t, one.assignment("kubelet"))
	n.awaitReason(t, one.assignment("kubelet"), "InTrial")
	two := n.putConfigMap(t, "two", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 82), otherPorts)})
	seen := false
	for range 4 { // it waits for moments, in which a machine under load may not look
		looked := s.watchLocks(t)
		n.assign(t, two.assignment("kubelet"))
		v := n.awaitReason(t, two.assignment("kubelet"), "InTrial")
		second := s.kubelet(t)
		_, waited := looked()
		wantStatus(t, v, two.source("kubelet"), two.source("kubelet"), nil, "")
		if seen = slices.Contains(waited, second.ID); seen {
			break
		}
		t.Logf("kubelet %d was not seen to wait: %v", second.ID, waited)
		n.assign(t, one.assignment("kubelet"))
		n.awaitReason(t, one.assignment("kubelet"), "InTrial")
	}
	if !seen {
		t.Error("no kubelet was seen to wait")
	}
	n.unassign(t)
	n.awaitReason(t, "", "Local")
	if past, wait := s.locks(t); len(past) != 1 || len(wait) > 0 {
		t.Errorf("with local %v run and %v wait", past, wait)
	}
	if argv := s.kubelet(t).Arguments; slices.ContainsFunc(argv, func(word string) bool { return strings.HasPrefix(word, "--lock-file") }) {
		t.Errorf("local has a lock again: %q", argv)
	}
}

// A supervisor that is killed while a kubelet waits leaves two processes; the next one ends that which waits first.
func TestLongKilledWhileAKubeletWaits(t *testing.T) {
	n := sharedNode(t)
	flags := []string{"--trial-period=1h"}
	for _, point := range []string{"before decide.Park", "after decide.Park", "before decide.Stop", "after decide.Stop", "before decide.Start", "after decide.Start"} {
		t.Run(point, func(t *testing.T) {
			n.reset(t)
			s := n.startedLocal(t, options{Flags: flags})
			one := n.putConfigMap(t, "one", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 81))})
			n.assign(t, one.assignment("kubelet"))
			n.awaitReason(t, one.assignment("kubelet"), "InTrial")
			two := n.putConfigMap(t, "two", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 82), otherPorts)})
			turn := "1 "
			if point == "before decide.Start" || point == "after decide.Start" { // the first is that of one
				turn = "2 "
			}
			s = n.killedAtTurn(t, s, turn+point, flags, func() { n.assign(t, two.assignment("kubelet")) })
			v := n.awaitReason(t, two.assignment("kubelet"), "InTrial")
			wantStatus(t, v, two.source("kubelet"), two.source("kubelet"), nil, "")
			s.kubelet(t)
		})
	}
}
