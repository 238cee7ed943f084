//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// A disk that takes a write and does not end it holds up neither the start of a kubelet nor the stop of all.
func TestADiskThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	disk := make(chan *sync.Mutex, 1)
	r := n.runChanged(func(l *loop) {
		l.payloads.saves.most = 200 * time.Millisecond
		l.payloads.keeper.mu.Lock() // what each save ends with is guarded by it, and no other save begins before that
		disk <- &l.payloads.keeper.mu
	})
	defer func() { (<-disk).Unlock() }()
	first := r.awaitHealthy().Child.PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.awaitAnother(first)
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A disk whose reads hang costs a configuration, and no kubelet.
func TestADiskThatCannotBeRead(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	healed := make(chan struct{})
	r := n.runChanged(func(l *loop) {
		l.payloads.saves.most = 200 * time.Millisecond
		load := l.payloads.read
		l.payloads.read = func(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
			<-healed
			return load(source)
		}
	})
	record := r.awaitHealthy()
	if record.Runs != nil || !strings.Contains(record.Condition.Message, errDiskHangs.Error()) {
		t.Errorf("recorded %+v", record)
	}
	close(healed)
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// The write of an assignment that was given up with a disk that hangs is carried out when the disk goes on. It takes nothing that is in use by
// then: what is assigned still has its checkpoint when the next write names it again.
func TestALateWriteCollectsNothing(t *testing.T) {
	s := saves{turn: make(chan struct{}, 1), most: 10 * time.Millisecond}
	released := make(chan struct{})
	if err := s.doThen(func() error { <-released; return nil }, func() { t.Error("collected by a late write") }); !errors.Is(err, errDiskHangs) {
		t.Errorf("got %v", err)
	}
	close(released)
	s.turn <- struct{}{} // the late write is over
	<-s.turn
	s.most = fakenode.Patience
	collected := false
	if err := s.doThen(func() error { return nil }, func() { collected = true }); err != nil || !collected {
		t.Errorf("afterwards: %v, collected %t", err, collected)
	}
	failed := errors.New("no space left")
	if err := s.doThen(func() error { return failed }, func() { t.Error("collected after a write that failed") }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestASaveThatHangs(t *testing.T) {
	s := saves{turn: make(chan struct{}, 1), most: 10 * time.Millisecond}
	released, over := make(chan struct{}), make(chan struct{})
	if err := s.do(func() error { defer close(over); <-released; return nil }); !errors.Is(err, errDiskHangs) {
		t.Errorf("got %v", err)
	}
	// Only one waits for the disk: what is older must not be written after what is newer.
	if err := s.do(func() error { t.Error("written beside another"); return nil }); !errors.Is(err, errDiskHangs) {
		t.Errorf("got %v", err)
	}
	close(released)
	<-over
	s.most = fakenode.Patience
	failed := errors.New("no space left")
	if err := s.do(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("afterwards: %v", err)
	}
}

// Behind a script that does not become the kubelet, the end of the child is not that of the kubelet: it is stopped before another one is
// started, and when the supervisor ends. The loop answers meanwhile.
func TestAScriptThatDoesNotBecomeTheKubelet(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ignoreTerm"))
	n.write("bin/kubelet", fmt.Sprintf("#!/bin/sh\nFAKE_KUBELET_RECORD=%s %s \"$@\"\nexit $?\n", n.path("record"), fakeKubelet))
	n.options.StopTimeout = time.Second
	requests := make(chan Request)
	n.options.Requests = requests
	r := n.run()
	n.await("the kubelet", func() bool { return n.events() == "start" })
	script := r.await("the script", func(record Record) bool { return record.Child != nil }).Child.PID
	if err := syscall.Kill(script, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.await("the kubelet to be stopped", func() bool { return strings.HasPrefix(n.events(), "start term") })
	requests <- RetryNow
	if record := r.await("the answer", func(record Record) bool { return record.Generation == 1 }); record.Child != nil {
		t.Error("the answer came after the next start")
	}
	n.await("another kubelet", func() bool { return n.events() == "start term start" })
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	for _, e := range n.entries("start") {
		if kubelet.ProcessOf(e.PID).Alive() {
			t.Errorf("the kubelet with pid %d is still there", e.PID)
			_ = syscall.Kill(e.PID, syscall.SIGKILL)
		}
	}
}
