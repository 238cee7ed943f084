package decide

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// target is the configuration that ought to run: the first of assigned, lastKnownGood and local that nothing speaks against. It asks
// for no pre-flight; a version without a verdict is presumed fit until it gets one.
func target(s *State) *Version {
	for _, v := range []*Version{s.Assigned, s.LastKnownGood} {
		if v != nil && usable(s, v) {
			return v
		}
	}
	return nil
}

// fallback is what would run if v failed (rule 2).
func fallback(s *State, v *Version) *Version {
	lkg := s.LastKnownGood
	if lkg == nil || Same(v, lkg) || !usable(s, lkg) {
		return nil
	}
	return lkg
}

func usable(s *State, v *Version) bool {
	uncounted := s.SaveError != "" && needsTrial(s, v) && !s.runs(v) // its tries could not be counted (rules 3 and 10)
	return !uncounted && !s.verdict(v).isAgainst()
}

// runs tells whether the child was started with the content of v.
func (s *State) runs(v *Version) bool { return s.Child.Alive && Same(s.Child.Version, v) }

// kubeletOf is the kubelet that verdicts on v are about: the one that runs it, else the one that it would be started with. What runs
// is not stopped because the kubelet that has come onto the disk meanwhile would not take it.
func (s *State) kubeletOf(v *Version) config.Identity {
	if s.runs(v) {
		return s.Child.Kubelet
	}
	return s.OnDisk
}

func (s *State) promoted(v *Version, kubelet config.Identity) bool {
	return s.Promoted.Content == v.Content && s.Promoted.Kubelet == kubelet
}

// proof finds the kept verdict on a content under the given kubelet; nil when there is none.
func (s *State) proof(content string, kubelet config.Identity) *Proof {
	for i := range s.Proofs {
		p := &s.Proofs[i]
		if p.Content == AnyContent && p.Kubelet.Binary == kubelet.Binary || p.Content == content && p.Kubelet == kubelet {
			return p
		}
	}
	return nil
}

// cannotRender says why the version's file cannot be made; empty when it can.
func (s *State) cannotRender(v *Version) string {
	for _, x := range s.Unrenderable {
		if x.Content == v.Content {
			return x.Words
		}
	}
	return ""
}

func (s *State) rejection(v *Version) *Rejection {
	kubelet := s.kubeletOf(v)
	for i := range s.Rejected {
		if r := &s.Rejected[i]; r.Content == v.Content && r.Binary == kubelet.Binary && r.Arguments == kubelet.Arguments {
			return r
		}
	}
	return nil
}

func (s *State) suspect(v *Version) *Suspect {
	kubelet := s.kubeletOf(v)
	for i := range s.Suspects {
		if x := &s.Suspects[i]; x.Version.Content == v.Content && x.Kubelet == kubelet {
			return x
		}
	}
	return nil
}

func (p Proof) refused() bool           { return p.Outcome == config.Refused }
func (p Proof) blamesEnvironment() bool { return p.Outcome == config.Environment }
