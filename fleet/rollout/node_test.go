package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

const variantText = "kubelet-config/pool-workers-5f6c8d9b7a/kubelet"

func aNode() *corev1.Node {
	created := metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "7", CreationTimestamp: created,
			Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
			Annotations: map[string]string{
				nodev1.ConfigSourceAnnotation: variantText, MarkAnnotation: "workers " + variantText + " 2", nodev1.RetryAnnotation: "workers/84bd77c4f0/2",
				RetryObservedAnnotation: "workers/84bd77c4f0/2", nodev1.ConfigObservedAnnotation: variantText, FeaturesAnnotation: "layers,more",
				nodev1.ConfigStatusAnnotation: `{"assigned":{"configMap":{"namespace":"kubelet-config","name":"pool-workers-5f6c8d9b7a","uid":"x","resourceVersion":"1","kubeletConfigKey":"kubelet"}}}`,
			}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "join"}}},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", Architecture: "arm64", BootID: "b"},
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "True"},
				{Type: "MemoryPressure", Status: "False"}, {Type: "KubeletConfigOk", Status: "False", Reason: "Refused", Message: "using current (default)"}},
		},
	}
}

func TestReadNode(t *testing.T) {
	retry := Retry{"workers", "84bd77c4f0", 2}
	want := Node{Name: "n1", UID: "u1", ResourceVersion: "7", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
		Created: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), Ready: true, ControlPlane: true, BootID: "b", Pressure: DiskPressure, Minor: "v1.36",
		Arch: "arm64", Taints: []string{"join"}, Supervised: true, Layered: true, Source: variantText, Mark: Mark{"workers", variantText, 2},
		Retry: retry, RetryObserved: retry, Observed: variantText, Assigned: variantText, Active: nodev1.Local, Good: nodev1.Local, Reason: "Refused",
		Message: "using current (default)"}
	if diff := cmp.Diff(want, ReadNode(aNode())); diff != "" {
		t.Error(diff)
	}
}

func TestWhatANodeSays(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		check  func(Node) bool
	}{
		"nothing":                 {func(n *corev1.Node) { n.Annotations = nil }, func(n Node) bool { return !n.Supervised && !n.Layered && n.Source == "" && n.Mark == Mark{} }},
		"a status that is empty":  {func(n *corev1.Node) { n.Annotations[nodev1.ConfigStatusAnnotation] = "{}" }, func(n Node) bool { return n.Supervised && n.Active == nodev1.Local }},
		"a status that is broken": {func(n *corev1.Node) { n.Annotations[nodev1.ConfigStatusAnnotation] = "{" }, func(n Node) bool { return !n.Supervised }},
		"the field": {func(n *corev1.Node) {
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
			n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "a", Name: "b", KubeletConfigKey: "c"}}
		}, func(n Node) bool { return n.Source == "a/b/c" && !n.Mark.Records(n.Source) }},
		"the field, empty": {func(n *corev1.Node) {
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
			n.Spec.ConfigSource = &corev1.NodeConfigSource{}
		}, func(n Node) bool { return n.Source != "" && !n.Mark.Records(n.Source) }},
		"a person's retry":      {func(n *corev1.Node) { n.Annotations[nodev1.RetryAnnotation] = "now" }, func(n Node) bool { return n.Retry == Retry{} }},
		"a mark that is broken": {func(n *corev1.Node) { n.Annotations[MarkAnnotation] = "workers x" }, func(n Node) bool { return n.Mark == Mark{} }},
		"adopted": {func(n *corev1.Node) {
			n.Annotations[MarkAnnotation] = "workers - 1"
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
		}, func(n Node) bool { return n.Mark.Records(n.Source) }},
		"deleted":           {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }, func(n Node) bool { return n.Leaving }},
		"the autoscaler's":  {taint("ToBeDeletedByClusterAutoscaler"), func(n Node) bool { return n.Leaving }},
		"Karpenter's":       {taint("karpenter.sh/disrupted"), func(n Node) bool { return n.Leaving }},
		"OpenShift at work": {annotation("machineconfiguration.openshift.io/state", "Working"), func(n Node) bool { return n.Updating }},
		"OpenShift at rest": {annotation("machineconfiguration.openshift.io/state", "Done"), func(n Node) bool { return !n.Updating }},
		"kured at work":     {annotation("kured.dev/reboot-in-progress", "x"), func(n Node) bool { return n.Updating }},
	} {
		t.Run(name, func(t *testing.T) {
			n := aNode()
			row.change(n)
			if got := ReadNode(n); !row.check(got) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func taint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key}) }
}

func annotation(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// What is written can be read.
func TestMarkAndRetry(t *testing.T) {
	mark, retry := Mark{"workers", variantText, 3}, Retry{"workers", "5f6c8d9b7a", 3}
	if got := ParseMark(mark.String()); got != mark || mark.String() != "workers "+variantText+" 3" {
		t.Errorf("%q is read as %v", mark, got)
	}
	if got := ParseRetry(retry.String()); got != retry || retry.String() != "workers/5f6c8d9b7a/3" {
		t.Errorf("%q is read as %v", retry, got)
	}
}
