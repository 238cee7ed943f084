package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout says how a revision reaches the members.
type Rollout struct {
	// paused stops the rollout: no node gets another revision. New nodes still get the stable one, and existing assignments stay.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// retry is any text. A new value lets the revision that is the target at that moment be tried again after it was stopped. A value that the pool has
	// seen before has no effect, and neither has an empty one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Retry string `json:"retry,omitempty"`

	// pin holds the pool at a revision, or at the nodes' own configuration, whatever the layers are. Without it the pool follows the layers.
	//
	// +optional
	// +structType=atomic
	Pin *Pin `json:"pin,omitempty"`

	// waves are how many nodes in total a revision may reach before the nodes that it has reached have proven it.
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

	// maxUnavailable is how many members may be unavailable at once, for any reason, before another one is changed: a number, or a
	// percentage of the members, rounded down, at least 1. 0 stops all changes. For control-plane members it is at most 1.
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

	// progressDeadline is how long a wave may make no progress. After it, the delay is reported, and a node that has not reported a result counts as
	// blocked.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="a duration, such as 1h"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// windows are the times at which nodes are assigned a revision. Without windows that is always. Verdicts, stops, rollbacks to what is proven and new
	// nodes do not wait for a window.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Windows []Window `json:"windows,omitempty"`

	// topology limits a revision that is not proven to a few domains, such as zones, at a time.
	//
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// disruption is what happens to a node that holds its change because pods would be killed. Hold: the node waits until its pods have ended or a user
	// approves. Drain: the node is cordoned and its pods are evicted, within maxUnavailable and windows, once for each revision. Allow: the pool
	// approves.
	//
	// +optional
	// +kubebuilder:default=Hold
	// +kubebuilder:validation:Enum=Hold;Drain;Allow
	Disruption Disruption `json:"disruption,omitempty"`

	// drainTimeout is how long pods may block a drain. After it, the node is uncordoned, and waits.
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

// Name is the pinned revision, without its hash.
func (p *Pin) Name() RevisionName { return RevisionName{Revision: p.Revision, Local: p.Local} }

// Disruption is what happens to a node whose pods would be killed by its change.
type Disruption string

// The kinds of disruption.
const (
	DisruptionHold  Disruption = "Hold"
	DisruptionDrain Disruption = "Drain"
	DisruptionAllow Disruption = "Allow"
)

// Wave is a part of the members, including those of the waves before it.
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

	// soak is how long the wave is observed after all of its nodes have proven the revision.
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

	// tolerate is a number, or a percentage, rounded down, of the nodes on the revision that were Ready when they got it. As soon as more are NotReady,
	// new assignments wait.
	//
	// +optional
	// +kubebuilder:default="1%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 0",message="a number that is not negative, or a percentage"
	Tolerate *intstr.IntOrString `json:"tolerate,omitempty"`
}
