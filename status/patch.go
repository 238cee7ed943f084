package status

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What the status annotation replaces, until nobody reads these any more.
const (
	FeaturesAnnotation      = "kubelet-supervisor.io/features"
	RetryObservedAnnotation = "kubelet-supervisor.io/retry-observed"
	LastChangeAnnotation    = "kubelet-supervisor.io/last-change"
)

func patchOf(o offer, before nodev1.NodeStatus, withConfig bool) (nodev1.Patch, error) {
	after := o.report.Publication
	after.Condition.Message = Message(after.Condition.Message)
	patch, err := nodev1.NewPatch(before, after, o.at, withConfig)
	if err != nil {
		return patch, err
	}
	features, change := strings.Join(after.Status.Features, ","), ""
	if after.Status.Change != nil {
		text, err := json.Marshal(after.Status.Change)
		if err != nil {
			return patch, err
		}
		change = string(text)
	}
	for key, value := range map[string]string{FeaturesAnnotation: features, RetryObservedAnnotation: after.Status.Retry, LastChangeAnnotation: change} {
		if value != "" {
			patch.Metadata.Annotations[key] = &value
		}
	}
	return patch, nil
}

// keepsFields tells whether this Node shows that the API server keeps spec.configSource and status.config, which
// Kubernetes 1.26 and later drop from every Node that does not have them already (NodeStrategy, dropDisabledFields).
func keepsFields(node *corev1.Node) bool {
	return node.Spec.ConfigSource != nil || node.Status.Config != nil
}
