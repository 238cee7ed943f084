//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// One assignment, and everything that is to be seen of it: on the Node, in the kubelet, among the events and on disk.
func TestAssign(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	local := s.kubelet(t)
	if want := n.kubeletCommandLine(s); !slices.Equal(local.Arguments, want) {
		t.Errorf("with local active the kubelet's command line is\n%q, want the administrator's\n%q", local.Arguments, want)
	}
	v := n.awaitReason(t, "", "Local")
	if got := v.Node.Annotations[statusAnnotation]; got != "{}" || v.Observed != nil || v.Condition.Status != corev1.ConditionTrue {
		t.Errorf("with nothing assigned %s is %q, want {}: %v", statusAnnotation, got, v)
	}

	payload := n.kubeletConfig(with("maxPods", 42))
	config := n.putConfigMap(t, "assign", map[string]string{"kubelet": payload})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v = n.awaitReason(t, assignment, "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
	if v.Field != nil {
		t.Errorf("this API server does not keep status.config, and there it is: %v", v.Field)
	}

	dynamic := s.kubelet(t)
	if want := append(n.kubeletCommandLine(s), "--config="+filepath.Join(s.RunDir, "effective/kubelet.yaml"), "--lock-file="+filepath.Join(s.StateDir, "kubelet.lock")); !slices.Equal(dynamic.Arguments, want) {
		t.Errorf("the kubelet's command line is\n%q, want\n%q", dynamic.Arguments, want)
	}
	if got := s.configz(t)["maxPods"]; got != 42.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 42", got)
	}
	checkpoint := filepath.Join(s.StateDir, "checkpoints", string(config.UID), config.ResourceVersion)
	if content, err := os.ReadFile(filepath.Join(checkpoint, "kubelet")); err != nil || string(content) != payload {
		t.Errorf("the checkpoint holds %q (%v), want the payload", content, err)
	}
	if content, err := os.ReadFile(filepath.Join(s.StateDir, "meta/assigned")); err != nil || !strings.Contains(string(content), string(config.UID)) {
		t.Errorf("meta/assigned holds %q (%v), want the source with uid %s", content, err, config.UID)
	}

	v = n.awaitReason(t, assignment, "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	n.awaitEvents(t, v.UID,
		"Normal KubeletConfigChanged: Kubelet restarting to use "+config.path()+", UID: "+string(config.UID)+", ResourceVersion: "+config.ResourceVersion+", KubeletConfigKey: kubelet",
		"Normal KubeletConfigPromoted: ")
	if now := s.kubelet(t); now.ID != dynamic.ID || s.starts(t) != 2 {
		t.Errorf("the promotion restarted the kubelet: pid %d, then %d; %d starts, want 2", dynamic.ID, now.ID, s.starts(t))
	}
}

// NAMESPACE/NAME/KEY@UID takes that one object and no other of its name.
func TestAssignPinned(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	data := map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 43))}
	config := n.putConfigMap(t, "pinned", data)
	pinned := config.assignment("kubelet") + "@" + string(config.UID)
	n.assign(t, pinned)
	v := n.awaitReason(t, pinned, "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
	kubelet := s.kubelet(t)

	config.delete(t)
	n.awaitReason(t, pinned, "SyncFailed")
	again := n.createConfigMap(t, config.Namespace, config.Name, map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 44))})
	v = n.awaitNode(t, "the other object of the name is refused", func(v nodeView) bool {
		return v.is(pinned, "SyncFailed") && strings.Contains(v.Condition.Message, string(again.UID))
	})
	v.Config.LastKnownGood = nil // the trial may have passed meanwhile
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, downloadError)
	if !strings.Contains(v.Condition.Message, string(config.UID)) {
		t.Errorf("the message does not name the uid that was asked for: %s", v.Condition.Message)
	}
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the refusal restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
	}

	pinned = again.assignment("kubelet") + "@" + string(again.UID)
	n.assign(t, pinned)
	v = n.awaitReason(t, pinned, "InTrial")
	if !again.is(v.Config.Active) || v.Config.Error != "" {
		t.Errorf("pinned to the other object: %v", v)
	}
}

// What the annotation may not say is an error on the Node and changes nothing.
func TestInvalidAssignments(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	elsewhere := n.createConfigMap(t, "elsewhere", uniqueName("not-allowed"), map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 45))})
	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 46))})
	n.assign(t, good.assignment("kubelet"))
	active := n.awaitReason(t, good.assignment("kubelet"), "Active")
	kubelet := s.kubelet(t)

	const field, several = "failed to sync: spec.configSource.configMap.", "failed to sync: [spec.configSource.configMap."
	for _, test := range []struct{ name, assignment, wantError string }{
		{"a namespace that is not allowed", elsewhere.assignment("kubelet"), field + `namespace: Forbidden: namespace "elsewhere" is not allowed on this node, allowed: kube-system, kubelet-config`},
		{"no key", "kube-system/name", field + "kubeletConfigKey: Required value: kubeletConfigKey must be set"},
		{"no name", "kube-system//kubelet", field + "name: Required value: name must be set"},
		{"no namespace", "/name/kubelet", field + "namespace: Required value: namespace must be set"},
		{"a name that is none", "kube-system/Name/kubelet", field + `name: Invalid value: "Name": a lowercase RFC 1123 subdomain must`},
		{"a key that leaves its folder", "kube-system/name/../key", several + `kubeletConfigKey: Invalid value: "../key": `},
		{"a pin without uid", good.assignment("kubelet") + "@", field + "uid: Required value: "},
		{"a pin that is no uid", good.assignment("kubelet") + "@a/b", field + `uid: Invalid value: "a/b": `},
		{"nothing", "", several + "namespace: Required value: namespace must be set"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.assign(t, test.assignment)
			v := n.awaitReason(t, test.assignment, "InvalidAssignment")
			if !strings.HasPrefix(v.Config.Error, test.wantError) {
				t.Errorf("error %q, want %q", v.Config.Error, test.wantError)
			}
			wantStatus(t, v, active.Config.Assigned, active.Config.Active, active.Config.LastKnownGood, v.Config.Error)
			wantCondition(t, v, corev1.ConditionFalse, fmt.Sprintf("using current (UID: %q)", good.UID))
			if now := s.kubelet(t); now.ID != kubelet.ID {
				t.Errorf("it restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
			}
			n.assign(t, good.assignment("kubelet"))
			v = n.awaitReason(t, good.assignment("kubelet"), "Active")
			wantStatus(t, v, active.Config.Assigned, active.Config.Active, active.Config.LastKnownGood, "")
		})
	}
}

// --config-namespaces says where configurations may come from.
func TestConfigNamespaces(t *testing.T) {
	for _, test := range []struct {
		name, namespace string
		flags           []string
		refused         bool
	}{
		{"by default", "kubelet-config", nil, false},
		{"the one that is named", "elsewhere", []string{"--config-namespaces=elsewhere"}, false},
		{"all", "elsewhere", []string{"--config-namespaces=*"}, false},
		{"another than the one that is named", "kube-system", []string{"--config-namespaces=kubelet-config"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := sharedNode(t)
			n.startedLocal(t, options{Flags: test.flags})
			config := n.createConfigMap(t, test.namespace, uniqueName("namespaced"), map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 47))})
			n.assign(t, config.assignment("kubelet"))
			reason := "InTrial"
			if test.refused {
				reason = "InvalidAssignment"
			}
			if v := n.awaitReason(t, config.assignment("kubelet"), reason); config.is(v.Config.Active) == test.refused {
				t.Errorf("active is another: %v", v)
			}
		})
	}
}
