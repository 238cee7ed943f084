package core

import (
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Held is what is known of a change that may end running pods: the hold with its approval, and the outlook.
type Held struct {
	Hold       HeldChange `json:"hold,omitzero"`
	Approval   string     `json:"approval,omitempty"`
	Consent    string     // the value of annotation allow-disruption
	LetThrough bool       // the approval of Hold was spent by this supervisor, and what ran then runs still
	HoldTold   HoldTold   // the change that was told to be held
	Outlook    Outlook    // of the newest change that was looked at
	Obstacles  []Obstacle // to the next start of what runs
}

// foresaw tells whether the outlook is of the change.
func (h *Held) foresaw(c Change) bool {
	return h.Outlook.Runs == c.Runs && h.Outlook.Content == c.Content
}

// seesLoss: a look of this supervisor knows of pods that the change would end.
func (h *Held) seesLoss(c Change) bool { return h.foresaw(c) && h.Outlook.Lost > 0 }

// losesPods: one of this supervisor or of the one before does, and none since then knows better. A pod that was named and is in doubt now is one
// that may be lost.
func (h *Held) losesPods(c Change) bool {
	return h.seesLoss(c) || h.isHold(c) && len(h.Hold.Named) > 0 && !h.knowsBetter(c)
}

func (h *Held) knowsBetter(c Change) bool {
	return h.foresaw(c) && h.Outlook.Known && !h.doubtsNamed()
}

// doubtsNamed: the newest look can neither say that a pod goes which the hold has named, nor that it stays.
func (h *Held) doubtsNamed() bool {
	return slices.ContainsFunc(h.Outlook.InDoubt, func(l nodev1.Loss) bool { return names(h.Hold.Named, l) })
}

// endHold forgets what is known of a change that is not asked for any more.
func (h *Held) endHold() {
	h.Hold, h.HoldTold, h.LetThrough, h.Outlook = HeldChange{}, HoldTold{}, false, Outlook{}
}

// endLetThrough: what was let through has come to its end, for what ran has ended.
func (h *Held) endLetThrough() {
	if h.LetThrough {
		h.Hold, h.LetThrough = HeldChange{}, false
	}
}
