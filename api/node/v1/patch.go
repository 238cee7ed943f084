package v1

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Publication is what a supervisor publishes on its Node, all of it in one patch.
type Publication struct {
	Config corev1.NodeConfigStatus
	// Observed is written to [ConfigObservedAnnotation]: nil leaves that unchanged, "" removes it.
	Observed *string
	Status   Status
	// Condition has the Status, Reason and Message to publish. Its type comes from the contract, and its times from the patch.
	Condition corev1.NodeCondition
}

// Patch is a strategic merge patch of nodes/NAME/status. In it null removes a field, and an absent field stays.
type Patch struct {
	Metadata patchedMetadata `json:"metadata"`
	Status   patchedStatus   `json:"status"`
}

type patchedMetadata struct {
	Annotations map[string]*string `json:"annotations"`
}

type patchedStatus struct {
	Conditions []patchedCondition `json:"conditions"`
	Config     *patchedConfig     `json:"config,omitempty"`
}

// patchedCondition is a corev1.NodeCondition with its empty fields, so that no older message stays.
type patchedCondition struct {
	Type               corev1.NodeConditionType `json:"type"`
	Status             corev1.ConditionStatus   `json:"status"`
	Reason             string                   `json:"reason"`
	Message            string                   `json:"message"`
	LastHeartbeatTime  metav1.Time              `json:"lastHeartbeatTime"`
	LastTransitionTime metav1.Time              `json:"lastTransitionTime"`
}

// patchedConfig is a corev1.NodeConfigStatus with null for its empty fields.
type patchedConfig struct {
	Assigned      *corev1.NodeConfigSource `json:"assigned"`
	Active        *corev1.NodeConfigSource `json:"active"`
	LastKnownGood *corev1.NodeConfigSource `json:"lastKnownGood"`
	Error         *string                  `json:"error"`
}

// NewPatch makes a Node show a publication. before is what the Node says now: a condition's lastTransitionTime moves
// only with its status, and what was observed stays where nothing has been yet. fields: the API server may keep
// status.config, which then says the same.
func NewPatch(before NodeStatus, after Publication, at time.Time, fields bool) (Patch, error) {
	var patch Patch
	config, err := json.Marshal(after.Config)
	if err != nil {
		return patch, fmt.Errorf("encoding the configuration status: %w", err)
	}
	text := string(config)
	patch.Metadata.Annotations = map[string]*string{ConfigStatusAnnotation: &text}
	after.Status.Observed = before.Status.Observed
	if after.Observed != nil {
		after.Status.Observed = *after.Observed
		patch.Metadata.Annotations[ConfigObservedAnnotation] = orNull(*after.Observed)
	}
	status := after.Status.Encode()
	patch.Metadata.Annotations[StatusAnnotation] = &status
	condition := patchedCondition{
		Type: ConditionType, Status: after.Condition.Status, Reason: after.Condition.Reason, Message: after.Condition.Message,
		LastHeartbeatTime: metav1.Time{Time: at}, LastTransitionTime: metav1.Time{Time: at},
	}
	if was := before.Condition; was.Status == condition.Status && !was.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = was.LastTransitionTime
	}
	patch.Status.Conditions = []patchedCondition{condition}
	if fields {
		c := after.Config
		patch.Status.Config = &patchedConfig{c.Assigned, c.Active, c.LastKnownGood, orNull(c.Error)}
	}
	return patch, nil
}

// orNull returns nil, which is null in a patch, for "".
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// CarriedBy reports whether a Node has the annotations of the patch: they alone are kept by every API server.
func (p Patch) CarriedBy(node *corev1.Node) bool {
	for key, want := range p.Metadata.Annotations {
		got, ok := node.Annotations[key]
		if ok != (want != nil) || ok && got != *want {
			return false
		}
	}
	return true
}

// AnnotationsOfTheNode are those that only the supervisor sets. Others may remove them.
func AnnotationsOfTheNode() []string {
	return []string{ConfigStatusAnnotation, ConfigObservedAnnotation, StatusAnnotation}
}
