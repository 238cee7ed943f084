package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// KubeletPoolStatus is the progress of a rollout. It has no list with an entry per node, so that it stays small in any cluster.
type KubeletPoolStatus struct {
	// observedGeneration is the generation of the pool that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is the revision that the pool is at, or on its way to.
	//
	// +optional
	Target *Target `json:"target,omitempty"`

	// stable is the revision that was completed last. New nodes get it. It is absent until a revision is completed.
	//
	// +optional
	Stable *RevisionName `json:"stable,omitempty"`

	// wave is the open wave. It is absent when there is nothing to roll out.
	//
	// +optional
	Wave *WaveStatus `json:"wave,omitempty"`

	// nodes counts the members by class. A count of zero is written as 0, by a default of the schema, because a patch contains only changes.
	//
	// +optional
	// +kubebuilder:default={}
	Nodes NodeCounts `json:"nodes"`

	// cohorts are the kinds of nodes: minor version of the kubelet, architecture, and layers. Each has to prove a revision of its own.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Cohorts []CohortStatus `json:"cohorts,omitempty"`

	// retries are the newest values of spec.rollout.retry that the pool has seen.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Retries []string `json:"retries,omitempty"`

	// stops are the revisions that were stopped, one entry per hash. Such a revision is not assigned again until spec.rollout.retry gets a new
	// value.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Stops []Stop `json:"stops,omitempty"`

	// failures are the newest failures, with the kubelet's own messages.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`

	// completions are the revisions that were completed, the newest first: an undo goes to the first that is not the target. The numbers are
	// not in the order of time, because content that comes back keeps its number.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Completions []Completion `json:"completions,omitempty"`

	// revisions are the newest revisions with their results.
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
	// local is set for the nodes' own configuration, which is not a revision.
	//
	// +optional
	Local bool `json:"local,omitempty"`
}

// Text is the name for users.
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

// WaveStatus is the open wave. Its durations are measured by one clock, so that no two clocks are compared.
type WaveStatus struct {
	Number int32 `json:"number"`
	// goal is how many nodes the revision may have reached in this wave.
	Goal int32 `json:"goal"`
	// soaked is how much of the wave's soak time has passed, which begins when all of its nodes have proven the revision.
	//
	// +optional
	Soaked metav1.Duration `json:"soaked,omitzero"`
	// opened is when the wave was opened. Nodes that were created later wait for the next wave.
	//
	// +optional
	Opened metav1.Time `json:"opened,omitzero"`
	// elapsed is how long the wave has been open.
	//
	// +optional
	Elapsed metav1.Duration `json:"elapsed,omitzero"`
}

// NodeCounts has the number of members in each class.
type NodeCounts struct {
	// selected is the number of all members.
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

// CohortStatus is how far one kind of nodes is.
type CohortStatus struct {
	Name string `json:"name"`
	// +optional
	Nodes int32 `json:"nodes"`
	// +optional
	Proven int32 `json:"proven"`
}

// Stop is why a revision was stopped.
type Stop struct {
	Hash string `json:"hash"`
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// attempt is the last attempt that is stopped.
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

// Failure is a node on which a revision failed.
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

// RevisionStatus is the result of a revision.
type RevisionStatus struct {
	RevisionName `json:",inline"`
	// proven is how many members had proven it when it was last the target.
	//
	// +optional
	Proven int32 `json:"proven"`
	// +optional
	Result Result `json:"result,omitempty"`
	// provenIn are the cohorts in which it was completed. In others it needs a canary again.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ProvenIn []CohortProof `json:"provenIn,omitempty"`
	// failedIn are the cohorts in which it failed after it had been completed in others. Their nodes do not get it until
	// spec.rollout.retry gets a new value.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	FailedIn []CohortFailure `json:"failedIn,omitempty"`
}

// CohortFailure is a cohort in which a revision has failed.
type CohortFailure struct {
	// cohort is a name as in provenIn.
	Cohort string `json:"cohort"`
	// attempt is the attempt in which it failed.
	Attempt int64 `json:"attempt"`
	// node is the node on which it failed.
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
	// cohort is the minor version of the kubelet, the architecture, and the name of the variant of the revision that these nodes
	// get, such as v1.36/amd64/5f6c8d9b7a.
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

// Result is the result of a revision.
//
// +kubebuilder:validation:Enum=Rolling;Completed;Stopped;Superseded
type Result string

// The results. A revision stays completed: a rollback to it needs no waves in the cohorts that have proven it.
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
