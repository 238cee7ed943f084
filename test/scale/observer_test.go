//go:build linux

package scale

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func saysNode(name, active, problem string, status corev1.ConditionStatus) *corev1.Node {
	text := `{"error":"` + problem + `"}`
	if active != "" {
		text = `{"active":{"configMap":{"resourceVersion":"` + active + `"}},"error":"` + problem + `"}`
	}
	reason := map[corev1.ConditionStatus]string{corev1.ConditionTrue: nodev1.ReasonInTrial, corev1.ConditionUnknown: nodev1.ReasonApplying}[status]
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		nodev1.ConfigStatusAnnotation: text, nodev1.StatusAnnotation: nodev1.Status{Reason: reason}.Encode()}}}
}

func TestObserverAwaitsEveryNode(t *testing.T) {
	at := time.Unix(1000, 0)
	o := &observer{nodes: map[string]view{}}
	o.saw(saysNode("a", "1", "", corev1.ConditionTrue), at)
	o.saw(saysNode("b", "1", "", corev1.ConditionTrue), at)
	goal := o.expect(func(v view) bool { return v.follows("1") })
	for i, node := range []*corev1.Node{
		saysNode("a", "2", "", corev1.ConditionUnknown), // not healthy yet
		saysNode("a", "2", "failed", corev1.ConditionTrue),
		saysNode("a", "2", "", corev1.ConditionTrue),
		saysNode("a", "3", "", corev1.ConditionTrue), // it is there already
	} {
		o.saw(node, at.Add(time.Duration(i)*time.Second))
	}
	if words := o.missing(goal); !strings.HasPrefix(words, "1 of 2 nodes are as awaited; b says True InTrial {") {
		t.Errorf("missing: %s", words)
	}
	if words := o.instead(goal); words != "1 InTrial" {
		t.Errorf("instead: %s", words)
	}
	o.saw(saysNode("b", "2", "", corev1.ConditionTrue), at.Add(time.Second))
	moments, err := o.await(t.Context(), goal, 2)
	if err != nil || len(moments) != 2 || !moments[0].Equal(at.Add(time.Second)) || !moments[1].Equal(at.Add(2*time.Second)) {
		t.Errorf("%v, %v", moments, err)
	}
	if err := o.hold("version 2", func(v view) bool { return v.runs("2") }); err == nil || !strings.Contains(err.Error(), "node a does not say version 2 any more") {
		t.Errorf("a went on to another version: %v", err)
	}
}
