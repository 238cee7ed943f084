package v1

// Reason is the reason of the condition [ConditionType]; docs/reference/contract.md says what each means and what to do.
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
	ReasonRolledBack          Reason = "RolledBack"
	ReasonRejected            Reason = "Rejected"
	ReasonLastKnownGoodFailed Reason = "LastKnownGoodFailed"
	ReasonFallbackBroken      Reason = "FallbackBroken"
	ReasonAssignmentLost      Reason = "AssignmentLost"
	ReasonInternalError       Reason = "InternalError"
)
