package v1

// Annotations that users, the plugin and the controller write, and that the node reads. Those that the node does not read are in plugin/view and
// fleet/rollout.
const (
	// ConfigSourceAnnotation is the assignment: NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local.
	ConfigSourceAnnotation = "kubelet-supervisor.io/config-source"
	// RetryAnnotation asks for another attempt with a rejected configuration. Any new value does.
	RetryAnnotation = "kubelet-supervisor.io/retry"
	// AllowDisruptionAnnotation approves the held change that has this value as its [Hold.Approval].
	AllowDisruptionAnnotation = "kubelet-supervisor.io/allow-disruption"
)

// Annotations and condition that the node writes.
const (
	// ConfigStatusAnnotation has the JSON of a corev1.NodeConfigStatus, "{}" if all of it is empty.
	ConfigStatusAnnotation = "kubelet-supervisor.io/config-status"
	// ConfigObservedAnnotation has the assignment that the status is about, verbatim.
	ConfigObservedAnnotation = "kubelet-supervisor.io/config-observed"
	// StatusAnnotation has the JSON of a [Status].
	StatusAnnotation = "kubelet-supervisor.io/status"
	// ConditionType is the type of the Node condition, the alpha feature's name for it.
	ConditionType = "KubeletConfigOk"
)

// LayersFeature is in [Status.Features] of a supervisor that supports KubeletConfigurationLayers.
const LayersFeature = "layers"
