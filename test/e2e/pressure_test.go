//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A configuration with which the node can run no pod does not become last known good, although its healthz answers and its Lease is renewed
// (rule 7). The Node says which condition is bad, nothing is rolled back for it, and the next configuration is not measured by it.
func TestPressureInTrial(t *testing.T) {
	n := sharedNode(t)
	flags := []string{"--trial-period=25s"}
	s := n.startedLocal(t, options{Flags: flags})
	n.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready })
	config := n.putConfigMap(t, "pressure", map[string]string{
		"kubelet": n.kubeletConfig(with("evictionHard", object{"memory.available": "50Mi", "nodefs.available": "99%"}))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "InTrial")
	running := s.kubelet(t)
	const says = "the trial clock stands: bad conditions of the Node, " // before the trial the kubelet has hardly measured
	n.awaitMessage(t, says)
	before := s.record(t).Trial.Healthy
	holds(t, 20*time.Second, "it does not become last known good", func() error {
		v, err := n.view()
		trial := s.record(t).Trial
		if err != nil || v.Condition.Reason != "InTrial" || v.Config.LastKnownGood != nil || trial == nil || trial.Healthy != before {
			return fmt.Errorf("%v; %s: %s; trial %+v, healthy %s before", err, v.Condition.Reason, v.Condition.Message, trial, before)
		}
		return nil
	})
	if now := s.kubelet(t); now.ID != running.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", running.ID, now.ID)
	}
	s.stop(t)
	s = n.startSupervisor(t, options{Flags: flags, After: s})
	s.kubelet(t) // which posts that there is no pressure before it has measured
	n.awaitMessage(t, says)

	good := n.putConfigMap(t, "no-pressure", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 63))})
	n.assign(t, good.assignment("kubelet"))
	v := n.awaitReason(t, good.assignment("kubelet"), "Active")
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", good.UID))
}

// awaitMessage waits until the condition's message says so.
func (n *node) awaitMessage(t *testing.T, says string) {
	t.Helper()
	await(t, "the Node says: "+says, func() error {
		v, err := n.view()
		if err == nil && !strings.Contains(v.Condition.Message, says) {
			err = errors.New(v.Condition.Message)
		}
		return err
	})
}
