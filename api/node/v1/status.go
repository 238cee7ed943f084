package v1

import (
	"fmt"
	"strings"
	"time"
)

// Status is the document of [StatusAnnotation]: all that programs need to know about a node's configuration. The condition [ConditionType] says the
// same to users, and no program reads it. A reader ignores fields that it does not know.
type Status struct {
	// Observed is the assignment that this document is about, verbatim, as in [ConfigObservedAnnotation].
	Observed string    `json:"observed,omitempty"`
	Reason   Reason    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"` // when Reason last changed, by the node's wall clock
	Features []string  `json:"features,omitempty"`
	Retry    string    `json:"retry,omitempty"`    // the newest retry that the supervisor has seen, verbatim, or its digest if it is very long
	Approval string    `json:"approval,omitempty"` // the newest approval that was used
	Content  Content   `json:"content,omitzero"`

	Hold    *Hold    `json:"hold,omitempty"`    // nil: nothing is held
	Trial   *Trial   `json:"trial,omitempty"`   // nil: nothing is on trial
	Failure *Failure `json:"failure,omitempty"` // nil: no problem with the newest assignment is known

	Shadowed      []ShadowedField `json:"shadowed,omitempty"`
	UnknownFields []string        `json:"unknownFields,omitempty"`
	Warnings      []string        `json:"warnings,omitempty"`
	Change        *Change         `json:"change,omitempty"` // nil: there was no change yet
}

// Content has the first 12 hexadecimal digits of the digest of each configuration; empty is the node's own configuration.
type Content struct {
	Assigned      string `json:"assigned,omitempty"`
	Active        string `json:"active,omitempty"`
	LastKnownGood string `json:"lastKnownGood,omitempty"`
	// KubeletVersion is the version of the kubelet that proved LastKnownGood, such as v1.36.3.
	KubeletVersion string `json:"kubeletVersion,omitempty"`
}

// Hold is a change that waits because it would end running pods, because it is not known whether it would, or because
// no kubelet would start with it on the host as it is now.
type Hold struct {
	// Approval is the value of [AllowDisruptionAnnotation] that approves this change.
	Approval string `json:"approval"`
	// Losses are the pods that would be lost; More counts those that do not fit in here.
	Losses []Loss `json:"losses,omitempty"`
	More   int    `json:"more,omitempty"`
	// Known means that all losses are known, and that nothing on the host prevents the change. If it is false, WaitsFor says what is not known, or what
	// prevents it.
	Known    bool      `json:"known"`
	WaitsFor string    `json:"waitsFor,omitempty"`
	AsOf     time.Time `json:"asOf,omitzero"` // when Losses were found; it changes only with the hold
}

// Text is what the change waits for, for users, with at most named pods.
func (h Hold) Text(named int) string {
	var parts []string
	for _, loss := range h.Losses[:min(len(h.Losses), named)] {
		parts = append(parts, loss.Pod+" ("+loss.Reason+")")
	}
	if more := len(h.Losses) - len(parts) + h.More; more > 0 && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if !h.Known && h.WaitsFor != "" {
		parts = append(parts, h.WaitsFor)
	}
	return strings.Join(parts, ", ")
}

// Loss is a running pod that a change would end, or whose containers it would start again; or a cgroup whose processes
// the change would end, because its limit would be below what they take.
type Loss struct {
	Pod    string `json:"pod"` // NAMESPACE/NAME; or "cgroup PATH"
	UID    string `json:"uid,omitempty"`
	Reason string `json:"reason"` // the kubelet's own term if it has one
}

// Trial is the progress of the trial of the active configuration.
type Trial struct {
	Healthy string `json:"healthy"` // a duration such as 1m30s
	Of      string `json:"of"`      // how long it has to be healthy, a duration too
	Tries   int    `json:"tries"`
}

// Failure is why the newest assignment does not run.
type Failure struct {
	Kind     FailureKind `json:"kind"`
	ExitCode *int        `json:"exitCode,omitempty"` // nil: it did not exit, or the code is unknown
	Times    int         `json:"times,omitempty"`
	Message  string      `json:"message,omitempty"`
}

// FailureKind is what an assignment failed at.
type FailureKind string

// The kinds of failure.
const (
	FailureRefused    FailureKind = "Refused"
	FailureExited     FailureKind = "Exited"
	FailureNotHealthy FailureKind = "NotHealthy"
	FailureLeaseLost  FailureKind = "LeaseLost"
	FailurePortHeld   FailureKind = "PortHeld"
	FailureNotInUse   FailureKind = "NotInUse" // the kubelet that runs was not started with it
	// The following are not failures of a configuration.
	FailureInvalid     FailureKind = "Invalid"     // the assignment is malformed, or not allowed on this node
	FailureUnavailable FailureKind = "Unavailable" // its ConfigMap cannot be downloaded
	FailureEnvironment FailureKind = "Environment" // the fault is the node's
	FailureInternal    FailureKind = "Internal"    // the fault is the supervisor's, or that of its disk
)

// ShadowedField is a field of the assigned configuration that the kubelet does not run with. Values of secret fields are left out.
type ShadowedField struct {
	Field     string `json:"field"`
	Value     string `json:"value,omitempty"`     // assigned
	By        string `json:"by,omitempty"`        // the flag or the drop-in file
	Effective string `json:"effective,omitempty"` // what the kubelet runs with
	// Inferred means that the supervisor has derived it from flags and files, because this kubelet does not report its configuration.
	Inferred bool `json:"inferred,omitempty"`
}

// String is the field for users: maxPods (60) by --max-pods (20).
func (f ShadowedField) String() string {
	return f.Field + inParentheses(f.Value) + " by " + f.By + inParentheses(f.Effective)
}

func inParentheses(value string) string {
	if value == "" {
		return ""
	}
	return " (" + value + ")"
}

// Change is the newest change of the configuration that the kubelet is to run.
type Change struct {
	From            string        `json:"from"` // NAMESPACE/NAME/KEY or local
	To              string        `json:"to"`
	ResourceVersion string        `json:"resourceVersion,omitempty"` // of To
	Began           time.Time     `json:"began"`
	Due             time.Time     `json:"due,omitzero"`      // when an edit is applied, if it waits for its turn
	Ended           time.Time     `json:"ended,omitzero"`    // zero: it is in progress, or waits
	Outcome         string        `json:"outcome,omitempty"` // a Reason, Superseded or Interrupted
	Resumed         bool          `json:"resumed,omitempty"` // another supervisor began it
	Phases          []ChangePhase `json:"phases,omitempty"`  // in their usual order
	Phase           string        `json:"phase,omitempty"`   // the current one
}

// ChangePhase is how long one phase of a change took, such as 1.5s.
type ChangePhase struct {
	Name string `json:"name"`
	Took string `json:"took"`
}
