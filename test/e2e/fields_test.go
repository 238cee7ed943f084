//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// setField assigns as the original API did, by spec.configSource; an empty key removes it.
func (n *node) setField(t *testing.T, config *configMap, key string) {
	t.Helper()
	var source any
	if key != "" {
		source = object{"configMap": object{"namespace": config.Namespace, "name": config.Name, "kubeletConfigKey": key}}
	}
	n.must(t, http.MethodPatch, nodePath, object{"spec": object{"configSource": source}}, nil)
}

// awaitField waits until the Node speaks of this assignment with this reason, and says the same in the annotation and in
// status.config.
func (n *node) awaitField(t *testing.T, observed, reason string) nodeView {
	t.Helper()
	return n.awaitNode(t, fmt.Sprintf("%q is %s, in annotation and field", observed, reason), func(v nodeView) bool {
		return v.is(observed, reason) && v.Field != nil && equality.Semantic.DeepEqual(*v.Field, v.Config)
	})
}

// Where the API server keeps the fields of the original API, they assign and report as the annotations do, in the words of
// Kubernetes.
func TestFields(t *testing.T) {
	n := nodeOf(t, keepsTheAPI)
	s := n.startedLocal(t, options{})
	v := n.awaitField(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")

	first := n.putConfigMap(t, "first", map[string]string{
		"kubelet": n.kubeletConfig(with("maxPods", 81)),
		"invalid": n.kubeletConfig(with("eventRecordQPS", -5)),
		"parse":   "{0xdeadbeef}",
		"deadly":  n.kubeletConfig(deadly[0].change),
	})
	good := first.source("kubelet")
	// Upstream's node authorizer lets a node read what its configSource names; no Role is needed.
	n.deny(t, first.Namespace, first.Name)
	n.setField(t, first, "kubelet")
	v = n.awaitField(t, first.assignment("kubelet"), "InTrial")
	wantStatus(t, v, good, good, nil, "")
	if got := s.configz(t)["maxPods"]; got != 81.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 81", got)
	}
	v = n.awaitField(t, first.assignment("kubelet"), "Active")
	wantStatus(t, v, good, good, good, "")
	kubelet := s.kubelet(t)

	for _, test := range []struct{ name, key, reason, wantError string }{
		{"a payload that does not parse", "parse", "Refused", loadError},
		{"an invalid value", "invalid", "Refused", validateError},
		{"a key that is not there", "absent", "Refused", loadError},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.setField(t, first, test.key)
			v := n.awaitField(t, first.assignment(test.key), test.reason)
			wantStatus(t, v, first.source(test.key), good, good, test.wantError)
			if now := s.kubelet(t); now.ID != kubelet.ID {
				t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
			}
		})
	}

	missing := &configMap{ConfigMap: &corev1.ConfigMap{}, node: n}
	missing.Namespace, missing.Name = "kube-system", "missing"
	n.setField(t, missing, "kubelet")
	v = n.awaitField(t, missing.assignment("kubelet"), "SyncFailed")
	wantStatus(t, v, first.source("absent"), good, good, downloadError)

	n.setField(t, first, "deadly")
	v = n.awaitField(t, first.assignment("deadly"), "RolledBack")
	wantStatus(t, v, first.source("deadly"), good, good, runError)

	n.setField(t, first, "")
	v = n.awaitField(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
	}
}

// The annotation goes before the field, and the Node says so.
func TestAnnotationBeforeField(t *testing.T) {
	n := nodeOf(t, keepsTheAPI)
	s := n.startedLocal(t, options{})
	byField := n.putConfigMap(t, "field", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 82))})
	byAnnotation := n.putConfigMap(t, "annotation", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 83))})
	n.setField(t, byField, "kubelet")
	n.awaitField(t, byField.assignment("kubelet"), "InTrial")

	n.assign(t, byAnnotation.assignment("kubelet"))
	v := n.awaitField(t, byAnnotation.assignment("kubelet"), "InTrial")
	if !byAnnotation.is(v.Config.Active) || !strings.Contains(v.Condition.Message, "the annotation wins over spec.configSource") {
		t.Errorf("with both, the annotation's configuration is to run, and the message to say so: %v", v)
	}
	n.assign(t, "not an assignment")
	v = n.awaitField(t, "not an assignment", "InvalidAssignment")
	if !byAnnotation.is(v.Config.Active) {
		t.Errorf("a malformed annotation made the kubelet run something else: %v", v)
	}
	n.unassign(t)
	v = n.awaitField(t, byField.assignment("kubelet"), "InTrial")
	if !byField.is(v.Config.Active) || strings.Contains(v.Condition.Message, "the annotation wins") {
		t.Errorf("without the annotation the field's configuration is to run: %v", v)
	}
	if got := s.configz(t)["maxPods"]; got != 82.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 82", got)
	}
}

// An API server of today drops the fields without a word; nothing is assigned by them.
func TestFieldsDropped(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	kubelet := s.kubelet(t)
	config := n.putConfigMap(t, "dropped", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 84))})
	n.setField(t, config, "kubelet")
	n.annotate(t, retryAnnotation, "a change that the supervisor sees")
	n.assign(t, "local")
	v := n.awaitReason(t, "local", "Local")
	if v.Node.Spec.ConfigSource != nil || v.Field != nil {
		t.Errorf("this API server keeps the fields: %v", v)
	}
	wantStatus(t, v, nil, nil, nil, "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
}
