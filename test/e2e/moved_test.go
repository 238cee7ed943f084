//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A state folder that comes into another cluster, with an image of the disk or over a kubeadm reset, configures no kubelet there.
func TestAnotherCluster(t *testing.T) {
	before := sharedNode(t)
	s := before.startedLocal(t, options{})
	old := before.putConfigMap(t, "moved", map[string]string{"kubelet": before.kubeletConfig(with("maxPods", 65))})
	before.assign(t, old.assignment("kubelet"))
	before.awaitReason(t, old.assignment("kubelet"), "Active")
	s.stop(t)

	n := up(t, "e2e-other", newest)
	t.Cleanup(func() {
		if err := n.Down(); err != nil {
			t.Error(err)
		}
	})
	n.reset(t)
	s = n.startSupervisor(t, options{After: s, Local: n.kubeletConfig()})
	v := n.awaitReason(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
	wantCondition(t, v, "True", "using current (default)")
	if !strings.Contains(v.Condition.Message, "another cluster") {
		t.Errorf("the message does not say why: %s", v.Condition.Message)
	}
	if got, want := s.kubelet(t).Arguments, n.kubeletCommandLine(s); !slices.Equal(got, want) {
		t.Errorf("the kubelet's command line is\n%q, want the administrator's\n%q", got, want)
	}
	for _, event := range n.events(t, v.UID) {
		if strings.Contains(event, old.Name) {
			t.Error("an event speaks of what the other cluster assigned: " + event)
		}
	}

	// It is forgotten for good, and what this cluster assigns is taken.
	s.stop(t)
	s = n.startSupervisor(t, options{After: s})
	n.awaitReason(t, "", "Local")
	config := n.putConfigMap(t, "here", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 66))})
	n.assign(t, config.assignment("kubelet"))
	v = n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if got := s.configz(t)["maxPods"]; got != 66.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 66", got)
	}
}
