package core

import (
	"cmp"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// noExitCode is the code of a kubelet that a signal ended, or of whose end nothing is known.
const noExitCode = -1

// failureLimit bounds what the status document says of a failure, in bytes.
const failureLimit = 600

// failure returns why the newest assignment does not run; nil where nothing is known to be wrong with it.
func failure(s *State, f finding) *nodev1.Failure {
	switch f.reason {
	case nodev1.ReasonInvalidAssignment:
		return failed(nodev1.FailureInvalid, f.why)
	case nodev1.ReasonSyncFailed:
		return failed(nodev1.FailureUnavailable, f.why)
	case nodev1.ReasonNotInUse:
		return failed(nodev1.FailureNotInUse, f.why)
	case nodev1.ReasonInternalError:
		return failed(nodev1.FailureInternal, f.why)
	case nodev1.ReasonFallbackBroken:
		return failed(nodev1.FailureEnvironment, f.why)
	case nodev1.ReasonEnvironmentFailing:
		kind := nodev1.FailureEnvironment
		if s.Child.PortHeld != "" {
			kind = nodev1.FailurePortHeld
		}
		return failed(kind, f.why)
	case nodev1.ReasonLastKnownGoodFailed:
		return cmp.Or(failureOn(s, s.Assigned), failureOn(s, s.LastKnownGood))
	case nodev1.ReasonApplying:
		return cmp.Or(failureOn(s, s.Assigned), s.lastExit())
	case nodev1.ReasonRefused, nodev1.ReasonRolledBack, nodev1.ReasonRejected:
		return newestVerdict(s).failure()
	}
	return nil
}

// failureOn returns what speaks against a version; nil where nothing does.
func failureOn(s *State, v *Version) *nodev1.Failure {
	if v == nil {
		return nil
	}
	return verdict(s, v).failure()
}

func failed(kind nodev1.FailureKind, words string) *nodev1.Failure {
	return &nodev1.Failure{Kind: kind, Message: bounded.Text(words, failureLimit)}
}

func failureOf(cause Cause, words string, times Count, exitCode int) *nodev1.Failure {
	failure := failed(cause.kind(), words)
	if cause == Exited {
		failure.Times = int(times)
		if exitCode > noExitCode {
			failure.ExitCode = &exitCode
		}
	}
	return failure
}

// kind returns the contract's name of a cause.
func (c Cause) kind() nodev1.FailureKind {
	switch c {
	case StartTimeout:
		return nodev1.FailureNotHealthy
	case PortHeld:
		return nodev1.FailurePortHeld
	case LeaseLost:
		return nodev1.FailureLeaseLost
	}
	return nodev1.FailureExited
}
