package core

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// wanted returns the configuration that should run: the first of assigned, lastKnownGood and local that nothing speaks against. It asks
// for no pre-flight; a version without a verdict is presumed fit until it gets one.
func wanted(s *State) *Version {
	for _, v := range []*Version{s.Assigned, s.LastKnownGood} {
		if v != nil && usable(s, v) {
			return v
		}
	}
	return nil
}

// fallback returns what would run if v failed (rule 2).
func fallback(s *State, v *Version) *Version {
	lkg := s.LastKnownGood
	if lkg == nil || Same(v, lkg) || !usable(s, lkg) {
		return nil
	}
	return lkg
}

func usable(s *State, v *Version) bool {
	uncounted := s.SaveError != "" && s.needsTrial(v, s.OnDisk) && !s.runs(v) // its tries could not be counted (rules 3 and 10)
	return !uncounted && !verdict(s, v).isAgainst()
}

func (p Proof) refused() bool           { return p.Outcome == kubeletconfig.Refused }
func (p Proof) blamesEnvironment() bool { return p.Outcome == kubeletconfig.Environment }
