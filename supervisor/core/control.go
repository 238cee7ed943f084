package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The control (rule 8): after a failure the fallback runs, and its fate decides what is to blame. Healthy for long enough, the
// suspects are rejected; failing as well, they are excused, and tried again once the fallback has been healthy.

// inControl reports whether the child is the control of a suspect.
func inControl(s *State) bool {
	return slices.ContainsFunc(s.Suspects, s.isControlOf) && s.runs(wanted(s))
}

// controlNeedsLease reports whether the suspect failed by its Lease: then only the fallback's Lease decides whether it is judged, and tried
// again.
func controlNeedsLease(s *State) bool {
	if s.Standalone || !inControl(s) {
		return false
	}
	return slices.ContainsFunc(s.Suspects, func(x Suspect) bool { return s.isControlOf(x) && x.Cause == LeaseLost })
}

// controlIsOfPort reports whether another process had the suspect's healthz port. A fallback whose port is taken fails the same way.
func controlIsOfPort(s *State) bool {
	return slices.ContainsFunc(s.Suspects, func(x Suspect) bool { return s.isControlOf(x) && x.Cause == PortHeld })
}

func judgeControl(s *State) {
	if !inControl(s) {
		return
	}
	switch {
	case s.Child.PortHeld != "" && controlIsOfPort(s):
		s.excuse(s.Assigned)
	case !s.Child.EverHealthy && s.Now >= s.Child.Started+s.StartTimeout:
		s.excuse(s.Assigned)
		if s.localHangs(s.Now, s.Settings) && !controlIsOfPort(s) {
			s.takeUpExcused()
		}
	case controlNeedsLease(s) && s.Lease.Lost:
		s.excuse(s.Assigned)
	case controlNeedsLease(s) && !s.Lease.Renewed: // not yet, and not at all while the API server is out of reach
	case s.Child.Healthy && s.Now >= s.Child.HealthySince+s.controlTime(s.Settings):
		concludeControl(s)
	}
}

func concludeControl(s *State) {
	suspects := s.Suspects
	s.Suspects = nil
	for _, x := range suspects {
		if x.Excused || !s.isControlOf(x) {
			continue
		}
		s.Rejected = newest(s.Rejected, Rejection{
			Content: x.Version.Content, Binary: x.Kubelet.Binary, Arguments: x.Kubelet.Arguments, Cause: x.Cause, Words: x.Words,
			Times: x.Times, ExitCode: x.ExitCode,
		})
		s.event(corev1.EventTypeWarning, "KubeletConfigRejected", Describe(&x.Version)+" is rejected: "+x.Words, "the fallback runs well")
	}
}
