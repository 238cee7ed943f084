package v1

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aNode is one that a supervisor has answered on.
func aNode() *corev1.Node {
	s := whole()
	s.Observed = "ns/a/kubelet"
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			ConfigSourceAnnotation: "ns/a/kubelet", RetryAnnotation: "again", AllowDisruptionAnnotation: "0123456789ab+any",
			ConfigObservedAnnotation: "ns/a/kubelet", StatusAnnotation: s.Encode(),
			ConfigStatusAnnotation: `{"active":{"configMap":{"namespace":"ns","name":"a","kubeletConfigKey":"kubelet"}}}`,
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: ConditionType, Status: corev1.ConditionTrue, Reason: ReasonRejected, Message: "forged"}}},
	}
}

func TestRead(t *testing.T) {
	field := func(c *corev1.ConfigMapNodeConfigSource) func(*corev1.Node) {
		return func(n *corev1.Node) {
			delete(n.Annotations, ConfigSourceAnnotation)
			n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: c}
		}
	}
	annotate := func(name, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[name] = value }
	}
	remove := func(names ...string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			for _, name := range names {
				delete(n.Annotations, name)
			}
		}
	}
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		is     func(NodeStatus) bool
	}{
		"all": {func(*corev1.Node) {}, func(n NodeStatus) bool {
			return n.Assignment == "ns/a/kubelet" && n.Carrier == CarrierAnnotation && n.Retry == "again" && n.AllowDisruption == "0123456789ab+any" &&
				n.Supervised && n.Problem == nil && AssignmentOf(n.Config.Active).String() == "ns/a/kubelet" && n.Status.Encode() != "{}" &&
				n.Status.Reason == ReasonWouldDisrupt && n.Condition.Message == "forged" && n.Answered() && n.Knows(LayersFeature) && !n.Knows("wings")
		}},
		"nothing": {func(n *corev1.Node) { *n = corev1.Node{} }, func(n NodeStatus) bool {
			a, err := n.Wanted()
			return !n.Supervised && n.Carrier == CarrierNone && n.Problem == nil && !n.Answered() && a.IsLocal() && err == nil
		}},
		"a field": {field(&corev1.ConfigMapNodeConfigSource{Namespace: "ns", Name: "a", KubeletConfigKey: "kubelet"}), func(n NodeStatus) bool {
			a, err := n.Wanted()
			return n.Carrier == CarrierField && n.Assignment == "ns/a/kubelet" && a.Name == "a" && err == nil && n.Answered()
		}},
		"an empty field": {field(nil), func(n NodeStatus) bool {
			_, err := n.Wanted()
			return n.Carrier == CarrierField && n.Assignment == "" && err != nil && !n.Answered()
		}},
		"a field that names nothing": {field(&corev1.ConfigMapNodeConfigSource{}), func(n NodeStatus) bool {
			_, err := n.Wanted()
			return n.Assignment == "//" && err != nil && !n.Answered()
		}},
		"an annotation overrides the field": {func(n *corev1.Node) {
			n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Name: "b"}}
		}, func(n NodeStatus) bool { return n.Carrier == CarrierAnnotation && n.Assignment == "ns/a/kubelet" }},
		"local, and nothing observed": {func(n *corev1.Node) {
			n.Annotations[ConfigSourceAnnotation] = Local
			n.Annotations[StatusAnnotation] = Status{Reason: ReasonLocal}.Encode()
		}, NodeStatus.Answered},
		"another assignment":         {annotate(ConfigSourceAnnotation, "ns/b/kubelet"), func(n NodeStatus) bool { return !n.Answered() }},
		"a status that is broken":    {annotate(StatusAnnotation, "{"), func(n NodeStatus) bool { return n.Problem != nil && n.Supervised && n.Status.Reason == "" }},
		"a status that is too long":  {annotate(StatusAnnotation, strings.Repeat(" ", 9000)+"{}"), func(n NodeStatus) bool { return n.Problem != nil }},
		"a config-status of nothing": {annotate(ConfigStatusAnnotation, "{}"), func(n NodeStatus) bool { return n.Supervised && n.Problem == nil && n.Config.Active == nil }},
		"a broken config-status":     {annotate(ConfigStatusAnnotation, `{"active":7}`), func(n NodeStatus) bool { return n.Supervised && n.Problem != nil && n.Config.Active == nil }},
		"an endless config-status":   {annotate(ConfigStatusAnnotation, strings.Repeat(" ", 40<<10)+"{}"), func(n NodeStatus) bool { return n.Problem != nil }},
		"no supervisor":              {remove(ConfigStatusAnnotation, StatusAnnotation), func(n NodeStatus) bool { return !n.Supervised && !n.Answered() }},
	} {
		node := aNode()
		row.change(node)
		if n := Read(node); !row.is(n) {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("ns/a/kubelet", `{"active":{"configMap":{"name":"a"}}}`, whole().Encode(), "message")
	f.Add("\x00", `{"error":"\u001b"}`, `{"reason":"a\nb"}`, "")
	f.Fuzz(func(t *testing.T, assignment, config, status, message string) {
		n := Read(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ConfigSourceAnnotation: assignment, ConfigStatusAnnotation: config, StatusAnnotation: status}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: ConditionType, Message: message}}},
		})
		if n.Assignment != assignment || n.Problem == nil && (len(config) > maxConfigStatus || len(status) > maxStatus) {
			t.Errorf("read as %+v", n)
		}
		_, _ = n.Wanted()
		n.Answered()
	})
}

// Each reason has one status; the design's table has them.
func TestConditionStatus(t *testing.T) {
	for status, reasons := range map[corev1.ConditionStatus][]Reason{
		corev1.ConditionTrue:    {ReasonLocal, ReasonInTrial, ReasonActive},
		corev1.ConditionUnknown: {ReasonApplying, ReasonEnvironmentFailing, ReasonStopped, "", "ofAnotherVersion"},
		corev1.ConditionFalse: {ReasonInvalidAssignment, ReasonSyncFailed, ReasonRefused, ReasonWouldDisrupt, ReasonRolledBack, ReasonRejected,
			ReasonLastKnownGoodFailed, ReasonFallbackBroken, ReasonAssignmentLost, ReasonInternalError},
	} {
		for _, reason := range reasons {
			if got := ConditionStatus(reason); got != status {
				t.Errorf("%s is %s, want %s", reason, got, status)
			}
		}
	}
}
