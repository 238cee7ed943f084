package core

import (
	"fmt"
	"time"
)

// learnExited accounts for the end of the child.
func learnExited(s *State, e ChildExited) {
	if s.isStopping() {
		s.Doing = nil
	}
	if !s.Child.Alive {
		return
	}
	gone, trial, control := s.Child, s.OnTrial(), inControl(s)
	s.Child = Child{Version: gone.Version, Local: gone.Local, Words: e.Words, Crashed: !e.Asked || gone.Hung != ""}
	s.Unrenderable = nil
	s.endLetThrough()
	if gone.EverHealthy && (e.Asked || e.Code == 0) {
		s.WithoutStateFile = nil // it ran, and has written a file of its own: what a next kubelet refuses is that one
	}
	switch {
	case e.Asked || s.Frozen || s.Stopping:
		if trial {
			s.Trial.refund()
		}
		return
	case e.Code == 0 && gone.Hung == "" && !s.countCleanExit(s.Now, &e): // SIGTERM from another process: restarted at once, counts nothing
		if trial {
			s.Trial.refund()
		}
		if s.Exit = ""; !gone.EverHealthy { // but a command line that makes it exit at once must not spin
			s.NextStart, s.NextOf = s.Now+e.Delay, gone.Version
		}
		return
	}
	if content := s.contentOf(gone.Version); s.blamesStateFile(e, gone, content) {
		if trial {
			s.Trial.refund()
		}
		retryWithoutStateFile(s, e, gone, content)
		return
	}
	s.Exit, s.ExitCode = e.Words, e.Code
	s.NextStart, s.NextOf = s.Now+e.Delay, gone.Version
	if e.RuntimeDown {
		s.Environment = e.Words
		if trial {
			s.Trial.refund()
		}
		countControl(s, gone, control)
		return
	}
	if e.LockDenied { // by the host, whatever the configuration
		if trial {
			s.Trial.refund()
		}
		return
	}
	if gone.Version == nil && !gone.EverHealthy {
		s.LocalFailures++
	}
	life := s.Now - gone.Started
	switch {
	case trial:
		failStart(s, gone, life, e)
	case control:
		s.excuse(s.Assigned)
		countExit(s, gone, life, e)
	default:
		countExit(s, gone, life, e)
	}
	countControl(s, gone, control)
}

// countControl tries what is excused again where local fails time after time, and was never healthy: the other may run where local never
// does, and the health of local is not waited for. They take turns then. It does not matter what ended local: its own file may name a
// container runtime that is not there.
func countControl(s *State, gone Child, control bool) {
	if gone.Version != nil || gone.EverHealthy {
		return
	}
	if s.ControlsFailed++; s.ControlsFailed%max(s.TrialFailures, 1) > 0 {
		return
	}
	if control {
		s.excuse(s.Assigned)
	}
	s.takeUpExcused()
}

// failStart closes the open start as a failure; the last one allowed ends the trial.
func failStart(s *State, gone Child, life time.Duration, e ChildExited) {
	s.Trial.Open = false
	s.Trial.Longest = max(s.Trial.Longest, Span(life))
	if int(s.Trial.Tries) >= s.TrialFailures {
		failTrialOf(s, gone.Version, Suspect{Cause: Exited, Words: fmt.Sprintf("exited %d times in its trial: %s", s.Trial.Tries, e.Words),
			Excused: e.OutOfInotify, Times: s.Trial.Tries, ExitCode: e.Code})
	}
}

// countExit keeps the count of exits outside a trial; too many of them try the next fallback (rule 9).
func countExit(s *State, gone Child, life time.Duration, e ChildExited) {
	recent := without(s.Exits, func(at time.Duration) bool { return s.Now-at > exitWindow })
	s.Exits = append(recent, s.Now)
	if gone.Version == nil || len(s.Exits) < exitLimit {
		return
	}
	exits := len(s.Exits)
	s.Exits = nil
	blame(s, Suspect{Version: *gone.Version, Kubelet: gone.Kubelet, Cause: Exited, Life: Span(life), Times: Count(exits), ExitCode: e.Code,
		Words: fmt.Sprintf("exited %d times in %s: %s", exits, exitWindow, e.Words), Excused: e.OutOfInotify})
}
