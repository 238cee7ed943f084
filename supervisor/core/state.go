package core

import (
	"cmp"
	"time"
)

// Settings are the choices of the command line that the core needs.
type Settings struct {
	TrialPeriod   time.Duration
	TrialFailures int
	StartTimeout  time.Duration
	EditSpread    time.Duration
	FollowLocal   bool
	Disruption    string // Hold or Allow; empty: nothing is foreseen
	Standalone    bool   // the kubelet has no kubeconfig: no Lease is expected of it
	Parking       bool   // the next kubelet may wait at the lock of the one that runs

	// Of tests that do not want to wait; 0 is what the design says.
	HealthThatCounts, SaveRetryAfter time.Duration
}

func (s Settings) healthThatCounts() time.Duration {
	return cmp.Or(s.HealthThatCounts, healthThatCounts)
}

// localHangsAfter returns how long local may take to get healthy before what is excused is tried again.
func (s Settings) localHangsAfter() time.Duration {
	return time.Duration(max(s.TrialFailures, 1)) * s.StartTimeout
}
func (s Settings) saveRetryAfter() time.Duration { return cmp.Or(s.SaveRetryAfter, saveRetryAfter) }

// Times that the design fixes.
const (
	healthThatCounts   = 10 * time.Second // health that clears a start of suspicion, and the least control time
	leaseLimitLeast    = time.Minute      // without a renewal, the API server in reach; more for a Lease that lasts longer
	leaseLimitSlack    = 10 * time.Second
	persistInterval    = 30 * time.Second // how often trial time is written
	applyingAfter      = time.Second      // a change in flight for longer is reported
	exitWindow         = 10 * time.Minute // outside a trial, exitLimit exits within it try the next fallback
	exitLimit          = 5
	cleanExitWindow    = time.Minute // the cleanExitLimit-th exit with 0 within it counts as a failure
	cleanExitLimit     = 3
	cleanExitPause     = time.Second // before the start after such a one
	saveRetryAfter     = 10 * time.Second
	environmentRecheck = 30 * time.Second // a pre-flight that blamed the environment is asked again
	excusePauseFirst   = 30 * time.Second // before an excused configuration is tried again, doubling
	excusePauseMost    = 30 * time.Minute
)

// State is everything the core knows. It is a value: decide never changes what it was given. Its parts have their own methods, which know
// nothing of each other. What takes a *State is a rule over several of them.
type State struct {
	Settings
	Clock
	Intake
	Verdicts
	Trial Trial `json:"trial,omitzero"`
	Held
	Process
	Progress
	Host
	Storage

	Booted   bool
	BootID   string
	Cluster  []string `json:"cluster,omitempty"` // as in [Account]
	Doing    Action   // the action in flight: Save, Prove, Foresee, Ask, Park, Unpark, Stop, SetAside, Start or Exit
	Warning  string   // state on disk that could not be read
	Stopping bool
	Frozen   bool // the host shuts down: hands off

	nonce   string // that came with the event, for a hold that needs one
	events  []NodeEvent
	gaveUp  bool // the question that was under way
	looking bool // at the Node; not handed over, because the answer would not be either
}

// durable returns what of the state survives a restart.
func (s *State) durable() Durable {
	return Durable{
		Assigned: s.Assigned, LastKnownGood: s.LastKnownGood, Rejected: s.Rejected, Proofs: s.Proofs,
		Account: Account{
			Text: s.Text, NodeUID: s.NodeUID, Retry: s.Retry, Active: s.Active, Cluster: s.Cluster, Renews: s.Renews, Before: s.Before,
			Hold: s.Hold, Approval: s.Approval, Asides: s.Asides, Limits: s.Limits,
			Trial: s.Trial, Promoted: s.Promoted, Suspects: s.Suspects, Excuses: s.Excuses,
		},
	}
}

// restore makes all that is durable what is given.
func (s *State) restore(d Durable) {
	s.Assigned, s.LastKnownGood, s.Rejected, s.Proofs = d.Assigned, d.LastKnownGood, d.Rejected, d.Proofs
	s.Text, s.NodeUID, s.Retry, s.Active = d.Text, d.NodeUID, d.Retry, d.Active
	s.Cluster, s.Renews, s.Before = d.Cluster, d.Renews, d.Before
	s.Hold, s.Approval, s.Asides, s.Limits = d.Hold, d.Approval, d.Asides, d.Limits
	s.Trial, s.Promoted, s.Suspects, s.Excuses = d.Trial, d.Promoted, d.Suspects, d.Excuses
}

// New returns the state before anything is known.
func New(settings Settings) State {
	return State{Settings: settings, Progress: Progress{Unsettled: -1}, Clock: Clock{Due: never}}
}

// significant returns what is written at once; only trial time waits for persistInterval. That a hold whose approval was spent is over is
// worth no write of its own.
func significant(d Durable) Durable {
	if d.Hold.Spent {
		d.Hold = HeldChange{}
	}
	d.Trial.Healthy, d.Trial.Unhealthy = 0, 0
	return d
}
