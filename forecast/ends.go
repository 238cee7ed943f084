package forecast

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// An End is a pod that has ended.
type End struct {
	UID      types.UID
	Reason   string // that its status names, if it names one
	Rejected bool   // a kubelet has turned it away, or has ended it to make room for another
}

func (p *podDocument) end() End {
	status := corev1.PodStatus{Phase: p.Status.Phase, Reason: p.Status.Reason, Message: p.Status.Message}
	return End{UID: p.Metadata.UID, Reason: status.Reason,
		Rejected: rejection.Is(&status) || status.Phase == corev1.PodFailed && status.Reason == rejection.Preempting || p.endedWithoutCause()}
}

// endedWithoutCause finds a pod that was turned away while it ran, and whose containers then exited with 0: the
// kubelet calls it Succeeded, and forgets the reason. A pod of restart policy Always succeeds in no other way, except
// after a deletion, an eviction or a shutdown of the node.
func (p *podDocument) endedWithoutCause() bool {
	if p.Status.Phase != corev1.PodSucceeded || p.Status.Reason != "" || p.Metadata.DeletionTimestamp != nil || p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return false
	}
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].RestartPolicy != nil { // its containers have policies of their own
			return false
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return true
}
