package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout says how a revision reaches the members.
type Rollout struct {
	// paused: no revision moves. New nodes still get the stable one, and what is assigned is not taken back.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// retry is a free word. One that the pool has not heard yet lets the revision that is the target at that moment be tried again, although it
	// was stopped. A word that was heard, and none, change nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Retry string `json:"retry,omitempty"`

	// pin holds the pool at a revision, or at the nodes' own configuration, whatever the layers say. Absent: it follows the layers.
	//
	// +optional
	// +structType=atomic
	Pin *Pin `json:"pin,omitempty"`

	// waves say how many nodes, in all, a revision may reach before the nodes that it has reached have proven it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:default={{name: canary, nodes: 1}, {nodes: "10%"}, {nodes: "50%"}, {nodes: "100%"}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.map(w, type(w.nodes) == int ? 0 : int(string(w.nodes).replace('%',''))).isSorted()",message="numbers first, then percentages that ascend"
	// +kubebuilder:validation:XValidation:rule="self.map(w, type(w.nodes) == int ? int(w.nodes) : 2147483647).isSorted()",message="numbers ascend"
	// +kubebuilder:validation:XValidation:rule="string(self[size(self) - 1].nodes) == '100%'",message="the last wave is 100%"
	Waves []Wave `json:"waves,omitempty"`

	// maxUnavailable is how many members may be unavailable at once, for whatever reason, before another one is changed: a number, or a
	// percentage of the members, rounded down, at least 1. 0 freezes everything. Of control-plane members it is at most 1.
	//
	// +optional
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 0",message="a number that is not negative, or a percentage"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// settle is how long a node counts as unavailable after its kubelet runs again.
	//
	// +optional
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration, such as 15s"
	Settle *metav1.Duration `json:"settle,omitempty"`

	// unready says how many nodes may turn NotReady under a new revision, and for how long.
	//
	// +optional
	// +kubebuilder:default={}
	Unready Unready `json:"unready,omitzero"`

	// progressDeadline is for a wave: later it is reported, and a node without an answer is blocked.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="a duration, such as 1h"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// windows are the times at which nodes are assigned a revision; none is always. Verdicts, stops, going back to what is
	// proven and new nodes do not wait.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Windows []Window `json:"windows,omitempty"`

	// topology keeps a revision that is not proven to few domains, such as zones, at a time.
	//
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// disruption says what becomes of a node that holds its change because pods would be killed. Hold: it waits, until its pods have ended or
	// a person consents. Drain: it is cordoned and its pods are evicted, within maxUnavailable and windows, once for each revision. Allow: the
	// pool consents.
	//
	// +optional
	// +kubebuilder:default=Hold
	// +kubebuilder:validation:Enum=Hold;Drain;Allow
	Disruption Disruption `json:"disruption,omitempty"`

	// drainTimeout is how long pods may stand in the way of a drain. Then the node is uncordoned, and waits.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="a duration, such as 10m"
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
}

// Pin names a revision, or the nodes' own configuration.
//
// +kubebuilder:validation:XValidation:rule="has(self.revision) != has(self.local)",message="exactly one of revision and local"
type Pin struct {
	// revision is the number of a revision that is kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision,omitempty"`

	// local is the nodes' own configuration.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="local is true, or absent"
	Local bool `json:"local,omitempty"`
}

// Name is what it names; it knows no hash.
func (p *Pin) Name() RevisionName { return RevisionName{Revision: p.Revision, Local: p.Local} }

// Disruption says what becomes of a node whose pods would be killed by its change.
type Disruption string

// What may become of it.
const (
	DisruptionHold  Disruption = "Hold"
	DisruptionDrain Disruption = "Drain"
	DisruptionAllow Disruption = "Allow"
)

// Wave is a part of the members, those of the waves before it included.
type Wave struct {
	// name is for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// nodes is a number, or a percentage of the nodes that can be updated, rounded up.
	//
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 1",message="a number of at least 1, or a percentage"
	Nodes intstr.IntOrString `json:"nodes"`

	// soak is how long the wave is looked at after all of its nodes have proven the revision.
	//
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration, such as 10m"
	Soak *metav1.Duration `json:"soak,omitempty"`
}

// Unready says how many nodes may turn NotReady under a new revision, and for how long.
type Unready struct {
	// after is how long more nodes than tolerate may be NotReady before the revision is stopped.
	//
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration, such as 5m"
	After *metav1.Duration `json:"after,omitempty"`

	// tolerate is a number, or a percentage, rounded down, of the nodes on the revision that were Ready when they got it. More hold at once.
	//
	// +optional
	// +kubebuilder:default="1%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 0",message="a number that is not negative, or a percentage"
	Tolerate *intstr.IntOrString `json:"tolerate,omitempty"`
}
