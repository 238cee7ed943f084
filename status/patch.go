package status

import (
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// patchOf is the patch that makes a Node show an offer.
func patchOf(o offer, before nodev1.NodeStatus, withConfig bool) (nodev1.Patch, error) {
	after := o.report.Publication
	after.Condition.Message = Message(after.Condition.Message)
	return nodev1.NewPatch(before, after, o.at, withConfig)
}

// keepsFields reports whether this Node shows that the API server keeps spec.configSource and status.config, which
// Kubernetes 1.26 and later drop from every Node that does not have them already (NodeStrategy, dropDisabledFields).
func keepsFields(node *corev1.Node) bool {
	return node.Spec.ConfigSource != nil || node.Status.Config != nil
}
