package core

import (
	"strings"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// recognise takes what runs for what should run, where the kubelet itself reports the same effective configuration for both: the binary and
// the command line are the same, and what differs is shadowed by flags or drop-in files, or is a default (rule 5). The pointers move, and
// with them the account of a trial, or that it was passed. Between local and dynamic there is always a restart.
func recognise(s *State) {
	c, want := s.Child, wanted(s)
	if s.isStopping() || c.Effective == "" || (want == nil) != (c.Version == nil) || s.isRunWith(want) {
		return
	}
	proof := s.proof(s.contentOf(want), s.OnDisk)
	if proof == nil || proof.Outcome != kubeletconfig.Accepted || proof.Effective != c.Effective || !sameProgram(c.Kubelet, s.OnDisk) {
		return
	}
	if want != nil {
		carryOver(s, want)
	}
	s.Child.Version, s.Child.Kubelet, s.Child.Local, s.ApplyAt = want, s.OnDisk, s.Local, 0
}

func sameProgram(a, b kubeletconfig.Identity) bool {
	return a.Binary == b.Binary && a.Arguments == b.Arguments
}

// carryOver gives want, and the kubelet as it is now, the account of what runs.
func carryOver(s *State, want *Version) {
	c := s.Child
	if c.From == nil {
		s.Child.From = c.Version
	}
	if s.OnTrial() {
		s.Trial.Content, s.Trial.Kubelet = want.Content, s.OnDisk
	}
	if s.promoted(c.Version, c.Kubelet) {
		s.Promoted.Content, s.Promoted.Kubelet = want.Content, s.OnDisk
		s.LastKnownGood = want
	}
}

// ShadowedFields returns the fields of the assigned configuration that the kubelet does not run with; own says that this is the
// supervisor's reading, not the kubelet's.
func (s *State) ShadowedFields() (fields []nodev1.ShadowedField, own bool) {
	p := assignedProof(s)
	if p == nil {
		return nil, false
	}
	return p.Shadowed, p.Effective == ""
}

// shadowWarning returns the warning about shadowed fields; empty when there are none.
func shadowWarning(s *State) string {
	fields, own := s.ShadowedFields()
	if len(fields) == 0 {
		return ""
	}
	words := "Shadowed: " + strings.Join(kubeletconfig.ShadowLines(fields), ", ")
	if own {
		words += " (by our own reading: the kubelet does not tell)"
	}
	return words
}
