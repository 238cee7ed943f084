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
	HoldTold   HoldTold   // the change that was reported as held
	Outlook    Outlook    // of the newest change that was looked at
	Obstacles  []Obstacle // to the next start of what runs
}

// foresaw reports whether the outlook is of the change.
func (h *Held) foresaw(c Change) bool {
	return h.Outlook.Runs == c.Runs && h.Outlook.Content == c.Content
}

// seesLoss reports whether a look of this supervisor knows of pods that the change would end.
func (h *Held) seesLoss(c Change) bool { return h.foresaw(c) && h.Outlook.Lost > 0 }

// losesPods reports whether a look of this supervisor, or of the one before, knows of such pods and none since then knows better. A pod
// that was named and is in doubt now may be lost.
func (h *Held) losesPods(c Change) bool {
	return h.seesLoss(c) || h.isHold(c) && len(h.Hold.Named) > 0 && !h.knowsBetter(c)
}

func (h *Held) knowsBetter(c Change) bool {
	return h.foresaw(c) && h.Outlook.Known && !h.doubtsNamed()
}

// doubtsNamed reports whether the newest look can say neither that a pod which the hold has named goes, nor that it stays.
func (h *Held) doubtsNamed() bool {
	return slices.ContainsFunc(h.Outlook.InDoubt, func(l nodev1.Loss) bool { return names(h.Hold.Named, l) })
}

// endHold forgets what is known of a change that is no longer asked for.
func (h *Held) endHold() {
	h.Hold, h.HoldTold, h.LetThrough, h.Outlook = HeldChange{}, HoldTold{}, false, Outlook{}
}

// endLetThrough ends a hold whose change was released, because what ran has ended.
func (h *Held) endLetThrough() {
	if h.LetThrough {
		h.Hold, h.LetThrough = HeldChange{}, false
	}
}
