//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What a change was is told on the node and on the Node, and is kept over a restart of the supervisor.
func TestLastChange(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	config := n.putConfigMap(t, "timed", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 74))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "InTrial")
	c := changeOf(v)
	if c.From != "local" || c.To != assignment || c.Outcome != "InTrial" || c.Began.IsZero() || c.Ended.IsZero() {
		t.Errorf("the Node says %+v", c)
	}
	line := c.Line()
	for _, phase := range []string{"download ", "preflight ", "stop ", "start "} {
		if !strings.Contains(line, phase) {
			t.Errorf("%q lacks %s", line, phase)
		}
	}
	await(t, "the node knows when the Node has said it", func() error {
		change := s.record(t).LastChange
		if change == nil || change.Took.Report == 0 || change.Outcome != "InTrial" {
			return fmt.Errorf("state.json has %+v", change)
		}
		return nil
	})
	stdout, _, _ := s.run(t, "status")
	if !strings.Contains(stdout, "local -> "+assignment+": InTrial") || !strings.Contains(stdout, " | report ") {
		t.Errorf("status says %s", stdout)
	}
	before := *s.record(t).LastChange
	s.stop(t)
	s = n.startSupervisor(t, options{After: s})
	v = n.awaitReason(t, assignment, "InTrial")
	if after := s.record(t).LastChange; after == nil || !after.Began.Equal(before.Began) || after.Took != before.Took || after.Outcome != "InTrial" {
		t.Errorf("after a restart of the supervisor state.json has %+v, before it had %+v", after, before)
	}
	if again := changeOf(v); !again.Began.Equal(c.Began) {
		t.Errorf("after a restart of the supervisor the Node says %+v", again)
	}

	refused := n.putConfigMap(t, "untimely", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", -1))})
	n.assign(t, refused.assignment("kubelet"))
	await(t, "the refusal is the newest change", func() error {
		view, err := n.view()
		if err != nil {
			return err
		}
		if c := changeOf(view); c.To != refused.assignment("kubelet") || c.Outcome != "Refused" {
			err = fmt.Errorf("the Node says %+v", c)
		}
		return err
	})
}

// changeOf is what a Node says of its newest change.
func changeOf(v nodeView) nodev1.Change {
	if c := nodev1.Read(v.Node).Status.Change; c != nil {
		return *c
	}
	return nodev1.Change{}
}
