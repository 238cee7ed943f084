package status

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What the Node shows on any cluster.
const (
	// FeaturesAnnotation lists what this supervisor can, with commas between.
	FeaturesAnnotation = "kubelet-supervisor.io/features"
	// RetryObservedAnnotation holds the newest retry that was heard, verbatim.
	RetryObservedAnnotation = "kubelet-supervisor.io/retry-observed"
)

// nodePatch is a strategic merge patch of nodes/NAME/status. In it null removes, and what is absent stays.
type nodePatch struct {
	Metadata struct {
		Annotations map[string]*string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Conditions []conditionPatch `json:"conditions"`
		Config     *configPatch     `json:"config,omitempty"`
	} `json:"status"`
}

// conditionPatch is a corev1.NodeCondition that also says what is empty, so that no older words stay.
type conditionPatch struct {
	Type               corev1.NodeConditionType `json:"type"`
	Status             corev1.ConditionStatus   `json:"status"`
	Reason             string                   `json:"reason"`
	Message            string                   `json:"message"`
	LastHeartbeatTime  metav1.Time              `json:"lastHeartbeatTime"`
	LastTransitionTime metav1.Time              `json:"lastTransitionTime"`
}

// configPatch is a corev1.NodeConfigStatus that says null for what is empty.
type configPatch struct {
	Assigned      *corev1.NodeConfigSource `json:"assigned"`
	Active        *corev1.NodeConfigSource `json:"active"`
	LastKnownGood *corev1.NodeConfigSource `json:"lastKnownGood"`
	Error         *string                  `json:"error"`
}

// patchOf builds the patch that makes a Node show an offer. before is the condition that the Node has, nil for none: a
// condition's lastTransitionTime moves only with its status.
func patchOf(o offer, before *corev1.NodeCondition, withConfig bool) (nodePatch, error) {
	var patch nodePatch
	report := o.report
	config, err := json.Marshal(report.Config)
	if err != nil {
		return patch, fmt.Errorf("encoding the configuration status: %w", err)
	}
	text := string(config)
	patch.Metadata.Annotations = map[string]*string{nodev1.ConfigStatusAnnotation: &text}
	if report.Observed != nil {
		patch.Metadata.Annotations[nodev1.ConfigObservedAnnotation] = pointer(*report.Observed)
	}
	for key, value := range map[string]string{FeaturesAnnotation: report.Features, RetryObservedAnnotation: report.Retry, LastChangeAnnotation: report.LastChange} {
		if value != "" {
			patch.Metadata.Annotations[key] = &value
		}
	}
	condition := conditionPatch{
		Type: nodev1.ConditionType, Status: report.Condition.Status, Reason: report.Condition.Reason, Message: Message(report.Condition.Message),
		LastHeartbeatTime: metav1.Time{Time: o.at}, LastTransitionTime: metav1.Time{Time: o.at},
	}
	if before != nil && before.Status == condition.Status && !before.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	patch.Status.Conditions = []conditionPatch{condition}
	if withConfig {
		c := report.Config
		patch.Status.Config = &configPatch{c.Assigned, c.Active, c.LastKnownGood, pointer(c.Error)}
	}
	return patch, nil
}

// pointer gives nil, null in a patch, for "".
func pointer(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// carried tells whether a Node has the annotations of the patch: they alone are kept by every API server.
func (p nodePatch) carried(node *corev1.Node) bool {
	for key, want := range p.Metadata.Annotations {
		got, ok := node.Annotations[key]
		if ok != (want != nil) || ok && got != *want {
			return false
		}
	}
	return true
}

func conditionOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == nodev1.ConditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// keepsFields tells whether this Node shows that the API server keeps spec.configSource and status.config, which
// Kubernetes 1.26 and later drop from every Node that does not have them already (NodeStrategy, dropDisabledFields).
func keepsFields(node *corev1.Node) bool {
	return node.Spec.ConfigSource != nil || node.Status.Config != nil
}
