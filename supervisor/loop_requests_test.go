//go:build linux

package supervisor

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestRetryTriesARejectedConfigurationAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	requests := make(chan Request)
	n.options.Requests = requests
	// Three exits are the end of its trial; it runs when somebody has mended what was missing.
	n.seed(store.Assigned, "hasty", fakenode.Configuration("mode: crash, words: not mounted yet, counter: "+n.path("starts")+", crashTimes: 3"))
	r := n.run()
	before := r.await("the verdict", func(record Record) bool { return record.Healthy && record.Condition.Reason == "Rejected" })
	requests <- RetryNow
	record := r.await("its trial", func(record Record) bool { return record.Healthy && record.Condition.Reason == "InTrial" })
	if record.Runs == nil || record.Config.Error != "" || record.Generation != before.Generation+1 || record.Trial.Failures != 0 {
		t.Errorf("recorded %+v", record)
	}
}

func TestReloadLooksAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	requests := make(chan Request)
	n.options.Requests = requests
	r := n.run()
	r.awaitHealthy()
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: slow"))
	requests <- Reload
	record := r.await("the answer", func(record Record) bool { return record.Reloads == 1 })
	if !record.LocalPending {
		t.Errorf("recorded %+v", record)
	}
	if err := os.Remove(n.options.Kubelet); err != nil {
		t.Fatal(err)
	}
	requests <- Reload // a kubelet that is not there is nothing new, and no reason to stop the one that runs
	record = r.await("the answer", func(record Record) bool { return record.Reloads == 2 })
	if !record.Healthy || n.events("start", "exit") != "start" {
		t.Errorf("recorded %+v", record)
	}
}

// While the container runtime is down the kubelet exits whatever its configuration: no try is spent (rule 8).
func TestExitsWithoutARuntimeBlameNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	socket := n.path("other.sock")
	n.options.Arguments = append(n.options.Arguments, "--container-runtime-endpoint=unix://"+socket)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: crash, words: connection refused, counter: "+n.path("starts")+", crashTimes: 4"))
	r := n.run()
	record := r.await("the reason", func(record Record) bool { return record.Condition.Reason == "EnvironmentFailing" })
	if !strings.Contains(record.Condition.Message, "the container runtime at unix://"+socket+" does not answer") || record.Config.Error != "" {
		t.Errorf("recorded %+v", record)
	}
	record = r.await("its trial", func(record Record) bool { return record.Healthy && record.Condition.Reason == "InTrial" })
	if record.Trial.Failures != 0 || len(record.Exits) != 4 {
		t.Errorf("recorded %+v", record)
	}
}

// A container runtime that is stopped takes connections and answers none (rule 8).
func TestARuntimeThatHangsBlamesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	socket := n.path("other.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	n.options.Arguments = append(n.options.Arguments, "--container-runtime-endpoint=unix://"+socket)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: crash, words: no answer, counter: "+n.path("starts")+", crashTimes: 2"))
	r := n.run()
	record := r.await("the reason", func(record Record) bool { return record.Condition.Reason == "EnvironmentFailing" })
	if !strings.Contains(record.Condition.Message, "the container runtime at unix://"+socket+" does not answer") || record.Config.Error != "" {
		t.Errorf("recorded %+v", record)
	}
	record = r.await("its trial", func(record Record) bool { return record.Healthy && record.Condition.Reason == "InTrial" })
	if record.Trial.Failures != 0 || len(record.Exits) != 2 {
		t.Errorf("recorded %+v", record)
	}
}

// A kubelet that somebody else stops during its trial says nothing about its configuration (rule 10).
func TestSomebodysTermCountsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	r := n.run()
	record := r.awaitHealthy()
	for range 2 { // the third within a minute counts
		pid := record.Child.PID
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		record = r.awaitAnother(pid)
	}
	if record.Runs == nil || record.Trial == nil || record.Trial.Failures != 0 {
		t.Errorf("recorded %+v", record)
	}
}
