package core

import (
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// followReason notes when the reason changes. It comes last in a decision. What is not published, because a change is too young, is no
// change of the reason.
func followReason(s *State) {
	if !reportable(s) {
		return
	}
	if reason := findingOf(s).reason; reason != s.Said.Reason {
		s.Said = Said{reason, s.Wall}
	}
}

// details returns what the Node says to programs; the condition says the same to people.
func details(s *State, f finding) nodev1.Status {
	details := nodev1.Status{
		Reason:   f.reason,
		Since:    s.Wall,
		Features: []string{nodev1.LayersFeature},
		Retry:    s.Retry,
		Content:  contentDetails(s),
		Approval: s.Approval,
		Hold:     s.HoldStatus(),
		Trial:    s.TrialStatus(),
		Failure:  failure(s, f),
		Shadowed: shadowedDetails(s),
		Warnings: warnings(s),
		Change:   changeDetails(s),
	}
	if f.reason == s.Said.Reason {
		details.Since = s.Said.Since
	}
	if s.Observed != nil {
		details.Observed = *s.Observed
	}
	if p := assignedProof(s); p != nil {
		details.UnknownFields = p.UnknownFields
	}
	return details
}

// assignedProof returns the verdict on what is assigned; nil where there is none, or it is a refusal.
func assignedProof(s *State) *Proof {
	if s.Assigned == nil {
		return nil
	}
	p := s.proof(s.Assigned.Content, s.kubeletOf(s.Assigned))
	if p == nil || p.refused() {
		return nil
	}
	return p
}

func contentDetails(s *State) nodev1.Content {
	c := nodev1.Content{Assigned: digits(s.Assigned), Active: digits(s.Active), LastKnownGood: digits(s.LastKnownGood)}
	if s.LastKnownGood != nil && s.LastKnownGood.Content == s.Promoted.Content {
		c.KubeletVersion = s.Promoted.Version
	}
	return c
}

// contentDigits is how many of a content's digits name it.
const contentDigits = 12

func digits(v *Version) string {
	content := contentOf(v)
	content = content[strings.LastIndexByte(content, ':')+1:]
	return content[:min(contentDigits, len(content))]
}

func shadowedDetails(s *State) (list []nodev1.ShadowedField) {
	fields, own := s.ShadowedFields()
	for _, f := range fields {
		f.Inferred = own
		list = append(list, f)
	}
	return list
}

// changeDetails returns the change without the phase in which it is being reported: the Node that shows it has got the report.
func changeDetails(s *State) *nodev1.Change {
	c := s.LastChange.Shown()
	switch {
	case c == nil:
	case s.LastChange.Phase == PhaseReport:
		c.Phase = ""
	case s.LastChange.IsOpen() && s.Now < s.ApplyAt:
		c.Due = s.ApplyAtWall.UTC()
	}
	return c
}

// Shown returns the change in the form of the Node contract; nil where there is none.
func (c LastChange) Shown() *nodev1.Change {
	if c.Began.IsZero() {
		return nil
	}
	shown := nodev1.Change{From: c.From.name(), To: c.To.name(), Began: c.Began.UTC(), Ended: c.Ended.UTC(), Outcome: c.Outcome,
		Resumed: c.Resumed, Phase: string(c.Phase)}
	if c.To != nil {
		shown.ResourceVersion = c.To.Source.ResourceVersion
	}
	for _, part := range c.Took.all() {
		if *part.sum > 0 {
			shown.Phases = append(shown.Phases, nodev1.ChangePhase{Name: string(part.of), Took: part.sum.round(time.Millisecond).String()})
		}
	}
	return &shown
}

// name returns how the version is assigned.
func (v *Version) name() string {
	if v == nil {
		return nodev1.Local
	}
	return nodev1.FieldText(&v.Source)
}
