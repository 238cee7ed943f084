package core

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Statement is what the Node should show: Details to programs, and the condition's Status, Reason and Message to people.
type Statement struct {
	Config   corev1.NodeConfigStatus
	Observed *string // nil: no assignment was seen yet, leave what the Node says
	Details  nodev1.Status
	Status   corev1.ConditionStatus
	Reason   string
	Parts    []string // of the message: what runs first, what to do last
	Message  string   // the parts in one line of at most messageLimit bytes
	// Gist is the message without uids and resourceVersions. It also differs where contents do, unless these are only on their way.
	Gist string
	// ChangeToReport is when the change began whose end this is the first to report; zero: none.
	ChangeToReport time.Time
}

// Upstream's errors in status.config.error (pkg/kubelet/kubeletconfig/status of Kubernetes 1.23); the last is ours.
const (
	LoadError     = "failed to load config, see Kubelet log for details"
	ValidateError = "failed to validate config, see Kubelet log for details"
	RunError      = "failed to run config, see Kubelet log for details"
)

// Report returns what the Node should show. The second result is false while a change is so young that its end is worth waiting for,
// because one transition is one patch, and while a verdict is being written: a host that goes down now would not know of it.
func Report(s State) (Statement, bool) {
	finding := findingOf(&s)
	parts := message(&s, finding)
	shown := Statement{
		Config:   nodeConfig(&s),
		Observed: s.Observed,
		Details:  details(&s, finding),
		Status:   finding.status,
		Reason:   finding.reason,
		Parts:    parts,
		Message:  bounded.Parts(messageLimit, parts...),
		Gist:     gist(&s),
	}
	if s.LastChange.Phase == PhaseReport {
		shown.ChangeToReport = s.LastChange.Began
	}
	return shown, reportable(&s)
}

func reportable(s *State) bool {
	young := s.Unsettled >= 0 && s.Now < s.Unsettled+applyingAfter
	unsaved := s.SaveError == "" && s.isUnsaved(s.Disk)
	return s.Booted && (s.Stopping || !young && !unsaved)
}

// gist returns the message, which says all of it, of a state whose assigned configuration has no uid and resourceVersion. Those of what
// runs and of lastKnownGood move with it alone.
func gist(s *State) string {
	bare := *s
	bare.Assigned = bare.Assigned.bare()
	f := findingOf(&bare)
	parts := message(&bare, f)
	if f.reason != nodev1.ReasonApplying {
		parts = append(parts, contentOf(bare.Assigned), contentOf(bare.Active), contentOf(bare.LastKnownGood))
	}
	return strings.Join(parts, "\n")
}

func nodeConfig(s *State) corev1.NodeConfigStatus {
	return corev1.NodeConfigStatus{
		Assigned:      nodeConfigSource(s.Assigned),
		Active:        nodeConfigSource(s.Active),
		LastKnownGood: nodeConfigSource(s.LastKnownGood),
		Error:         statusError(s),
	}
}

func nodeConfigSource(v *Version) *corev1.NodeConfigSource {
	if v == nil {
		return nil
	}
	source := v.Source
	return &corev1.NodeConfigSource{ConfigMap: &source}
}

// statusError returns upstream's error. As upstream, it reports what keeps the newest assignment from being followed in preference to what
// keeps it from running.
func statusError(s *State) string {
	if s.Sync != nil {
		return s.Sync.Error
	}
	return newestVerdict(s).statusError()
}

// Phase returns the name of what goes on, for people.
func (s *State) Phase() string {
	switch s.Doing.(type) {
	case Save:
		return "Saving"
	case Prove:
		return "Proving"
	case Foresee, Ask:
		return "Foreseeing"
	case Park, Unpark:
		return "Parking"
	case Merge:
		return "Merging"
	case Blame:
		return "Blaming"
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
