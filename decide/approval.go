package decide

import (
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// An approval lets one held change through, once (rule 22). It is spent before anything moves: who is killed in between asks again.

// HeldChange is a change that waits, and what its approval is made of. It is kept over restarts, so that an approval that was read from the
// Node stays good.
type HeldChange struct {
	Runs  string        `json:"runs,omitempty"`  // content of what runs
	To    string        `json:"to,omitempty"`    // content of what is to run
	Asked string        `json:"asked,omitempty"` // content that was asked for: another one than To where that is refused
	Nonce string        `json:"nonce,omitempty"`
	Named []nodev1.Loss `json:"named,omitempty"` // the pods that it has named: who approves has read of these
	AsOf  time.Time     `json:"asOf,omitzero"`   // when the newest of them was
	// Obstacles are the kinds that it has named.
	Obstacles []ObstacleKind `json:"obstacles,omitempty"`
	Spent     bool           `json:"spent,omitempty"` // its approval was: it lets nothing through any more that it has not yet
	// Wasted is an approval of the same change that was spent, and had no effect.
	Wasted string `json:"wasted,omitempty"`
}

// namedMost bounds the pods that a hold has named and would not lose any more.
const namedMost = 500

func (h HeldChange) approval() nodev1.Approval {
	if h.Nonce == "" {
		return ""
	}
	return nodev1.NewApproval(h.Runs, h.To, h.Nonce)
}

// isHold tells whether the hold on record is that of the change to want.
func (s *State) isHold(want *Version) bool {
	return s.Hold.Runs == s.contentRun() && s.Hold.To == s.contentOf(want)
}

// approval lets the change to want through; empty where nothing does.
func (s *State) approval(want *Version) nodev1.Approval {
	if !s.isHold(want) || s.Hold.Spent {
		return ""
	}
	return s.Hold.approval()
}

// isApproved: a person has approved the change to want. With pods that were named before, only a fresh look can tell that there are no others,
// as long as there is one to be had.
func (s *State) isApproved(want *Version) bool {
	given, acceptsAny := s.approval(want).GivenBy(s.Consent)
	cannotBeKnown := s.foresaw(want) && !s.Outlook.Known && s.Outlook.WaitsFor == ""
	return given && (acceptsAny || s.Disruption == Allow || s.Outlook.Known || cannotBeKnown || len(s.Hold.Named) == 0)
}

// isLetThrough: the approval of the change to want was spent, and the change is being made. It can be taken back until the kubelet is stopped.
func (s *State) isLetThrough(want *Version) bool {
	given, _ := s.Hold.approval().GivenBy(s.Consent)
	return given && s.LetThrough && s.isHold(want)
}

// spendApproval is written before anything is done with it. One that cannot be recorded is not used.
func spendApproval(s *State) *move {
	if s.saveBlocked() {
		return &move{}
	}
	d := s.durable()
	d.Hold.Spent, d.Approval = true, string(s.Hold.approval())
	return &move{kind: act, action: Save{Durable: d, spends: true}}
}

// learnSpent: the approval is spent on the disk, whatever has happened meanwhile.
func (s *State) learnSpent(saved Durable) {
	s.Approval = saved.Approval
	if s.Hold.Nonce == saved.Hold.Nonce {
		s.Hold.Spent, s.LetThrough = true, true
	}
}

func (s *State) learnConsented(e Consented) {
	s.Consent = e.Value
	if given, _ := s.Hold.approval().GivenBy(e.Value); given {
		s.Outlook.Due = true // what it would do now decides
	}
}

// keepHold opens the hold of a change that has to wait, and gives it another nonce when a look names a pod that it has not named: who
// approved has not read of that one.
func keepHold(s *State) {
	nonce := s.nonce
	s.nonce = ""
	want, newest, _ := heldChange(s)
	if !mustWait(s, want) {
		isOver := mayHold(s, want) || s.Disruption == Allow && s.isHold(want) && !s.LetThrough
		if s.foresaw(want) && isOver { // the newest look has ended it
			s.Hold = HeldChange{}
		}
		return
	}
	is, more, unread := s.isHold(want), s.unnamed(want), s.unreadObstacles(want)
	isOpen := is && (!s.Hold.Spent || s.isLetThrough(want))
	if _, acceptsAny := s.Hold.approval().GivenBy(s.Consent); isOpen && !unread && (acceptsAny || s.Disruption == Allow || len(more) == 0) {
		return
	}
	s.LetThrough = false
	if nonce == "" {
		s.Outlook.Due = true // the next look brings one
		return
	}
	before := s.Hold
	s.Hold = HeldChange{Runs: s.contentRun(), To: s.contentOf(want), Asked: s.contentOf(want), Nonce: nonce}
	if newest != nil {
		s.Hold.Asked = newest.Content
	}
	if is {
		s.Hold.Named, s.Hold.Obstacles = before.Named, before.Obstacles
		if before.Spent {
			s.Hold.Wasted = string(before.approval())
		}
	}
	s.name(more)
	s.nameObstacles(want)
}

// unnamed are the pods that the outlook names, and the hold has not.
func (s *State) unnamed(want *Version) []nodev1.Loss {
	if !s.isHold(want) {
		return s.Outlook.Losses
	}
	return without(s.Outlook.Losses, func(l nodev1.Loss) bool { return names(s.Hold.Named, l) })
}

func (s *State) name(more []nodev1.Loss) {
	before := without(s.Hold.Named, func(l nodev1.Loss) bool { return names(s.Outlook.Losses, l) })
	still := without(s.Hold.Named, func(l nodev1.Loss) bool { return !names(s.Outlook.Losses, l) })
	s.Hold.Named = slices.Concat(before[max(0, len(before)-namedMost):], still, more)
	s.Hold.AsOf = s.Wall
}

// endLetThrough: what was let through has come to its end, for what ran has ended.
func (s *State) endLetThrough() {
	if s.LetThrough {
		s.Hold, s.LetThrough = HeldChange{}, false
	}
}

// whyNotApproved says what is wrong with the value of the annotation; empty where there is none, or it is given.
func (s *State) whyNotApproved(want *Version) string {
	given, _ := s.approval(want).GivenBy(s.Consent)
	value := "annotation allow-disruption=" + s.Consent
	word := strings.TrimSuffix(s.Consent, nodev1.Approval("").WithAny())
	switch {
	case s.Consent == "", s.isApproved(want):
		return ""
	case given:
		return value + " waits for an answer, and with " + nodev1.Approval("").WithAny() + " at its end would not"
	case word == "": // nothing but +any
	case word == s.Hold.Wasted:
		return value + " was spent without effect"
	case word == s.Approval:
		return value + " was spent"
	}
	return value + " is of another change"
}
