// Package nodetest lets the Nodes of tests say what a supervisor would publish on them.
package nodetest

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Say makes a Node in memory say what a supervisor would publish there: status and config, with the message in the
// condition. The supervisor knows layers, unless status names its features.
func Say(node *corev1.Node, status nodev1.Status, config corev1.NodeConfigStatus, message string) {
	if status.Features == nil {
		status.Features = []string{nodev1.LayersFeature}
	}
	now := time.Now()
	condition := corev1.NodeCondition{Type: nodev1.ConditionType, Status: nodev1.ConditionStatus(status.Reason), Reason: status.Reason, Message: message,
		LastHeartbeatTime: metav1.Time{Time: now}, LastTransitionTime: metav1.Time{Time: now}}
	patch, err := nodev1.NewPatch(nodev1.Read(node), nodev1.Publication{Config: config, Observed: &status.Observed, Status: status, Condition: condition}, now, false)
	if err != nil {
		panic(err) // a NodeConfigStatus that is made of text can be written
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	for key, value := range patch.Metadata.Annotations {
		if delete(node.Annotations, key); value != nil {
			node.Annotations[key] = *value
		}
	}
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == nodev1.ConditionType })
	if at < 0 {
		node.Status.Conditions = append(node.Status.Conditions, condition)
	} else {
		node.Status.Conditions[at] = condition
	}
}
