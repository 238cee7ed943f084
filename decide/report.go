package decide

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// Statement is what the Node should show.
type Statement struct {
	Config   corev1.NodeConfigStatus
	Observed *string // nil: no assignment was seen yet, leave what the Node says
	Status   corev1.ConditionStatus
	Reason   string
	Message  string
}

// Upstream's words for status.config.error (pkg/kubelet/kubeletconfig/status of Kubernetes 1.23); the last is ours.
const (
	LoadError     = "failed to load config, see Kubelet log for details"
	ValidateError = "failed to validate config, see Kubelet log for details"
	RunError      = "failed to run config, see Kubelet log for details"
)

// Report says what the Node should show. The second result is false while a change is so young that its end is worth waiting for:
// one transition is one patch.
func Report(s State) (Statement, bool) {
	finding := s.finding()
	shown := Statement{
		Config:   s.nodeConfig(),
		Observed: s.Observed,
		Status:   finding.status,
		Reason:   finding.reason,
		Message:  s.message(finding),
	}
	young := s.Unsettled >= 0 && s.Now < s.Unsettled+applyingAfter
	return shown, s.Booted && (s.Stopping || !young)
}

func (s *State) nodeConfig() corev1.NodeConfigStatus {
	return corev1.NodeConfigStatus{
		Assigned:      nodeConfigSource(s.Assigned),
		Active:        nodeConfigSource(s.Active),
		LastKnownGood: nodeConfigSource(s.LastKnownGood),
		Error:         s.statusError(),
	}
}

func nodeConfigSource(v *Version) *corev1.NodeConfigSource {
	if v == nil {
		return nil
	}
	source := v.Source
	return &corev1.NodeConfigSource{ConfigMap: &source}
}

// statusError: what keeps the newest assignment from being followed goes before what keeps it from running, as upstream.
func (s *State) statusError() string {
	v := s.Assigned
	switch {
	case s.Sync != nil:
		return s.Sync.Error
	case v == nil:
		return ""
	case v.Content == "", s.cannotRender(v) != "":
		return LoadError
	case s.isRefused(v):
		if s.proof(v.Content, s.kubeletOf(v)).Load {
			return LoadError
		}
		return ValidateError
	case s.rejection(v) != nil:
		return RunError
	}
	if x := s.suspect(v); x != nil && !x.Excused {
		return RunError
	}
	return ""
}

// finding is one row of the table of reasons in design.md, with the detail and the remedy.
type finding struct {
	status            corev1.ConditionStatus
	reason, why, hint string
}

// finding picks the first row that holds.
func (s *State) finding() finding {
	for _, row := range []func() (finding, bool){
		s.findStopping, s.findOwnFailure, s.findSync, s.findEnvironment, s.findUnhealthy, s.findFallback, s.findVerdict, s.findApplying, s.findBrokenLocal,
	} {
		if f, found := row(); found {
			return f
		}
	}
	switch {
	case s.Assigned == nil:
		return finding{corev1.ConditionTrue, ReasonLocal, "nothing is assigned", ""}
	case s.promoted(s.Assigned, s.kubeletOf(s.Assigned)):
		return finding{corev1.ConditionTrue, ReasonActive, "the assigned configuration passed its trial", ""}
	}
	return s.trialFinding()
}

func (s *State) trialFinding() finding {
	f := finding{corev1.ConditionTrue, ReasonInTrial, fmt.Sprintf("the assigned configuration is on trial for %s of health", s.TrialPeriod), ""}
	switch {
	case s.Lease.Problem != "":
		f.why += "; it does not become the last known good one before its Lease was seen to be renewed: " + s.Lease.Problem
		f.hint = "let the supervisor's identity get that Lease"
	case s.OnTrial() && time.Duration(s.Trial.Healthy) >= s.TrialPeriod && s.Child.Healthy:
		f.why += ", which it has had; it becomes the last known good one when the API server is in reach and its Lease was seen to be renewed"
	}
	return f
}

func (s *State) findStopping() (finding, bool) {
	if s.Frozen {
		return finding{corev1.ConditionUnknown, ReasonStopped, "the host shuts down", ""}, true
	}
	return finding{corev1.ConditionUnknown, ReasonStopped, "the supervisor was asked to stop", "start it again"}, s.Stopping
}

func (s *State) findOwnFailure() (finding, bool) {
	return finding{corev1.ConditionFalse, ReasonInternalError, "the state folder cannot be used, nothing new is applied: " + s.SaveError, "make room or mend the disk"},
		s.SaveError != ""
}

func (s *State) findSync() (finding, bool) {
	switch {
	case s.Sync != nil && s.Sync.Malformed:
		return finding{corev1.ConditionFalse, ReasonInvalidAssignment, s.Sync.Words, "correct the assignment"}, true
	case s.Sync != nil:
		return finding{corev1.ConditionFalse, ReasonSyncFailed, s.Sync.Words, "it is tried again by itself"}, true
	}
	return finding{corev1.ConditionFalse, ReasonAssignmentLost, "the Node was re-created without its assignment, the configuration stays", "assign again, or assign local"}, s.Lost
}

func (s *State) findEnvironment() (finding, bool) {
	words := s.Environment
	for _, x := range s.Suspects {
		if x.Excused && x.Kubelet == s.kubeletOf(&x.Version) {
			words = cmp.Or(words, "the fallback fails as well; "+x.Words)
		}
	}
	return finding{corev1.ConditionUnknown, ReasonEnvironmentFailing, words, "mend the node (container runtime, kubelet flags, drop-ins, binary); nothing is blamed on the configuration"}, words != ""
}

// findUnhealthy: the condition is never True without a healthy kubelet.
func (s *State) findUnhealthy() (finding, bool) {
	if s.Child.Alive && s.Child.Healthy {
		return finding{}, false
	}
	why := cmp.Or(s.Exit, s.Child.Words, "the kubelet is not healthy yet")
	if s.Assigned == nil && (s.Exit != "" || s.Child.EverHealthy) {
		return finding{corev1.ConditionUnknown, ReasonEnvironmentFailing, why, "see the kubelet's log"}, true
	}
	if s.Child.Alive {
		return finding{corev1.ConditionUnknown, ReasonApplying, why, "wait, or see the kubelet's log"}, true
	}
	return finding{corev1.ConditionUnknown, ReasonApplying, why, "it is restarted by itself"}, true
}

// findFallback: local runs because lastKnownGood failed too.
func (s *State) findFallback() (finding, bool) {
	if s.LastKnownGood == nil || s.target() != nil || s.Child.Version != nil {
		return finding{}, false
	}
	return finding{corev1.ConditionFalse, ReasonLastKnownGoodFailed, s.whyNot(s.LastKnownGood), "assign a good configuration"}, true
}

func (s *State) findVerdict() (finding, bool) {
	v := s.Assigned
	switch {
	case v == nil:
		return finding{}, false
	case v.Content == "" || s.cannotRender(v) != "":
		return finding{corev1.ConditionFalse, ReasonInternalError, s.whyNot(v), "it is downloaded again by itself; see to the state folder and the run folder"}, true
	case s.isRefused(v):
		return finding{corev1.ConditionFalse, ReasonRefused, s.whyNot(v), "correct the configuration"}, true
	case s.rejection(v) != nil:
		return finding{corev1.ConditionFalse, ReasonRejected, s.whyNot(v), "correct the configuration, or set annotation kubelet-supervisor.io/retry"}, true
	case s.suspect(v) != nil:
		return finding{corev1.ConditionFalse, ReasonRolledBack, s.whyNot(v), "correct the configuration"}, true
	}
	return finding{}, false
}

// whyNot tells what speaks against a version.
func (s *State) whyNot(v *Version) string {
	switch p := s.proof(v.Content, s.kubeletOf(v)); {
	case v.Content == "":
		return fmt.Sprintf("%s: its checkpoint cannot be read", Describe(v))
	case s.cannotRender(v) != "":
		return fmt.Sprintf("%s: %s", Describe(v), s.cannotRender(v))
	case p != nil && p.refused():
		return fmt.Sprintf("%s is refused: %s", Describe(v), p.Words)
	}
	if r := s.rejection(v); r != nil {
		return fmt.Sprintf("%s %s", Describe(v), r.Words)
	}
	if x := s.suspect(v); x != nil {
		return fmt.Sprintf("%s %s", Describe(v), x.Words)
	}
	return Describe(v) + " cannot be used"
}

func (s *State) findApplying() (finding, bool) {
	if s.Reset != nil {
		return s.findRefusedReset()
	}
	if s.Unsettled < 0 {
		return finding{}, false
	}
	why := "a change is under way"
	if s.Now < s.ApplyAt {
		why = fmt.Sprintf("the edit %s waits for its turn until %s", Describe(s.Assigned), s.ApplyAtWall.UTC().Format(time.RFC3339))
	}
	return finding{corev1.ConditionUnknown, ReasonApplying, why, ""}, true
}

func (s *State) findRefusedReset() (finding, bool) {
	f, broken := s.findBrokenLocal()
	if !broken {
		return finding{corev1.ConditionUnknown, ReasonApplying, "the reset to the local configuration is under way", ""}, true
	}
	f.why = "the reset to the local configuration waits: " + f.why
	return f, true
}

// findBrokenLocal: the kubelet would refuse the local configuration, the fallback of last resort.
func (s *State) findBrokenLocal() (finding, bool) {
	p := s.proof(s.Local, s.OnDisk)
	if p == nil || p.Outcome != config.Refused {
		return finding{}, false
	}
	return finding{corev1.ConditionFalse, ReasonFallbackBroken, "the local configuration would be refused: " + p.Words, "correct the local configuration"}, true
}

// Phase names what goes on, for people.
func (s *State) Phase() string {
	switch s.Doing.(type) {
	case Save:
		return "Saving"
	case Prove:
		return "Proving"
	case Stop:
		return "Stopping"
	case Start:
		return "Starting"
	}
	switch {
	case s.Frozen:
		return "Frozen"
	case !s.Child.Alive:
		return "Backoff"
	case !s.Child.Healthy:
		return "Starting"
	}
	return "Running"
}
