package core

import nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"

// HoldStatus is what the status document says of the change that is held; nil where none is.
func (s *State) HoldStatus() *nodev1.Hold {
	want, _, held := heldChange(s)
	c := s.changeTo(want)
	approval := s.approval(c)
	if !held || approval == "" {
		return nil
	}
	h := &nodev1.Hold{Approval: string(approval), Losses: s.Hold.Named, Known: true, AsOf: s.Hold.AsOf}
	if s.seesLoss(c) {
		h.Losses, h.More, h.AsOf = s.Outlook.Losses, max(0, s.Outlook.Lost-len(s.Outlook.Losses)), s.Outlook.AsOf
	}
	if waitsFor := notKnownForLong(s, want); waitsFor != "" {
		h.Known, h.WaitsFor = false, waitsFor
	}
	return h
}
