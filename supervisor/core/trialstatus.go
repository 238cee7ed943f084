package core

import (
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// TrialStatus is how far the trial is of the configuration that the kubelet was last started with, also between two of its starts; nil
// where that is not on trial. Its Healthy grows while nothing else happens, so a document that differs in it alone is not worth a write.
func (s *State) TrialStatus() *nodev1.Trial {
	v := s.Child.Version
	if v == nil || v.Content != s.Trial.Content || s.Child.Alive && s.Child.Kubelet != s.Trial.Kubelet {
		return nil
	}
	return &nodev1.Trial{
		Healthy: time.Duration(s.Trial.Healthy).Truncate(time.Second).String(),
		Of:      s.TrialPeriod.String(),
		Tries:   int(s.Trial.Tries),
	}
}
