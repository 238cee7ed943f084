package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func TestJudge(t *testing.T) {
	wanted, other := configMapOf("new", someConfig), configMapOf("old", someConfig)
	edited := wanted.DeepCopy()
	edited.ResourceVersion = "6"
	const text = "kubelet-config/new/kubelet"
	says := func(observed, reason string, state corev1.ConditionStatus, active, good *corev1.ConfigMap) *corev1.Node {
		return saying(newNode("n1"), observed, reason, state, "words", active, good)
	}
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	for _, test := range []struct {
		name       string
		node       *corev1.Node
		assignment string // on the Node
		good       bool   // --until=good
		want       verdict
		words      string
	}{
		{"no supervisor", newNode("n1"), text, false, waiting, "no supervisor has spoken on this node yet"},
		{"the old status", says("", "Local", yes, nil, nil), text, false, waiting, "waits for the node's supervisor"},
		{"assigned otherwise meanwhile", says(text, "InTrial", yes, wanted, nil), "local", false, failed, `another user or program assigned "local" in the meantime`},
		{"under way", says(text, "Applying", unknown, other, other), text, false, waiting, "Applying: words"},
		{"on trial", says(text, "InTrial", yes, wanted, other), text, false, reached, "runs kubelet-config/new/kubelet"},
		{"on trial, and good is wanted", says(text, "InTrial", yes, wanted, other), text, true, waiting, "runs it on trial"},
		{"good", says(text, "Active", yes, wanted, wanted), text, true, reached, "passed its trial with kubelet-config/new/kubelet"},
		{"an older version runs", says(text, "InTrial", yes, edited, other), text, false, waiting, "runs another version of kubelet-config/new/kubelet"},
		{"another runs", says(text, "Active", yes, other, other), text, false, waiting, "runs kubelet-config/old/kubelet"},
		{"refused", says(text, "Refused", no, other, other), text, false, failed, "Refused: words"},
		{"rejected", says(text, "Rejected", no, other, other), text, false, failed, "Rejected: words"},
		{"held for its pods, which takes a person", says(text, "WouldDisrupt", no, other, other), text, false, failed, "WouldDisrupt: words"},
		{"rolled back, verdict to come", says(text, "RolledBack", no, other, other), text, false, waiting, "RolledBack: words"},
		{"ConfigMap not to be had yet", says(text, "SyncFailed", no, other, other), text, false, failing, "SyncFailed: words"},
		{"the environment fails", says(text, "EnvironmentFailing", unknown, other, other), text, false, waiting, "EnvironmentFailing: words"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.node.Annotations == nil {
				test.node.Annotations = map[string]string{}
			}
			test.node.Annotations[nodev1.ConfigSourceAnnotation] = test.assignment
			g := waitCondition{wanted: nodev1.Assignment{Namespace: "kubelet-config", Name: "new", Key: "kubelet"}, text: text, uid: string(wanted.UID), version: "7", good: test.good}
			if got, words := g.judge(view.NodeOf(test.node)); got != test.want || words != test.words {
				t.Errorf("got %d %q, want %d %q", got, words, test.want, test.words)
			}
		})
	}
}

func TestJudgeReset(t *testing.T) {
	config := configMapOf("old", someConfig)
	for _, test := range []struct {
		name string
		node *corev1.Node
		want verdict
	}{
		{"the old status", saying(newNode("n1"), "kubelet-config/old/kubelet", "Active", corev1.ConditionTrue, "", config, config), waiting},
		{"local", localNode("n1"), reached},
		{"local is broken", saying(newNode("n1"), "", "FallbackBroken", corev1.ConditionFalse, "", config, nil), failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, words := (waitCondition{}).judge(view.NodeOf(test.node)); got != test.want {
				t.Errorf("got %d %q, want %d", got, words, test.want)
			}
		})
	}
}

// A retry is answered once it has been heard, even by the same.
func TestJudgeRetry(t *testing.T) {
	const text = "kubelet-config/new/kubelet"
	node := saying(newNode("n1"), text, "Rejected", corev1.ConditionFalse, "died", nil, nil)
	node.Annotations[nodev1.ConfigSourceAnnotation] = text
	g := waitCondition{wanted: nodev1.Assignment{Namespace: "kubelet-config", Name: "new", Key: "kubelet"}, text: text, retry: "2"}
	if got, words := g.judge(view.NodeOf(node)); got != waiting {
		t.Errorf("before: got %d %q, want to wait", got, words)
	}
	again := resaying(node.DeepCopy(), func(s *nodev1.Status) { s.Retry = "2" })
	if got, words := g.judge(view.NodeOf(again)); got != failed {
		t.Errorf("after: got %d %q, want a failure", got, words)
	}
}

// Another key of the same ConfigMap is another configuration.
func TestJudgeKey(t *testing.T) {
	config := configMapOf("new", someConfig)
	const text = "kubelet-config/new/other"
	node := saying(newNode("n1"), text, "InTrial", corev1.ConditionTrue, "", config, nil) // its key is kubelet
	node.Annotations[nodev1.ConfigSourceAnnotation] = text
	g := waitCondition{wanted: nodev1.Assignment{Namespace: "kubelet-config", Name: "new", Key: "other"}, text: text, uid: string(config.UID), version: "7"}
	if got, words := g.judge(view.NodeOf(node)); got != waiting || words != "runs kubelet-config/new/kubelet" {
		t.Errorf("got %d %q, want to wait", got, words)
	}
}
