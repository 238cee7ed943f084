package core

import (
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// An approval lets one held change through, once (rule 22). It is spent before anything moves, so a supervisor that is killed in between
// asks again.

// HeldChange is a change that waits, and what its approval is made of. It is kept over restarts, so that an approval that was read from the
// Node stays good.
type HeldChange struct {
	Runs  string        `json:"runs,omitempty"`  // content of what runs
	To    string        `json:"to,omitempty"`    // content of what is to run
	Asked string        `json:"asked,omitempty"` // content that was asked for: differs from To where that is refused
	Nonce string        `json:"nonce,omitempty"`
	Named []nodev1.Loss `json:"named,omitempty"` // the pods that it has named: who approves has read of these
	AsOf  time.Time     `json:"asOf,omitzero"`   // when the newest of them was
	// Obstacles are the kinds that it has named.
	Obstacles []ObstacleKind `json:"obstacles,omitempty"`
	Spent     bool           `json:"spent,omitempty"` // its approval was: it lets nothing else through
	// Wasted is an approval of the same change that was spent, and had no effect.
	Wasted string `json:"wasted,omitempty"`
}

// namedMost bounds the pods that a hold has named and that the change would no longer kill.
const namedMost = 500

func (h HeldChange) approval() nodev1.Approval {
	if h.Nonce == "" {
		return ""
	}
	return nodev1.NewApproval(h.Runs, h.To, h.Nonce)
}

// isHold reports whether the hold on record is that of the change.
func (h *Held) isHold(c Change) bool {
	return h.Hold.Runs == c.Runs && h.Hold.To == c.Content
}

// approval lets the change through; empty where nothing does.
func (h *Held) approval(c Change) nodev1.Approval {
	if !h.isHold(c) || h.Hold.Spent {
		return ""
	}
	return h.Hold.approval()
}

// isApproved reports whether a person has approved the change. With pods that were named before, only a fresh look can show that there are
// no others, as long as a look is possible.
func (h *Held) isApproved(settings Settings, c Change) bool {
	given, acceptsAny := h.approval(c).GivenBy(h.Consent)
	cannotBeKnown := h.foresaw(c) && !h.Outlook.Known && h.Outlook.WaitsFor == ""
	return given && (acceptsAny || settings.Disruption == Allow || h.Outlook.Known || cannotBeKnown || len(h.Hold.Named) == 0)
}

// isLetThrough reports whether the approval of the change was spent and the change is being made. The change can be cancelled until the
// kubelet is stopped.
func (h *Held) isLetThrough(c Change) bool {
	given, _ := h.Hold.approval().GivenBy(h.Consent)
	return given && h.LetThrough && h.isHold(c)
}

// spendApproval is written before anything is done with it. One that cannot be recorded is not used.
func spendApproval(s *State) *move {
	if s.saveBlocked(s.Now) {
		return &move{}
	}
	d := s.durable()
	d.Hold.Spent, d.Approval = true, string(s.Hold.approval())
	return &move{kind: perform, action: Save{Durable: d, spends: true}}
}

// learnSpent records that the approval is spent on the disk, whatever has happened since the write began.
func (h *Held) learnSpent(saved Durable) {
	h.Approval = saved.Approval
	if h.Hold.Nonce == saved.Hold.Nonce {
		h.Hold.Spent, h.LetThrough = true, true
	}
}

func (h *Held) learnConsented(e Consented) {
	h.Consent = e.Value
	if given, _ := h.Hold.approval().GivenBy(e.Value); given {
		h.Outlook.Due = true // what it would do now decides
	}
}

// keepHold opens the hold of a change that has to wait, and gives it another nonce when a look names a pod that it has not named, because
// the user who approved has not read of that one.
func keepHold(s *State) {
	nonce := s.nonce
	s.nonce = ""
	want, newest, _ := heldChange(s)
	c := s.changeTo(want)
	if !mustWait(s, want) {
		isOver := mayHold(s, want) || s.Disruption == Allow && s.isHold(c) && !s.LetThrough
		if s.foresaw(c) && isOver { // the newest look has ended it
			s.Hold = HeldChange{}
		}
		return
	}
	is, more, unread := s.isHold(c), s.unnamed(c), s.unreadObstacles(c)
	isOpen := is && (!s.Hold.Spent || s.isLetThrough(c))
	if _, acceptsAny := s.Hold.approval().GivenBy(s.Consent); isOpen && !unread && (acceptsAny || s.Disruption == Allow || len(more) == 0) {
		return
	}
	s.LetThrough = false
	if nonce == "" {
		s.Outlook.Due = true // the next look brings one
		return
	}
	before := s.Hold
	s.Hold = HeldChange{Runs: c.Runs, To: c.Content, Asked: c.Content, Nonce: nonce}
	if newest != nil {
		s.Hold.Asked = newest.Content
	}
	if is {
		s.Hold.Named, s.Hold.Obstacles = before.Named, before.Obstacles
		if before.Spent {
			s.Hold.Wasted = string(before.approval())
		}
	}
	s.name(s.Wall, more)
	s.nameObstacles(c)
}

// unnamed are the pods that the outlook names, and the hold has not.
func (h *Held) unnamed(c Change) []nodev1.Loss {
	if !h.isHold(c) {
		return h.Outlook.Losses
	}
	return without(h.Outlook.Losses, func(l nodev1.Loss) bool { return names(h.Hold.Named, l) })
}

func (h *Held) name(wall time.Time, more []nodev1.Loss) {
	before := without(h.Hold.Named, func(l nodev1.Loss) bool { return names(h.Outlook.Losses, l) })
	still := without(h.Hold.Named, func(l nodev1.Loss) bool { return !names(h.Outlook.Losses, l) })
	h.Hold.Named = slices.Concat(before[max(0, len(before)-namedMost):], still, more)
	h.Hold.AsOf = wall
}

// whyNotApproved returns what is wrong with the value of the annotation; empty where there is none, or it is given.
func (h *Held) whyNotApproved(settings Settings, c Change) string {
	given, _ := h.approval(c).GivenBy(h.Consent)
	value := "annotation allow-disruption=" + h.Consent
	word := strings.TrimSuffix(h.Consent, nodev1.Approval("").WithAny())
	switch {
	case h.Consent == "", h.isApproved(settings, c):
		return ""
	case given:
		return value + " waits for an answer, and with " + nodev1.Approval("").WithAny() + " at its end would not"
	case word == "": // nothing but +any
	case word == h.Hold.Wasted:
		return value + " was spent without effect"
	case word == h.Approval:
		return value + " was spent"
	}
	return value + " is of another change"
}
