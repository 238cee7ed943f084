package decide

// Reasons of the condition, a part of the contract: docs/reference/contract.md has what each means and what to do.
const (
	ReasonLocal               = "Local"
	ReasonInTrial             = "InTrial"
	ReasonActive              = "Active"
	ReasonApplying            = "Applying"
	ReasonEnvironmentFailing  = "EnvironmentFailing"
	ReasonStopped             = "Stopped"
	ReasonInvalidAssignment   = "InvalidAssignment"
	ReasonSyncFailed          = "SyncFailed"
	ReasonRefused             = "Refused"
	ReasonWouldDisrupt        = "WouldDisrupt"
	ReasonRolledBack          = "RolledBack"
	ReasonRejected            = "Rejected"
	ReasonLastKnownGoodFailed = "LastKnownGoodFailed"
	ReasonFallbackBroken      = "FallbackBroken"
	ReasonAssignmentLost      = "AssignmentLost"
	ReasonInternalError       = "InternalError"
)
