//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A ConfigMap that cannot be had is reported while the kubelet goes on, and the error is gone when it heals.
func TestUnreadable(t *testing.T) {
	for _, test := range []struct {
		name  string
		local bool // nothing was assigned before; else the ConfigMap was, and passed its trial
		spoil func(t *testing.T, n *node, config *configMap)
		heal  func(t *testing.T, n *node, config *configMap) *configMap
		words string // in the message
	}{
		{
			name: "a ConfigMap that was deleted", words: "does not exist",
			spoil: func(t *testing.T, _ *node, config *configMap) { config.delete(t) },
			heal: func(t *testing.T, n *node, config *configMap) *configMap {
				return n.createConfigMap(t, config.Namespace, config.Name, config.Data)
			},
		},
		{
			name: "a ConfigMap that is not there yet", words: "does not exist", local: true,
			spoil: func(t *testing.T, _ *node, config *configMap) { config.delete(t) },
			heal: func(t *testing.T, n *node, config *configMap) *configMap {
				return n.createConfigMap(t, config.Namespace, config.Name, config.Data)
			},
		},
		{
			name: "a read that is denied", words: "forbidden", local: true,
			spoil: func(t *testing.T, n *node, config *configMap) { n.deny(t, config.Namespace, config.Name) },
			heal: func(t *testing.T, n *node, config *configMap) *configMap {
				n.allow(t, config.Namespace, config.Name)
				return config
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := sharedNode(t)
			s := n.startedLocal(t, options{})
			config := n.putConfigMap(t, "unreadable", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 52))})
			assignment, starts := config.assignment("kubelet"), 2
			var pointer *corev1.NodeConfigSource
			using := "using current (default)"
			if !test.local {
				pointer, using = config.source("kubelet"), fmt.Sprintf("using current (UID: %q)", config.UID)
				n.assign(t, assignment)
				n.awaitReason(t, assignment, "Active")
			}
			kubelet := s.kubelet(t)

			test.spoil(t, n, config)
			n.assign(t, assignment)
			v := n.awaitReason(t, assignment, "SyncFailed")
			wantStatus(t, v, pointer, pointer, pointer, downloadError)
			wantCondition(t, v, corev1.ConditionFalse, using)
			if !strings.Contains(v.Condition.Message, config.Name) || !strings.Contains(v.Condition.Message, test.words) {
				t.Errorf("the message does not say what is wrong with which ConfigMap: %s", v.Condition.Message)
			}
			if now := s.kubelet(t); now.ID != kubelet.ID {
				t.Errorf("it restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
			}

			config = test.heal(t, n, config)
			v = n.awaitNode(t, "the error is gone", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Status == corev1.ConditionTrue })
			wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), v.Config.LastKnownGood, "")
			if now := s.kubelet(t); !test.local && now.ID != kubelet.ID {
				t.Errorf("equal content restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
			}
			if got := s.starts(t); got != starts {
				t.Errorf("%d starts of the kubelet, want %d", got, starts)
			}
		})
	}
}

// Without an assignment the node goes back to local and the status is empty, whatever there was to say before.
func TestRemoval(t *testing.T) {
	for _, test := range []struct {
		name, observed string
		remove         func(t *testing.T, n *node)
	}{
		{"the annotation is removed", "", func(t *testing.T, n *node) { n.unassign(t) }},
		{"the annotation says local", "local", func(t *testing.T, n *node) { n.assign(t, "local") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, s, config := assigned(t, options{}, "Active")
			test.remove(t, n)
			v := n.awaitReason(t, test.observed, "Local")
			if got := v.Node.Annotations[statusAnnotation]; got != "{}" {
				t.Errorf("%s is %q, want {}", statusAnnotation, got)
			}
			wantCondition(t, v, corev1.ConditionTrue, "using current (default)")
			n.awaitEvents(t, v.UID, "Normal KubeletConfigChanged: Kubelet restarting to use local config")
			if got := s.configz(t)["maxPods"]; got != 20.0 {
				t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
			}
			if got := s.starts(t); got != 3 {
				t.Errorf("%d starts of the kubelet, want 3", got)
			}
			for _, pointer := range []string{"assigned", "last-known-good"} {
				if content, err := os.ReadFile(filepath.Join(s.StateDir, "meta", pointer)); err != nil || len(content) > 0 {
					t.Errorf("meta/%s holds %q (%v), want nothing", pointer, content, err)
				}
			}

			// An error does not outlive its assignment, as it did upstream (upstream's reset kept it until the next restart).
			kubelet := s.kubelet(t)
			config.delete(t)
			n.assign(t, config.assignment("kubelet"))
			n.awaitReason(t, config.assignment("kubelet"), "SyncFailed")
			test.remove(t, n)
			if v := n.awaitReason(t, test.observed, "Local"); v.Node.Annotations[statusAnnotation] != "{}" {
				t.Errorf("the error stays: %v", v)
			}
			if now := s.kubelet(t); now.ID != kubelet.ID {
				t.Errorf("local to local restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
			}
		})
	}
}
