// Package rejection knows how a kubelet says that it turns a pod away. It is the one place for these messages of
// another program: the forecast, the count of lost pods, the metrics and the pools use it, and a test compares it with
// the kubelet's own source code.
package rejection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// Prefix begins the message of every pod that a kubelet has turned away; 1.24 has none, 1.30 has it.
	Prefix = "Pod was rejected: "
	// OutOf begins the reason of a pod for which there is too little of a resource.
	OutOf = "OutOf"
	// Evicted is the reason of a pod that was turned away from a node under pressure, and also of one that was admitted and evicted later.
	Evicted = "Evicted"
	// Preempting is the reason of a running pod that has made room for a critical one.
	Preempting = "Preempting"
)

// pressure begins the message of an older kubelet for a pod that it turned away because of pressure.
const pressure = "Pod The node had condition: "

// reasons are those that a kubelet gives to no other pod than one that it has turned away; those that begin with OutOf may have other
// resources, too.
var reasons = []string{
	"OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage",
	"AppArmor", "EmptyPodSharedPoolError", "InitContainerRestartPolicyForbidden", "InvalidNodeInfo", "NodeAffinity", "NodeName", "NodePorts",
	"NodeShutdown", "PodFeatureUnsupported", "PodLevelResourcesNotSupported", "PodOSNotSupported",
	"PodOSSelectorNodeLabelDoesNotMatch", "SMTAlignmentError", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden", "TaintToleration",
	"TopologyAffinityError", "UnexpectedAdmissionError", "UnexpectedPredicateFailureType", "UnknownReason", "VolumeAttachmentLimitExceeded",
}

// Reasons are the reasons by which a pod is known to be turned away.
func Reasons() []string { return slices.Clone(reasons) }

// Known reports whether this reason alone says that the pod was turned away.
func Known(reason string) bool {
	return strings.HasPrefix(reason, OutOf) || slices.Contains(reasons, reason)
}

// Is reports whether a kubelet has turned the pod with this status away.
func Is(status *corev1.PodStatus) bool {
	return status.Phase == corev1.PodFailed && (Known(status.Reason) || Says(status.Message))
}

// Says reports whether this message of a failed pod says that it was turned away.
func Says(message string) bool {
	return strings.HasPrefix(message, Prefix) || strings.HasPrefix(message, pressure)
}
