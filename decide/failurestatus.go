package decide

import (
	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// noExitCode is the code of a kubelet that a signal ended, or of whose end nothing is known.
const noExitCode = -1

// failureLimit bounds what the status document says of a failure, in bytes.
const failureLimit = 600

// FailureStatus is why the newest configuration does not run: the kubelet refuses it, or it failed in its trial or later. It is nil where
// nothing of that is known, also while the newest one has tries left.
func (s *State) FailureStatus() *nodev1.Failure {
	v := s.Assigned
	if s.Pending != nil {
		v = &s.Pending.Version
	}
	if v == nil || v.Content == "" {
		return nil
	}
	if p := s.proof(v.Content, s.kubeletOf(v)); p != nil && p.refused() {
		return &nodev1.Failure{Kind: nodev1.FailureRefused, Message: bounded.Text(p.Words, failureLimit)}
	}
	if r := s.rejection(v); r != nil {
		return failureOf(r.Cause, r.Words, r.Times, r.ExitCode)
	}
	if x := s.suspect(v); x != nil {
		return failureOf(x.Cause, x.Words, x.Times, x.ExitCode)
	}
	return nil
}

func failureOf(cause Cause, words string, times Count, exitCode int) *nodev1.Failure {
	failure := &nodev1.Failure{Kind: cause.kind(), Message: bounded.Text(words, failureLimit)}
	if cause == Exited {
		failure.Times = int(times)
		if exitCode > noExitCode {
			failure.ExitCode = &exitCode
		}
	}
	return failure
}

// kind is the contract's name of a cause.
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
