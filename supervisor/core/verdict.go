package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Verdict is what is known of a configuration: whether something speaks against it, what, and why. verdict alone
// computes it, and newestVerdict adds whether the change to it is held. What should run, the condition's reason,
// upstream's error, the outcome of a change and the failure in the status document all read it.
type Verdict struct {
	Kind    VerdictKind
	On      *Version // nil = there is no configuration to judge
	Words   string   // why, as far as the kubelet or the node told
	Load    bool     // of Refused: while loading or decoding, not while validating
	Excused bool     // of Suspected: the node is to blame
	Waits   bool     // a change to it, or back from what runs because of it, is held
	// Of Rejected and Suspected, as in [Suspect].
	Cause    Cause
	Times    Count
	ExitCode int
}

// VerdictKind is the kind of a verdict.
type VerdictKind int

// The verdicts. From Unreadable on they speak against the configuration, and the first that holds is the verdict.
const (
	VerdictUnknown VerdictKind = iota // a pre-flight or a trial will tell
	VerdictGood                       // it passed its trial with this kubelet
	VerdictHeld                       // nothing speaks against it, and the change to it waits

	VerdictUnreadable   // its checkpoint cannot be read, or its layers cannot be laid over the node's own file
	VerdictUnrenderable // its file cannot be made
	VerdictRefused      // by the kubelet's own pre-flight
	VerdictRejected     // it failed its trial, and its control did not
	VerdictSuspected    // it failed, and its control is not judged yet or failed as well
)

// verdict judges a version under the kubelet that it is about.
func verdict(s *State, v *Version) Verdict {
	return s.verdictOn(v, s.kubeletOf(v), s.Today.Fault)
}

// newestVerdict returns the verdict on the newest assignment, which waits where the change to it is held.
func newestVerdict(s *State) Verdict {
	v := s.Assigned
	_, newest, held := heldChange(s)
	if held {
		v = newest
	}
	var x Verdict
	if v != nil {
		x = verdict(s, v)
	}
	x.Waits = held
	if held && !x.isAgainst() {
		x.Kind = VerdictHeld
	}
	return x
}

// isAgainst reports whether the verdict speaks against the configuration.
func (x Verdict) isAgainst() bool { return x.Kind >= VerdictUnreadable }

// isOfNode reports whether the node's own file, which the layers of the configuration lie over, is why it cannot be read.
func (x Verdict) isOfNode() bool { return x.Kind == VerdictUnreadable && x.On.Base != "" }

// why returns what speaks against the configuration, for people.
func (x Verdict) why() string {
	name := Describe(x.On)
	switch {
	case x.isOfNode():
		return fmt.Sprintf("%s cannot be laid over the local configuration%s", name, tail(x.Words))
	case x.Kind == VerdictUnreadable:
		return fmt.Sprintf("%s: its checkpoint cannot be read", name)
	case x.Kind == VerdictUnrenderable:
		return fmt.Sprintf("%s: %s", name, x.Words)
	case x.Kind == VerdictRefused:
		return fmt.Sprintf("%s is refused: %s", name, x.Words)
	case x.isAgainst():
		return fmt.Sprintf("%s %s", name, x.Words)
	}
	return name + " cannot be used"
}

// finding returns the row of the table of reasons for a verdict; nil where nothing speaks against the configuration.
func (x Verdict) finding() *finding {
	reason, hint := "", "correct the configuration"
	switch x.Kind {
	case VerdictUnreadable, VerdictUnrenderable:
		reason, hint = nodev1.ReasonInternalError, "it is downloaded again automatically; see to the state folder and the run folder"
		if x.isOfNode() {
			reason, hint = nodev1.ReasonFallbackBroken, "correct the local configuration"
		}
	case VerdictRefused:
		reason = nodev1.ReasonRefused
	case VerdictRejected:
		reason = nodev1.ReasonRejected
		hint += ", or set annotation " + nodev1.RetryAnnotation
	case VerdictSuspected:
		reason = nodev1.ReasonRolledBack
	default:
		return nil
	}
	return &finding{corev1.ConditionFalse, reason, x.why(), hint}
}

// failure returns the verdict in the form of the status document; nil where nothing speaks against the configuration.
func (x Verdict) failure() *nodev1.Failure {
	switch x.Kind {
	case VerdictUnreadable, VerdictUnrenderable:
		return failed(nodev1.FailureInternal, x.why())
	case VerdictRefused:
		return failed(nodev1.FailureRefused, x.Words)
	case VerdictRejected, VerdictSuspected:
		return failureOf(x.Cause, x.Words, x.Times, x.ExitCode)
	}
	return nil
}

// statusError returns the verdict as upstream's error; empty where nothing has failed.
func (x Verdict) statusError() string {
	switch {
	case x.Waits && x.Kind != VerdictRefused:
		return ""
	case x.Kind == VerdictUnreadable, x.Kind == VerdictUnrenderable, x.Kind == VerdictRefused && x.Load:
		return LoadError
	case x.Kind == VerdictRefused:
		return ValidateError
	case x.isAgainst() && !x.Excused:
		return RunError
	}
	return ""
}
