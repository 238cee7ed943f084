//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A Node that is deleted and created anew has lost its annotations. That resets nothing: the kubelet goes on, and the new Node gets
// the status of the old one, which speaks of the assignment that was lost.
func TestNodeRecreated(t *testing.T) {
	n, s, config := assigned(t, options{}, "Active")
	kubelet, source := s.kubelet(t), config.source("kubelet")
	n.remove(t, nodePath)
	n.must(t, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": cluster.NodeName}}, nil)
	v := n.awaitReason(t, config.assignment("kubelet"), "AssignmentLost")
	wantStatus(t, v, source, source, source, "")
	wantCondition(t, v, corev1.ConditionFalse, fmt.Sprintf("using current (UID: %q)", config.UID))
	n.awaitEvents(t, v.UID, "Warning AssignmentLost: ")

	n.assign(t, config.assignment("kubelet"))
	v = n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, source, source, source, "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
	n.unassign(t)
	v = n.awaitReason(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
}
