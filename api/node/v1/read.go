package v1

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxConfigStatus limits [ConfigStatusAnnotation] when it is read, in bytes. A supervisor writes less.
const maxConfigStatus = 32 << 10

// Carrier is the place on a Node that has its assignment.
type Carrier string

// The carriers.
const (
	CarrierNone       Carrier = ""
	CarrierAnnotation Carrier = "annotation"
	CarrierField      Carrier = "spec.configSource"
)

// NodeStatus is what a Node has about its kubelet's configuration: the request, and the answer of its supervisor.
type NodeStatus struct {
	// Assignment is the assignment, verbatim, empty if there is none; Carrier is where it is. An annotation overrides the field.
	Assignment string
	Carrier    Carrier
	// Retry and AllowDisruption are the values of their annotations, verbatim.
	Retry, AllowDisruption string

	// Supervised means that a supervisor has published its status.
	Supervised bool
	Config     corev1.NodeConfigStatus
	Status     Status
	// Problem is why Config or Status cannot be decoded. That one is empty then.
	Problem error

	// Condition is for people: every user who may patch nodes/status can forge it, so no program decides by it. Its zero value is none.
	Condition corev1.NodeCondition
}

// Read reads a Node. It accepts any content: what is malformed is in Problem.
func Read(node *corev1.Node) NodeStatus {
	n := NodeStatus{Retry: node.Annotations[RetryAnnotation], AllowDisruption: node.Annotations[AllowDisruptionAnnotation]}
	n.readAssignment(node)
	if text, is := node.Annotations[ConfigStatusAnnotation]; is {
		n.Supervised = true
		n.Config, n.Problem = decodeConfig(text)
	}
	if text, is := node.Annotations[StatusAnnotation]; is {
		status, err := DecodeStatus(text)
		if n.Status = status; err != nil {
			n.Problem = fmt.Errorf("annotation %s cannot be read: %w", StatusAnnotation, err)
		}
	}
	if condition := ConditionOf(node); condition != nil {
		n.Condition = *condition
	}
	return n
}

func (n *NodeStatus) readAssignment(node *corev1.Node) {
	if text, is := node.Annotations[ConfigSourceAnnotation]; is {
		n.Assignment, n.Carrier = text, CarrierAnnotation
		return
	}
	source := node.Spec.ConfigSource
	if source == nil {
		return
	}
	n.Carrier = CarrierField
	if source.ConfigMap != nil {
		n.Assignment = FieldText(source.ConfigMap)
	}
}

func decodeConfig(text string) (corev1.NodeConfigStatus, error) {
	var config corev1.NodeConfigStatus
	err := fmt.Errorf("it has %d bytes, and at most %d are read", len(text), maxConfigStatus)
	if len(text) <= maxConfigStatus {
		err = json.Unmarshal([]byte(text), &config)
	}
	if err != nil {
		return corev1.NodeConfigStatus{}, fmt.Errorf("annotation %s cannot be read: %s", ConfigStatusAnnotation, bounded.Text(bounded.Line(err.Error()), 200))
	}
	return config, nil
}

// ConditionOf returns the condition [ConditionType] of a Node; nil if there is none.
func ConditionOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == ConditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// Answered reports whether the status speaks of the assignment that stands. No assignment and local are the same.
func (n NodeStatus) Answered() bool {
	return n.Supervised && (n.Status.Observed == n.Assignment || n.Assignment == Local && n.Status.Observed == "")
}

// Wanted returns the current assignment, local if there is none, or an error if it is malformed.
func (n NodeStatus) Wanted() (Assignment, error) {
	if n.Carrier == CarrierNone {
		return Assignment{}, nil
	}
	return ParseAssignment(n.Assignment)
}

// Knows reports whether the supervisor has a feature, such as [LayersFeature].
func (n NodeStatus) Knows(feature string) bool {
	for _, known := range n.Status.Features {
		if known == feature {
			return true
		}
	}
	return false
}
