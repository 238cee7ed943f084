package core

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// finding is one row of the table of reasons in docs/reference/contract.md, with the detail and the remedy.
type finding struct {
	status            corev1.ConditionStatus
	reason, why, hint string
}

// findingOf returns the first row that holds.
func findingOf(s *State) finding {
	for _, row := range []func(*State) *finding{
		findStopping, findOwnFailure, findSync, findEnvironment, findNotInUse, findUnhealthy, findHeld, findAsking, findFallback, findVerdict,
		findApplying,
		findBrokenLocal, findNextStart,
	} {
		if f := row(s); f != nil {
			return *f
		}
	}
	switch {
	case s.Assigned == nil && s.Standalone:
		return finding{corev1.ConditionTrue, nodev1.ReasonLocal, "nothing is assigned, and nothing can be: the kubelet has no --kubeconfig", ""}
	case s.Assigned == nil:
		return finding{corev1.ConditionTrue, nodev1.ReasonLocal, "nothing is assigned", ""}
	case verdict(s, s.Assigned).Kind == VerdictGood:
		return finding{corev1.ConditionTrue, nodev1.ReasonActive, "the assigned configuration passed its trial", ""}
	}
	return trialFinding(s)
}

func trialFinding(s *State) finding {
	f := finding{corev1.ConditionTrue, nodev1.ReasonInTrial,
		fmt.Sprintf("the assigned configuration is on trial for %s of health", s.TrialPeriod), ""}
	switch {
	case s.Lease.Problem != "":
		f.why += "; it does not become the last known good one before its Lease was seen to be renewed: " + s.Lease.Problem
		f.hint = "let the supervisor's identity get that Lease"
	case s.Node.Problem != "":
		f.why += "; it does not become the last known good one before its Node was read: " + s.Node.Problem
		f.hint = "let the supervisor's identity get that Node"
	case s.Trial.worseWarning(s.Node, s.Child) != "":
		f.hint = "free what the Node is short of, or assign another configuration"
	case s.Trial.unstartedWarning(s.Child) != "":
		f.hint = "see the events of these pods, or assign another configuration"
	case s.OnTrial() && time.Duration(s.Trial.Healthy) >= s.TrialPeriod && s.Child.Healthy:
		f.why += ", which it has had; it becomes the last known good one when the API server is in reach " + s.Trial.awaited(s.Node)
	}
	return f
}

func findStopping(s *State) *finding {
	if s.Frozen {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonStopped, "the host shuts down", ""}
	}
	if s.Stopping {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonStopped, "the supervisor was asked to stop", "start it again"}
	}
	return nil
}

func findOwnFailure(s *State) *finding {
	if s.SaveError == "" {
		return nil
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonInternalError, "the state folder cannot be used, nothing new is applied: " +
		s.SaveError, "make room or fix the disk"}
}

func findSync(s *State) *finding {
	switch {
	case s.Sync != nil && s.Sync.Malformed:
		return &finding{corev1.ConditionFalse, nodev1.ReasonInvalidAssignment, s.Sync.Words, "correct the assignment"}
	case s.Sync != nil && s.Sync.OfNode:
		return &finding{corev1.ConditionFalse, nodev1.ReasonFallbackBroken, s.Sync.Words, "correct the local configuration"}
	case s.Sync != nil:
		return &finding{corev1.ConditionFalse, nodev1.ReasonSyncFailed, s.Sync.Words, "it is tried again automatically"}
	case s.Lost:
		return &finding{corev1.ConditionFalse, nodev1.ReasonAssignmentLost,
			"the Node was re-created without its assignment, the configuration stays", "assign again, or assign local"}
	}
	return nil
}

func findEnvironment(s *State) *finding {
	words := s.Environment
	for _, x := range s.Suspects {
		if x.Excused && x.Kubelet == s.kubeletOf(&x.Version) {
			words = cmp.Or(words, x.Words)
		}
	}
	if words == "" {
		return nil
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonEnvironmentFailing, words,
		"fix the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration"}
}

// findNotInUse finds a configuration that no kubelet was started with; nothing is blamed on it.
func findNotInUse(s *State) *finding {
	if !s.Child.Alive || s.Child.NotInUse == "" {
		return nil
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonNotInUse, s.Child.NotInUse,
		`let the script end with exec kubelet ... "$@", or give the kubelet itself in ExecStart`}
}

// findUnhealthy finds a kubelet that is not healthy. The condition is never True without a healthy kubelet.
func findUnhealthy(s *State) *finding {
	if s.Child.Alive && s.Child.Healthy {
		return nil
	}
	if s.Child.PortHeld != "" {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonEnvironmentFailing, s.Child.PortHeld,
			"end that process, or give the kubelet another healthzPort"}
	}
	why := cmp.Or(s.Exit, s.Child.Words, "the kubelet is not healthy yet")
	if s.Assigned == nil && (s.Exit != "" || s.Child.EverHealthy) {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonEnvironmentFailing, why, "see the kubelet's log"}
	}
	if s.Child.Alive {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, why, "wait, or see the kubelet's log"}
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, why, "it is restarted automatically"}
}

// findFallback finds that local runs because lastKnownGood failed too.
func findFallback(s *State) *finding {
	if s.LastKnownGood == nil || wanted(s) != nil || s.Child.Version != nil {
		return nil
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonLastKnownGoodFailed, verdict(s, s.LastKnownGood).why(), "assign a good configuration"}
}

// findVerdict finds what speaks against the assigned configuration.
func findVerdict(s *State) *finding {
	if s.Assigned == nil {
		return nil
	}
	verdict := verdict(s, s.Assigned)
	if broken := findBrokenLocal(s); verdict.Kind == VerdictRefused && s.Assigned.Base != "" && broken != nil {
		return broken // the node is at fault, not the layers
	}
	return verdict.finding()
}

func findApplying(s *State) *finding {
	if s.NodeGone && (s.Pending != nil || s.Reset != nil || s.Unsettled >= 0) {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, "the Node does not exist: what it asked for is not made", ""}
	}
	if s.Reset != nil {
		return findRefusedReset(s)
	}
	if s.Unsettled < 0 {
		return nil
	}
	why := "a change is under way"
	if s.Now < s.ApplyAt {
		why = fmt.Sprintf("the edit %s waits for its turn until %s", Describe(s.Assigned), s.ApplyAtWall.UTC().Format(time.RFC3339))
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, why, ""}
}

func findRefusedReset(s *State) *finding {
	f := findBrokenLocal(s)
	if f == nil {
		return &finding{corev1.ConditionUnknown, nodev1.ReasonApplying, "the reset to the local configuration is under way", ""}
	}
	f.why = "the reset to the local configuration waits: " + f.why
	return f
}

// findBrokenLocal finds that the kubelet would refuse the local configuration, the fallback of last resort.
func findBrokenLocal(s *State) *finding {
	p := s.proof(s.Local, s.OnDisk)
	if p == nil || p.Outcome != kubeletconfig.Refused {
		return nil
	}
	return &finding{corev1.ConditionFalse, nodev1.ReasonFallbackBroken, "the local configuration would be refused: " + p.Words,
		"correct the local configuration"}
}
