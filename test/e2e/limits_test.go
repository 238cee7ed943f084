//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const cgroupMount = "/sys/fs/cgroup"

// A scratchCgroup is one of the kernel's, in every hierarchy that a kubelet asks for.
type scratchCgroup struct {
	name   string // as a configuration has it
	memory string // files
	pids   string
	cpu    string
	lists  []string // cgroup.procs of each hierarchy
}

func newScratchCgroup(t *testing.T) *scratchCgroup {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes cgroups")
	}
	c := &scratchCgroup{name: fmt.Sprintf("/kubelet-supervisor-test-%d", os.Getpid())}
	hierarchies := []string{"memory", "cpu", "cpuacct", "cpuset", "pids", "systemd", "hugetlb"}
	names := []string{"memory/memory.limit_in_bytes", "pids/pids.max", "cpu/cpu.shares"}
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		hierarchies, names = []string{""}, []string{"/memory.max", "/pids.max", "/cpu.weight"}
	}
	for _, hierarchy := range hierarchies {
		if _, err := os.Stat(filepath.Join(cgroupMount, hierarchy)); err != nil {
			continue
		}
		folder := filepath.Join(cgroupMount, hierarchy, c.name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			await(t, "an empty cgroup is removed", func() error { return os.Remove(folder) })
		})
		if hierarchy != "cpuset" { // which has no CPUs until somebody gives it some
			c.lists = append(c.lists, filepath.Join(folder, "cgroup.procs"))
		}
	}
	for i, file := range []*string{&c.memory, &c.pids, &c.cpu} {
		hierarchy, name, _ := strings.Cut(names[i], "/")
		*file = filepath.Join(cgroupMount, hierarchy, c.name, name)
	}
	return c
}

// limits are what the kernel has now.
func (c *scratchCgroup) limits(t *testing.T) string {
	t.Helper()
	var values []string
	for _, file := range []string{c.memory, c.pids, c.cpu} {
		value, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, strings.TrimSpace(string(value)))
	}
	return strings.Join(values, " ")
}

func (c *scratchCgroup) set(t *testing.T, file, value string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// reserves limits the cgroup to these amounts.
func (c *scratchCgroup) reserves(amounts object) func(object) {
	return changes(with("systemReserved", amounts), with("systemReservedCgroup", c.name), with("enforceNodeAllocatable", []string{"pods", "system-reserved"}))
}

// Limits that a configuration has set on a cgroup of the system go with it, by the next configuration, a rollback and a removal; what somebody
// else has set meanwhile stays.
func TestLimitsGoWithTheirConfiguration(t *testing.T) {
	n := sharedNode(t)
	c := newScratchCgroup(t)
	c.set(t, c.pids, "4321")
	before := c.limits(t)
	s := n.startedLocal(t, options{})
	limited := n.putConfigMap(t, "limited", map[string]string{"kubelet": n.kubeletConfig(c.reserves(object{"memory": "64Mi", "pid": "321", "cpu": "500m"}))})
	assign := func(m *configMap) nodeView {
		t.Helper()
		n.assign(t, m.assignment("kubelet"))
		return n.awaitReason(t, m.assignment("kubelet"), "Active")
	}
	assign(limited)
	set := c.limits(t)
	if set == before || !strings.HasPrefix(set, strconv.Itoa(64<<20)+" 321 ") {
		t.Fatalf("the kubelet has set %q, before it was %q", set, before)
	}
	starts := s.starts(t)
	plain := n.putConfigMap(t, "plain", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 77))})
	v := assign(plain)
	if now := c.limits(t); now != before {
		t.Errorf("after another configuration: %q, want %q", now, before)
	}
	if got := s.starts(t) - starts; got != 1 {
		t.Errorf("%d starts, want 1", got)
	}
	n.awaitEvents(t, v.UID, "Normal KubeletLimitsWrittenBack: limits that a kubelet has set are as before: ")

	// A rollback of what dies after it has set them, to one that has none.
	deadly := n.putConfigMap(t, "limited-deadly", map[string]string{"kubelet": n.kubeletConfig(changes(c.reserves(object{"memory": "32Mi", "pid": "123"}),
		with("enforceNodeAllocatable", []string{"pods", "system-reserved", "kube-reserved"}), with("kubeReserved", object{"memory": "64Mi"}), with("kubeReservedCgroup", "/kubelet-supervisor-test-nonexistent")))})
	n.assign(t, deadly.assignment("kubelet"))
	v = n.awaitReason(t, deadly.assignment("kubelet"), "RolledBack")
	wantStatus(t, v, deadly.source("kubelet"), plain.source("kubelet"), plain.source("kubelet"), runError)
	if now := c.limits(t); now != before {
		t.Errorf("after a rollback: %q, want %q", now, before)
	}

	// The removal of the assignment, and a limit that somebody has changed.
	assign(limited)
	c.set(t, c.pids, "1000")
	n.unassign(t)
	n.awaitReason(t, "", "Local")
	s.kubelet(t)
	fields := strings.Fields(before)
	if now, want := c.limits(t), strings.Join([]string{fields[0], "1000", fields[2]}, " "); now != want {
		t.Errorf("after the removal: %q, want %q", now, want)
	}
	n.awaitEvents(t, v.UID, "Warning KubeletLimitsChanged: ")
}

// A limit that is below what its cgroup takes holds the change, and names the cgroup. Let through, it kills whatever is in it, the kubelet among
// that, and the way back lives: it is free of the limit.
func TestALimitBelowItsUse(t *testing.T) {
	n := sharedNode(t)
	c := newScratchCgroup(t)
	before := c.limits(t)
	s := n.startedLocal(t, options{})
	for _, list := range c.lists { // as kubelet.service is in system.slice
		c.set(t, list, strconv.Itoa(s.command.Process.Pid))
	}
	first := n.putConfigMap(t, "first", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 78))})
	n.assign(t, first.assignment("kubelet")) // its kubelet is in the cgroup, too
	n.awaitReason(t, first.assignment("kubelet"), "Active")
	inside, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.kubelet(t).ID))
	if err != nil || !strings.Contains(string(inside), c.name) {
		t.Fatalf("the kubelet is in %s (%v)", inside, err)
	}

	tight := n.putConfigMap(t, "tight", map[string]string{"kubelet": n.kubeletConfig(c.reserves(object{"memory": "12Mi"}))})
	n.assign(t, tight.assignment("kubelet"))
	v := n.awaitReason(t, tight.assignment("kubelet"), "WouldDisrupt")
	wantStatus(t, v, first.source("kubelet"), first.source("kubelet"), first.source("kubelet"), "")
	wantCondition(t, v, corev1.ConditionFalse, "using current (UID: ")
	if want := "cgroup " + c.name + " would be limited by systemReserved.memory to 12Mi of memory, and uses "; !strings.Contains(v.Condition.Message, want) {
		t.Errorf("the message lacks %q: %s", want, v.Condition.Message)
	}
	if now := c.limits(t); now != before {
		t.Errorf("while it is held: %q, want %q", now, before)
	}
	n.annotate(t, consentAnnotation, approvalOf(t, v))
	v = n.awaitNode(t, "it is rolled back", func(v nodeView) bool {
		return slices.Contains([]string{"RolledBack", "Rejected"}, v.Condition.Reason) && v.is(tight.assignment("kubelet"), v.Condition.Reason)
	})
	wantStatus(t, v, tight.source("kubelet"), first.source("kubelet"), first.source("kubelet"), runError)
	if now := c.limits(t); now != before {
		t.Errorf("after the rollback: %q, want %q", now, before)
	}
	await(t, "the last known good one is healthy", func() error {
		if got := s.configz(t)["maxPods"]; got != 78.0 {
			return errors.New("it is not")
		}
		return nil
	})
}
