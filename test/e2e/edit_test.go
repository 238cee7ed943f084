//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// assigned brings a node up that runs an assigned configuration with maxPods 50.
func assigned(t *testing.T, o options, reason string) (*node, *supervised, *configMap) {
	t.Helper()
	n := sharedNode(t)
	s := n.startedLocal(t, o)
	config := n.putConfigMap(t, "edited", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 50))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), reason)
	return n, s, config
}

// A ConfigMap that is edited in place is followed, and the version before it stays the last known good one.
func TestEdit(t *testing.T) {
	n, s, config := assigned(t, options{}, "Active")
	before := config.source("kubelet")
	config.set(t, "kubelet", n.kubeletConfig(with("maxPods", 51)))
	v := n.awaitNode(t, "the edit is active", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Reason == "InTrial" })
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), before, "")
	if got := s.configz(t)["maxPods"]; got != 51.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 51", got)
	}
	if got := s.starts(t); got != 3 {
		t.Errorf("%d starts of the kubelet, want 3: local, the first version, the edit", got)
	}
	v = n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
}

// What leaves the effective configuration the same moves the pointers and restarts nothing.
func TestEqualContent(t *testing.T) {
	changes := []struct {
		name   string
		change func(t *testing.T, n *node, config *configMap) *configMap
	}{
		{"a label", func(t *testing.T, _ *node, config *configMap) *configMap {
			config.patch(t, object{"metadata": object{"labels": object{"team": "nodes"}}})
			return config
		}},
		{"comments and the order of keys", func(t *testing.T, n *node, config *configMap) *configMap {
			config.set(t, "kubelet", "# The same.\nmaxPods: 50\n"+n.kubeletConfig(with("maxPods", nil)))
			return config
		}},
		{"re-creation", func(t *testing.T, n *node, config *configMap) *configMap {
			config.delete(t)
			return n.createConfigMap(t, config.Namespace, config.Name, map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 50))})
		}},
	}
	t.Run("after the trial", func(t *testing.T) {
		n, s, config := assigned(t, options{}, "Active")
		kubelet := s.kubelet(t)
		for _, test := range changes {
			t.Run(test.name, func(t *testing.T) {
				config = test.change(t, n, config)
				v := n.awaitNode(t, "the pointers move", func(v nodeView) bool { return config.is(v.Config.Assigned) && v.Condition.Reason == "Active" })
				wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
				wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
				if now := s.kubelet(t); now.ID != kubelet.ID {
					t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
				}
			})
		}
	})
	t.Run("in the trial, which goes on", func(t *testing.T) {
		n, s, config := assigned(t, options{Flags: []string{"--trial-period=1h"}}, "InTrial")
		kubelet := s.kubelet(t)
		for _, test := range changes {
			t.Run(test.name, func(t *testing.T) {
				trial := s.record(t).Trial
				config = test.change(t, n, config)
				v := n.awaitNode(t, "the pointers move", func(v nodeView) bool { return config.is(v.Config.Assigned) && v.Condition.Reason == "InTrial" })
				wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
				if now := s.kubelet(t); now.ID != kubelet.ID {
					t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
				}
				if now := s.record(t).Trial; trial == nil || now == nil || now.Healthy < trial.Healthy {
					t.Errorf("the trial does not go on: %+v, then %+v", trial, now)
				}
			})
		}
	})
}

// An edit waits for the node's turn, and the Node says until when.
func TestEditSpread(t *testing.T) {
	n, s, config := assigned(t, options{Flags: []string{"--edit-spread=15s"}}, "Active")
	kubelet := s.kubelet(t)
	var until time.Time
	var before *corev1.NodeConfigSource
	// A turn may come at once: edit until one does not.
	for maxPods := 51; until.IsZero(); maxPods++ {
		before = config.source("kubelet")
		kubelet = s.kubelet(t)
		config.set(t, "kubelet", n.kubeletConfig(with("maxPods", maxPods)))
		n.awaitNode(t, "the edit waits, or is active", func(v nodeView) bool {
			due := changeOf(v).Due
			if due.IsZero() || !config.is(v.Config.Assigned) || v.Condition.Reason != "Applying" {
				return config.is(v.Config.Active) && v.Condition.Reason == "Active"
			}
			wantStatus(t, v, config.source("kubelet"), before, before, "")
			wantCondition(t, v, corev1.ConditionUnknown, "using last-known-good (UID: ")
			if until = due; !strings.Contains(v.Condition.Message, "waits for its turn until "+due.Truncate(time.Second).Format(time.RFC3339)) {
				t.Errorf("the message does not say until when, %s: %s", due, v.Condition.Message)
			}
			return true
		})
	}
	if in := time.Until(until); in > 15*time.Second {
		t.Errorf("the edit waits for %s more, at most 15 s are allowed", in)
	}
	if now := s.kubelet(t); now.ID != kubelet.ID && time.Now().Before(until) {
		t.Errorf("the kubelet was restarted before its turn: pid %d, then %d", kubelet.ID, now.ID)
	}
	n.awaitNode(t, "its turn comes", func(v nodeView) bool { return config.is(v.Config.Active) })
	if now := time.Now(); now.Before(until) {
		t.Errorf("the edit was active at %s, before its turn at %s", now, until)
	}
}

// Only edits are spread: what a person asks for is immediate.
func TestLongNoSpread(t *testing.T) {
	n, s, config := assigned(t, options{Flags: []string{"--edit-spread=2160h"}}, "Active")
	edit := func(maxPods int) {
		config.set(t, "kubelet", n.kubeletConfig(with("maxPods", maxPods)))
		n.awaitReason(t, config.assignment("kubelet"), "Applying")
	}
	edit(51)
	n.annotate(t, retryAnnotation, uniqueName("now"))
	n.awaitNode(t, "a retry applies the edit", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Status == corev1.ConditionTrue })

	edit(52)
	other := n.putConfigMap(t, "other", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 60))})
	n.assign(t, other.assignment("kubelet"))
	n.awaitNode(t, "another assignment is applied", func(v nodeView) bool { return other.is(v.Config.Active) })

	other.set(t, "kubelet", n.kubeletConfig(with("maxPods", 61)))
	n.awaitReason(t, other.assignment("kubelet"), "Applying")
	n.unassign(t)
	n.awaitReason(t, "", "Local")
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 20", got)
	}
}
