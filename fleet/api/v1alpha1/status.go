package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// KubeletPoolStatus says how far a revision has come. It has no list with an entry per node, so that it stays small in any cluster.
type KubeletPoolStatus struct {
	// observedGeneration is the generation of the pool that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is the revision that the pool is at, or on its way to.
	//
	// +optional
	Target *Target `json:"target,omitempty"`

	// stable is what was completed last, which new nodes get. Absent: nothing has been completed yet.
	//
	// +optional
	Stable *RevisionName `json:"stable,omitempty"`

	// wave is the open one; absent when there is nothing to roll out.
	//
	// +optional
	Wave *WaveStatus `json:"wave,omitempty"`

	// nodes counts the members by class. A count is 0, and not absent: the schema sees to that, because a patch says only what changes.
	//
	// +optional
	// +kubebuilder:default={}
	Nodes NodeCounts `json:"nodes"`

	// cohorts are the kinds of nodes: minor version of the kubelet, architecture, and layers. Each has to prove a revision for itself.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Cohorts []CohortStatus `json:"cohorts,omitempty"`

	// retries are the newest words of spec.rollout.retry that were heard.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Retries []string `json:"retries,omitempty"`

	// stops are the revisions that were stopped, one entry per hash. Such a revision is not assigned again before spec.rollout.retry asks for it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Stops []Stop `json:"stops,omitempty"`

	// failures are the newest ones, in the kubelet's own words.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`

	// completions are the revisions that were completed, the newest first: an undo goes to the first that is not the target. Numbers are no order
	// of time, because content that comes back keeps its number.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Completions []Completion `json:"completions,omitempty"`

	// revisions are the newest ones, and what became of them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Revisions []RevisionStatus `json:"revisions,omitempty"`

	// conditions are Ready, Progressing and Stalled, as kstatus has them.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionName names a revision by its number and by the hash of its content, or the nodes' own configuration.
type RevisionName struct {
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// +optional
	Hash string `json:"hash,omitempty"`
	// local: it is the nodes' own configuration, and no revision.
	//
	// +optional
	Local bool `json:"local,omitempty"`
}

// Text is what people call it.
func (n RevisionName) Text() string {
	if n.Local {
		return "the nodes' own configuration"
	}
	return "revision " + strconv.FormatInt(n.Revision, 10)
}

// Target is a revision in one of its attempts.
type Target struct {
	RevisionName `json:",inline"`
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
}

// WaveStatus is the open wave. Its times are elapsed ones, so that no two clocks are compared.
type WaveStatus struct {
	Number int32 `json:"number"`
	// goal is how many nodes the revision may have reached in this wave.
	Goal int32 `json:"goal"`
	// soaked is for how long all of the wave's nodes have proven the revision.
	//
	// +optional
	Soaked metav1.Duration `json:"soaked,omitzero"`
	// opened is when the wave was opened. Nodes that were made later wait for the next one.
	//
	// +optional
	Opened metav1.Time `json:"opened,omitzero"`
	// elapsed is for how long the wave is open.
	//
	// +optional
	Elapsed metav1.Duration `json:"elapsed,omitzero"`
}

// NodeCounts has how many members there are of each class.
type NodeCounts struct {
	// selected is all of them.
	//
	// +optional
	// +kubebuilder:default=0
	Selected int32 `json:"selected"`
	// +optional
	// +kubebuilder:default=0
	Updatable int32 `json:"updatable"`
	// +optional
	// +kubebuilder:default=0
	Old int32 `json:"old"`
	// +optional
	// +kubebuilder:default=0
	Late int32 `json:"late"`
	// +optional
	// +kubebuilder:default=0
	Applying int32 `json:"applying"`
	// +optional
	// +kubebuilder:default=0
	Waiting int32 `json:"waiting"`
	// +optional
	// +kubebuilder:default=0
	OnTrial int32 `json:"onTrial"`
	// +optional
	// +kubebuilder:default=0
	Proven int32 `json:"proven"`
	// +optional
	// +kubebuilder:default=0
	Failed int32 `json:"failed"`
	// +optional
	// +kubebuilder:default=0
	Blocked int32 `json:"blocked"`
	// +optional
	// +kubebuilder:default=0
	Unavailable int32 `json:"unavailable"`
	// +optional
	// +kubebuilder:default=0
	Away int32 `json:"away"`
	// +optional
	// +kubebuilder:default=0
	Joining int32 `json:"joining"`
	// +optional
	// +kubebuilder:default=0
	Held int32 `json:"held"`
	// +optional
	// +kubebuilder:default=0
	Skipped int32 `json:"skipped"`
	// +optional
	// +kubebuilder:default=0
	Manual int32 `json:"manual"`
	// +optional
	// +kubebuilder:default=0
	Conflict int32 `json:"conflict"`
	// +optional
	// +kubebuilder:default=0
	Unsupervised int32 `json:"unsupervised"`
	// +optional
	// +kubebuilder:default=0
	Leaving int32 `json:"leaving"`
}

// CohortStatus is a kind of nodes.
type CohortStatus struct {
	Name string `json:"name"`
	// +optional
	Nodes int32 `json:"nodes"`
	// +optional
	Proven int32 `json:"proven"`
}

// Stop says why a revision was stopped.
type Stop struct {
	Hash string `json:"hash"`
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// attempt is up to which one it is stopped.
	//
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// +optional
	Node string `json:"node,omitempty"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// Failure is a node that failed at a revision.
type Failure struct {
	Node string `json:"node"`
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// +optional
	Hash string `json:"hash,omitempty"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// RevisionStatus says what became of a revision.
type RevisionStatus struct {
	RevisionName `json:",inline"`
	// proven is how many members have proven it, when it was last the target.
	//
	// +optional
	Proven int32 `json:"proven"`
	// +optional
	Result Result `json:"result,omitempty"`
	// provenIn are the cohorts in which it was completed: elsewhere it needs a canary again.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ProvenIn []CohortProof `json:"provenIn,omitempty"`
	// failedIn are the cohorts in which it failed after it had been completed elsewhere: nobody there is moved to it before spec.rollout.retry asks
	// again.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	FailedIn []CohortFailure `json:"failedIn,omitempty"`
}

// CohortFailure is a cohort in which a revision has failed.
type CohortFailure struct {
	// cohort is as in provenIn.
	Cohort string `json:"cohort"`
	// attempt is the one in which it failed.
	Attempt int64 `json:"attempt"`
	// node is the one that showed it.
	Node string `json:"node"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// CohortProof is a cohort in which a revision was completed.
type CohortProof struct {
	// cohort is the minor version of the kubelet, the architecture, and the name of what these nodes get of the revision, such as
	// v1.36/amd64/5f6c8d9b7a.
	Cohort string `json:"cohort"`
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// Completion is a revision that was completed, and when it last was.
type Completion struct {
	RevisionName `json:",inline"`
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// Result is what became of a revision.
//
// +kubebuilder:validation:Enum=Rolling;Completed;Stopped;Superseded
type Result string

// The results. A revision that was completed once stays so: going back to it needs no waves in the cohorts that have proven it.
const (
	ResultRolling    Result = "Rolling"
	ResultCompleted  Result = "Completed"
	ResultStopped    Result = "Stopped"
	ResultSuperseded Result = "Superseded"
)

// The conditions' types.
const (
	ConditionReady       = "Ready"
	ConditionProgressing = "Progressing"
	ConditionStalled     = "Stalled"
)
