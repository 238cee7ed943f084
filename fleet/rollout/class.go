package rollout

import (
	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Class is the state of a member, compared with the target of its pool.
type Class string

// The classes. The first that matches wins.
const (
	Failed       Class = "Failed"
	Leaving      Class = "Leaving"
	Unsupervised Class = "Unsupervised"
	Manual       Class = "Manual"
	Held         Class = "Held"
	Skipped      Class = "Skipped"
	Joining      Class = "Joining"
	Applying     Class = "Applying"
	Waiting      Class = "Waiting"
	OnTrial      Class = "OnTrial"
	Proven       Class = "Proven"
	Blocked      Class = "Blocked"
	Late         Class = "Late"
	Old          Class = "Old"
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{Failed, Leaving, Unsupervised, Manual, Held, Skipped, Joining, Applying, Waiting, OnTrial, Proven, Blocked, Late, Old}
}

// The reasons of a pool's conditions.
const (
	ReasonCompleted        = "Completed"
	ReasonRolling          = "Rolling"
	ReasonStopped          = "Stopped"
	ReasonInvalidSpec      = "InvalidSpec"
	ReasonLayerMissing     = "LayerMissing"
	ReasonConflict         = "Conflict"
	ReasonWave             = "Wave"
	ReasonSoaking          = "Soaking"
	ReasonJoining          = "Joining"
	ReasonPaused           = "Paused"
	ReasonHeld             = "Held"
	ReasonBudgetExhausted  = "BudgetExhausted"
	ReasonWaitsForPods     = "WaitsForPods"
	ReasonWindowClosed     = "WindowClosed"
	ReasonWaitsForZone     = "WaitsForZone"
	ReasonDeadlineExceeded = "DeadlineExceeded"
	ReasonRevisionTampered = "RevisionTampered"
	ReasonNoUpdatableNode  = "NoUpdatableNode"
	ReasonNotStalled       = "Moving" // of Stalled=False
	reasonLost             = "Lost"
	reasonVanished         = "Vanished"
	reasonNotReady         = "NotReady"
	EventRolloutBegun      = "RolloutBegun"
	EventWaveBegun         = "WaveBegun"
	EventWavePassed        = "WavePassed"
	EventRolloutHeld       = "RolloutHeld"
	EventRolloutStopped    = "RolloutStopped"
	EventRolloutCompleted  = "RolloutCompleted"
	EventNodeConflict      = "NodeConflict"
	EventPoolAssigned      = "PoolAssigned"
	EventPoolDrains        = "PoolDrains"
	EventPoolDrainEnded    = "PoolDrainEnded"
	EventPoolRefused       = "PoolRefused" // reported by package controller
)

// phase returns how far a node is with the assignment in its mark, independently of the pool's target. It is empty
// if the node has no assignment of a pool.
func (s *Seen) phase(n *Node, r *rules) Class {
	if n.Mark.Pool == "" || n.Mark.Assignment == Unassigned {
		return ""
	}
	observed := n.Observed == n.Mark.Assignment
	if observed && verdict(n.Reason) && n.RetryHeard == n.Retry && n.Retry.Pool != "" {
		return Failed
	}
	if !n.Mark.Records(n.Source) {
		return ""
	}
	switch {
	case !observed:
	case n.Reason == nodev1.ReasonWouldDisrupt:
		return Waiting
	case blocked(n.Reason):
		return Blocked
	case !s.Runs || s.Running < r.settle:
	case n.Reason == nodev1.ReasonInTrial:
		return OnTrial
	default:
		return Proven
	}
	if s.Unanswered >= r.deadline {
		return Blocked
	}
	return Applying
}

// runs reports whether, by the node's status, the kubelet runs what is assigned, no matter who assigned it.
func runs(n *Node) bool {
	at := n.Source
	switch {
	case at == "":
		return n.Observed == "" && n.Reason == nodev1.ReasonLocal
	case n.Observed != at || n.Active != at:
		return false
	case at == nodev1.Local:
		return n.Reason == nodev1.ReasonLocal
	case n.Reason == nodev1.ReasonInTrial:
		return true
	}
	return n.Reason == nodev1.ReasonActive && n.Good == at
}

func verdict(reason string) bool {
	switch reason {
	case nodev1.ReasonRefused, nodev1.ReasonRolledBack, nodev1.ReasonRejected, nodev1.ReasonLastKnownGoodFailed:
		return true
	}
	return false
}

// final reports whether a verdict stops a revision. RolledBack is not final, because the supervisor still checks
// the old configuration.
func final(reason string) bool { return verdict(reason) && reason != nodev1.ReasonRolledBack }

func blocked(reason string) bool {
	switch reason {
	case nodev1.ReasonSyncFailed, nodev1.ReasonInvalidAssignment, nodev1.ReasonFallbackBroken, nodev1.ReasonNotInUse, nodev1.ReasonEnvironmentFailing, nodev1.ReasonInternalError, nodev1.ReasonStopped:
		return true
	}
	return false
}

// IsVerdict reports whether a node's reason is a verdict on its assignment.
func IsVerdict(reason string) bool { return verdict(reason) }
