package v1

// Annotations that people, the plugin and the controller write; the node reads them.
const (
	// ConfigSourceAnnotation assigns: NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local.
	ConfigSourceAnnotation = "kubelet-supervisor.io/config-source"
	// RetryAnnotation asks for another try of what was rejected; any new value does.
	RetryAnnotation = "kubelet-supervisor.io/retry"
	// AllowDisruptionAnnotation lets the one held change through whose [Hold.Approval] it is.
	AllowDisruptionAnnotation = "kubelet-supervisor.io/allow-disruption"
)

// Annotations and condition that only the node writes.
const (
	// ConfigStatusAnnotation holds the JSON of a corev1.NodeConfigStatus, "{}" when all of it is empty.
	ConfigStatusAnnotation = "kubelet-supervisor.io/config-status"
	// ConfigObservedAnnotation holds the assignment that the status speaks of, verbatim.
	ConfigObservedAnnotation = "kubelet-supervisor.io/config-observed"
	// StatusAnnotation holds the JSON of a [Status].
	StatusAnnotation = "kubelet-supervisor.io/status"
	// ConditionType is the type of the Node condition, the alpha feature's name for it.
	ConditionType = "KubeletConfigOk"
)

// LayersFeature is in [Status.Features] of a supervisor which knows KubeletConfigurationLayers.
const LayersFeature = "layers"
