//go:build e2e

package e2e

import (
	"testing"
)

func TestAssign(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	config := n.putConfigMap(t, "assign", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 42))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	if !config.is(v.Config.Active) {
		t.Errorf("active: %v", v)
	}
	if got := s.configz(t)["maxPods"]; got != 42.0 {
		t.Errorf("maxPods is %v", got)
	}
	n.awaitReason(t, config.assignment("kubelet"), "Active")
}
