package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeletPool is a kubelet configuration for the nodes that its selector matches. It is rolled out in waves, and the rollout stops automatically at
// the first sign of harm. It is to nodes what a Deployment is to pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kpool
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`
// +kubebuilder:printcolumn:name="Proven",type=integer,JSONPath=`.status.nodes.proven`
// +kubebuilder:printcolumn:name="Trial",type=integer,JSONPath=`.status.nodes.onTrial`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.nodes.failed`
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=`.status.nodes.unavailable`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.target.revision`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Wave",type=integer,priority=1,JSONPath=`.status.wave.number`
// +kubebuilder:printcolumn:name="Stable",type=integer,priority=1,JSONPath=`.status.stable.revision`
// +kubebuilder:printcolumn:name="Manual",type=integer,priority=1,JSONPath=`.status.nodes.manual`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Progress",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="a name has at most 40 characters, because ConfigMaps are named after it"
type KubeletPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec KubeletPoolSpec `json:"spec"`
	// +optional
	Status KubeletPoolStatus `json:"status,omitempty"`
}

// KubeletPoolList is a list of KubeletPools.
//
// +kubebuilder:object:root=true
type KubeletPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeletPool `json:"items"`
}

// KubeletPoolSpec says which nodes get which configuration, and how carefully.
//
// +kubebuilder:validation:XValidation:rule="!has(self.joinTaint) || !has(self.leavingTaints) || !(self.joinTaint in self.leavingTaints)",message="joinTaint is on nodes that join, so it cannot be in leavingTaints"
type KubeletPoolSpec struct {
	// selector selects nodes by their labels. A user who may write such a label chooses what a node runs: use labels that begin with
	// kubelet-supervisor.io/, such as kubelet-supervisor.io/pool-of.
	//
	// +required
	// +structType=atomic
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector would take every node"
	Selector metav1.LabelSelector `json:"selector"`

	// priority decides which pool owns a node that several pools select: the one with the highest priority. Where two are equal, no pool owns the node,
	// and both report Conflict.
	//
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`

	// base is what the layers are merged over: Local, each node's own file, or None, the layers alone.
	//
	// +optional
	// +kubebuilder:default=Local
	Base Base `json:"base,omitempty"`

	// layers are merged over the base one after the other; the later overrides the earlier. The order matters, so the list has one owner:
	// server-side apply replaces it as a whole. The names of layers are unique.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name == a.name))",message="the names of layers are unique"
	Layers []Layer `json:"layers"`

	// adoption is which members the pool adopts automatically: Unassigned, those without any assignment, or Never, only those that a user adopts.
	//
	// +optional
	// +kubebuilder:default=Unassigned
	Adoption Adoption `json:"adoption,omitempty"`

	// joinTaint is a taint key that is removed when a new node first runs its revision, and at once while no revision is stable.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	JoinTaint string `json:"joinTaint,omitempty"`

	// leavingTaints are taint keys with which your cloud or autoscaler marks a node that it removes, in addition to the well-known ones. What happens to
	// such a node does not count for or against its configuration.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!self.exists(key, key in ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', 'node.kubernetes.io/unschedulable'])",message="Kubernetes sets this taint on nodes that stay"
	LeavingTaints []string `json:"leavingTaints,omitempty"`

	// revisionHistoryLimit is how many revisions are kept that no node and no status refers to.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// rollout says how a revision reaches the members.
	//
	// +optional
	// +kubebuilder:default={}
	Rollout Rollout `json:"rollout,omitzero"`
}

// Base is what the layers are merged over.
//
// +kubebuilder:validation:Enum=Local;None
type Base string

// The bases.
const (
	BaseLocal Base = "Local"
	BaseNone  Base = "None"
)

// Adoption is which members a pool adopts automatically.
//
// +kubebuilder:validation:Enum=Unassigned;Never
type Adoption string

// The adoptions.
const (
	AdoptUnassigned Adoption = "Unassigned"
	AdoptNever      Adoption = "Never"
)

// Layer is a few fields of a KubeletConfiguration, from a ConfigMap or inline.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.inline)",message="exactly one of configMap and inline"
type Layer struct {
	// name identifies the layer for users and tools. It is not part of the content: another name makes no new revision.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// configMap has the layer in one of its keys, as YAML or JSON.
	//
	// +optional
	ConfigMap *ConfigMapKey `json:"configMap,omitempty"`

	// inline is the layer itself.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Inline *runtime.RawExtension `json:"inline,omitempty"`

	// unset are paths of fields that the layer removes, such as evictionHard.memory.available. Use it instead of a null in inline, which client-side
	// kubectl apply drops silently.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Unset []string `json:"unset,omitempty"`

	// nodeSelector selects the members that get the layer. Without it all members do.
	//
	// +optional
	// +structType=atomic
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// ConfigMapKey names a key of a ConfigMap in namespace kubelet-config.
type ConfigMapKey struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// +optional
	// +kubebuilder:default=kubelet
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}
