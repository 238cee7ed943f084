package v1

import corev1 "k8s.io/api/core/v1"

// Reason is the reason of the condition [ConditionType]; docs/reference/contract.md has the meaning of each, and what to do.
type Reason = string

// The reasons.
const (
	ReasonLocal               Reason = "Local"
	ReasonInTrial             Reason = "InTrial"
	ReasonActive              Reason = "Active"
	ReasonApplying            Reason = "Applying"
	ReasonEnvironmentFailing  Reason = "EnvironmentFailing"
	ReasonStopped             Reason = "Stopped"
	ReasonInvalidAssignment   Reason = "InvalidAssignment"
	ReasonSyncFailed          Reason = "SyncFailed"
	ReasonRefused             Reason = "Refused"
	ReasonWouldDisrupt        Reason = "WouldDisrupt"
	ReasonNotInUse            Reason = "NotInUse"
	ReasonRolledBack          Reason = "RolledBack"
	ReasonRejected            Reason = "Rejected"
	ReasonLastKnownGoodFailed Reason = "LastKnownGoodFailed"
	ReasonFallbackBroken      Reason = "FallbackBroken"
	ReasonAssignmentLost      Reason = "AssignmentLost"
	ReasonInternalError       Reason = "InternalError"
)

// ConditionStatus is the status of the condition [ConditionType] with a reason. It is Unknown for a reason of another version.
func ConditionStatus(r Reason) corev1.ConditionStatus {
	switch r {
	case ReasonLocal, ReasonInTrial, ReasonActive:
		return corev1.ConditionTrue
	case ReasonInvalidAssignment, ReasonSyncFailed, ReasonRefused, ReasonWouldDisrupt, ReasonNotInUse, ReasonRolledBack, ReasonRejected, ReasonLastKnownGoodFailed,
		ReasonFallbackBroken, ReasonAssignmentLost, ReasonInternalError:
		return corev1.ConditionFalse
	}
	return corev1.ConditionUnknown
}
