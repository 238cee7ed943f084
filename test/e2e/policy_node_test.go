//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A real node under the policy: it registers and says what it runs; an operator assigns; nobody made a Role for the
// ConfigMap, for the nodes may read the namespace. What the node itself, or somebody through the status, would assign is refused.
func TestNodeUnderThePolicy(t *testing.T) {
	n := guardedNode(t)
	n.policyPeople(t)
	n.bindPeople(t)
	s := n.startedLocal(t, options{})
	if v := n.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready }); v.Node.Annotations[statusAnnotation] != "{}" {
		t.Errorf("it says %v", v)
	}

	operator := n.identity(t, "operator")
	config := &configMap{node: n, ConfigMap: &corev1.ConfigMap{}}
	body := object{"metadata": object{"name": uniqueName("guarded")}, "data": object{"kubelet": n.kubeletConfig(with("maxPods", 61))}}
	if _, err := requestAs(operator, http.MethodPost, "/api/v1/namespaces/"+deploy.Namespace+"/configmaps", body, config.ConfigMap); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { config.delete(t) })
	assign := object{"metadata": object{"annotations": object{assignmentAnnotation: config.assignment("kubelet")}}}

	before := s.kubelet(t)
	node := n.nodeIdentity(t, cluster.NodeName)
	for _, path := range []string{nodePath, nodePath + "/status"} {
		if code, err := requestAs(node, http.MethodPatch, path, assign, nil); code != http.StatusForbidden || !strings.Contains(err.Error(), "a node may not change annotation "+assignmentAnnotation) {
			t.Errorf("a node assigns itself by %s: %d, %v", path, code, err)
		}
	}
	if _, err := requestAs(operator, http.MethodPatch, nodePath, assign, nil); err != nil {
		t.Fatal(err)
	}
	v := n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if now := s.kubelet(t); now.ID == before.ID {
		t.Error("the kubelet was not restarted")
	}
	if text, err := n.Kubectl(t.Context(), "get", "--raw", nodePath+"/proxy/configz", "--as=operator"); err != nil || !strings.Contains(text, `"maxPods":61`) {
		t.Errorf("the operator asks for configz: %v, %.200s", err, text)
	}
	if _, err := n.Kubectl(t.Context(), "get", "--raw", nodePath+"/proxy/configz", "--as=viewer"); err == nil {
		t.Error("a viewer has nodes/proxy")
	}

	// The Node is lost and made anew by the kubelet: without its assignment, and the policy lets it be made.
	n.remove(t, nodePath)
	s.stop(t)
	s = n.startSupervisor(t, options{After: s})
	v = n.awaitNode(t, "the Node is made anew", func(v nodeView) bool { return v.Ready && v.Condition.Reason == "AssignmentLost" })
	if !config.is(v.Config.Active) {
		t.Errorf("the configuration did not stay: %v", v)
	}
	if _, err := requestAs(operator, http.MethodPatch, nodePath, object{"metadata": object{"annotations": object{assignmentAnnotation: "local"}}}, nil); err != nil {
		t.Fatal(err)
	}
	n.awaitReason(t, "local", "Local")
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
	}
}
