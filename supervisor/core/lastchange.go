package core

import (
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// LastChange is the newest change of what the kubelet is to run: from when it was heard of until a kubelet runs with it, or is found to go
// on without it. Its zero value is no change. It is for people: nothing is decided by it.
type LastChange struct {
	From  *Version  `json:"from,omitempty"` // nil = local
	To    *Version  `json:"to,omitempty"`   // the same
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended,omitzero"` // zero: it is under way, or waits
	Phase Phase     `json:"phase,omitempty"`
	Took  Phases    `json:"phases,omitzero"` // without the present phase
	// Outcome is a reason of the condition, Superseded or Interrupted; empty while it is not known. Of a change that waits it says why.
	Outcome string `json:"outcome,omitempty"`
	// Resumed says that another supervisor began it, and was killed or stopped.
	Resumed bool `json:"resumed,omitempty"`
}

// Phase is a part of a change. At each moment of one it is in one phase.
type Phase string

// The phases of a change, in their usual order.
const (
	PhaseDownload  Phase = "download"  // until the payload is on the disk
	PhaseWait      Phase = "wait"      // it is held, or waits for its turn
	PhasePreflight Phase = "preflight" // all that is done while the kubelet before still runs
	PhaseStop      Phase = "stop"      // until that has ended
	PhaseStart     Phase = "start"     // until a kubelet is healthy
	PhaseReport    Phase = "report"    // until the Node says so
)

// Phases are how long each of them took, also in several stretches.
type Phases struct {
	Download  Span `json:"download,omitempty"`
	Wait      Span `json:"wait,omitempty"`
	Preflight Span `json:"preflight,omitempty"`
	Stop      Span `json:"stop,omitempty"`
	Start     Span `json:"start,omitempty"`
	Report    Span `json:"report,omitempty"`
}

// EndedPhase is one stretch of a phase that is over.
type EndedPhase struct {
	Phase Phase
	Took  time.Duration
	To    *Version // what the change was to
}

// Outcomes of a change that no condition says.
const (
	Superseded  = "Superseded"  // something else was asked for before it was made
	Interrupted = "Interrupted" // the supervisor ended before it was made
)

// IsOpen reports whether the change has begun and not ended.
func (c LastChange) IsOpen() bool { return !c.Began.IsZero() && c.Ended.IsZero() }

// phaseSum returns how long one of them took.
type phaseSum struct {
	of  Phase
	sum *Span
}

// all returns the phases in their usual order.
func (p *Phases) all() []phaseSum {
	return []phaseSum{{PhaseDownload, &p.Download}, {PhaseWait, &p.Wait}, {PhasePreflight, &p.Preflight}, {PhaseStop, &p.Stop},
		{PhaseStart, &p.Start}, {PhaseReport, &p.Report}}
}

func (p *Phases) add(phase Phase, took time.Duration) {
	for _, part := range p.all() {
		if part.of == phase {
			*part.sum += Span(took)
		}
	}
}

// sameGoal reports whether two versions have the same content, or the same source over another file of the node.
func sameGoal(a, b *Version) bool {
	return Same(a, b) || a != nil && b != nil && a.Source == b.Source
}

// beginAnyChange begins a change that was not just assigned: changed local files, a configuration that is tried again.
func beginAnyChange(s *State) {
	if !s.LastChange.IsOpen() {
		s.beginChange(s.Wall, s.ran(), s.goal(), 0, 0)
	}
}

// inherit takes over the change of the supervisor before. What was not durable yet is heard of again, as another change.
func inherit(s *State, c LastChange) {
	c.Phase = ""
	if c.IsOpen() {
		if c.Resumed = true; !sameGoal(c.To, s.Assigned) {
			c.Ended, c.Outcome = s.Wall, Interrupted
		}
	}
	s.LastChange = c
}

// followChange notes how far the newest change is. It comes last in a decision, and changes nothing else.
func followChange(s *State) {
	c := &s.LastChange
	switch {
	case c.Began.IsZero() || s.Stopping:
	case !c.Ended.IsZero():
		judgeChange(s)
	case !sameGoal(c.To, s.goal()):
		s.endChange(s.Now, s.Wall, s.Settings, Superseded)
	case changeIsOver(s):
		s.endChange(s.Now, s.Wall, s.Settings, outcome(s))
	default:
		c.To, c.Outcome = s.goal(), whyOpen(s)
		s.enter(s.Now, phaseOfChange(s))
	}
}

// changeIsOver reports whether what should run runs and is healthy, and nothing is left to do about what was asked for.
func changeIsOver(s *State) bool {
	return s.Pending == nil && s.Reset == nil && s.Child.Healthy && s.runs(wanted(s)) && !s.isStopping()
}

// outcome returns what came of a change to what is assigned.
func outcome(s *State) string {
	if s.Assigned == nil {
		return nodev1.ReasonLocal
	}
	if f := findVerdict(s); f != nil {
		return f.reason
	}
	switch {
	case !Same(s.Assigned, s.Child.Version):
		return nodev1.ReasonInternalError // its start could not be counted
	case verdict(s, s.Assigned).Kind == VerdictGood:
		return nodev1.ReasonActive
	}
	return nodev1.ReasonInTrial
}

// judgeChange corrects the outcome of the change that is over, where a later verdict is about it.
func judgeChange(s *State) {
	verdicts := []string{nodev1.ReasonActive, nodev1.ReasonRolledBack, nodev1.ReasonRejected} // one after the other
	c, outcome := &s.LastChange, outcome(s)
	if Same(c.To, s.Assigned) && slices.Index(verdicts, outcome) > slices.Index(verdicts, c.Outcome) {
		c.Outcome = outcome
	}
}

// whyOpen returns what a change waits for that cannot go on automatically; empty = nothing.
func whyOpen(s *State) string {
	switch f := findingOf(s); f.reason {
	case nodev1.ReasonWouldDisrupt, nodev1.ReasonFallbackBroken, nodev1.ReasonEnvironmentFailing, nodev1.ReasonInternalError,
		nodev1.ReasonRefused:
		return f.reason
	}
	return ""
}

// phaseOfChange returns the phase of a change that is open.
func phaseOfChange(s *State) Phase {
	_, _, held := heldChange(s)
	switch {
	case s.isStopping():
		return PhaseStop
	case !s.Child.Healthy:
		return PhaseStart
	case held, s.Doing == nil:
		return PhaseWait
	}
	return PhasePreflight
}
