package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Window is a recurring period of time.
type Window struct {
	// schedule is when it opens, as five fields of cron or as a macro such as @daily. A time that a change to summer time skips does not
	// occur.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone is in timeZone"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|(?i:([*?]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?(,([*?]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?)* +([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|(?-i:[sS])ep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|(?-i:[sS])ep|oct|nov|dec))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|(?-i:[sS])ep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|(?-i:[sS])ep|oct|nov|dec))?)(/[1-9][0-9]?)?)* +([*?]|(0?[0-6]|(?-i:[sS])(un|at)|mon|tue|wed|thu|fri)(-(0?[0-6]|(?-i:[sS])(un|at)|mon|tue|wed|thu|fri))?)(/[1-9][0-9]?)?(,([*?]|(0?[0-6]|(?-i:[sS])(un|at)|mon|tue|wed|thu|fri)(-(0?[0-6]|(?-i:[sS])(un|at)|mon|tue|wed|thu|fri))?)(/[1-9][0-9]?)?)*))$')",message="five fields of cron, such as 0 22 * * 1-5, or @daily and its like"
	Schedule string `json:"schedule"`

	// duration is how long it is open, whatever changes to the clocks happen during that time.
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="a duration of at least 1m, such as 6h"
	Duration metav1.Duration `json:"duration"`

	// timeZone is its name in the IANA database.
	//
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'local'",message="Local is another zone on each machine"
	TimeZone string `json:"timeZone,omitempty"`
}

// Topology limits in how many domains at a time nodes may be changing, on trial or rolled back.
type Topology struct {
	// key is the label of a Node whose value is its domain. Nodes without it are one domain.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxDomains int32 `json:"maxDomains,omitempty"`
}

// KubeletRolloutBudget limits what all pools together may do to the nodes that its selector matches. Each budget that matches a node has
// to allow a change of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kbudget
// +kubebuilder:printcolumn:name="Frozen",type=boolean,JSONPath=`.spec.frozen`
// +kubebuilder:printcolumn:name="Max-Unavailable",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Max-Unproven",type=string,JSONPath=`.spec.maxUnproven`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=`.status.unavailable`
// +kubebuilder:printcolumn:name="Unproven",type=integer,JSONPath=`.status.unproven`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Zones",type=string,priority=1,JSONPath=`.spec.topology.key`
// +kubebuilder:printcolumn:name="Windows",type=string,priority=1,JSONPath=`.spec.windows[*].schedule`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type KubeletRolloutBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec KubeletRolloutBudgetSpec `json:"spec"`
	// +optional
	Status KubeletRolloutBudgetStatus `json:"status,omitzero"`
}

// KubeletRolloutBudgetList is a list of KubeletRolloutBudgets.
//
// +kubebuilder:object:root=true
type KubeletRolloutBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeletRolloutBudget `json:"items"`
}

// KubeletRolloutBudgetSpec is which nodes the budget limits, and to what.
type KubeletRolloutBudgetSpec struct {
	// selector selects nodes by their labels. An empty selector selects all nodes.
	//
	// +required
	// +structType=atomic
	Selector metav1.LabelSelector `json:"selector"`

	// frozen stops pools from changing these nodes, neither forward nor back. New nodes still get the stable revision.
	//
	// +optional
	Frozen bool `json:"frozen,omitempty"`

	// maxUnavailable is how many of these nodes may be unavailable at once, for any reason, before another one is changed: a number, or a percentage,
	// rounded down, at least 1. 0 stops all changes.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 0",message="a number that is not negative, or a percentage"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxUnproven is how many of these nodes may have a revision that they have not proven and that is not completed: a number, or a percentage,
	// rounded down, at least 1 unless it is 0.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 0",message="a number that is not negative, or a percentage"
	MaxUnproven *intstr.IntOrString `json:"maxUnproven,omitempty"`

	// topology limits revisions that are not proven to a few domains at a time, over all pools.
	//
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// windows are the times at which pools may assign a revision to these nodes. Without windows that is always. A rollback to what is proven does not
	// wait.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Windows []Window `json:"windows,omitempty"`
}

// KubeletRolloutBudgetStatus is whether the budget is valid, and how much of it is used.
type KubeletRolloutBudgetStatus struct {
	// observedGeneration is the generation of the budget that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is how many nodes the selector matches, except new ones.
	//
	// +optional
	// +kubebuilder:default=0
	Nodes int32 `json:"nodes"`

	// unavailable is how many of these are unavailable.
	//
	// +optional
	// +kubebuilder:default=0
	Unavailable int32 `json:"unavailable"`

	// unproven is how many of them have a revision that is not completed, and that they have not proven.
	//
	// +optional
	// +kubebuilder:default=0
	Unproven int32 `json:"unproven"`

	// conditions has Ready, which the controller writes. Other programs may own conditions whose types have a domain, such as example.com/Approved.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
