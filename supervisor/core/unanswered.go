package core

import (
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// A pre-flight that was killed, or ran out of time, has given no answer yet (rule 19). It is asked again with more time, and the change
// that asked for it waits until then.

// Unanswered is a pre-flight that gave no answer.
type Unanswered struct {
	Content string
	Kubelet kubeletconfig.Identity
	Words   string
	Since   time.Duration // of the first try
	At      time.Duration // of the newest
	Tries   int
}

// triesWithoutHold is how often a kubelet is asked before its change is made without a verdict where nothing holds changes up: until it had
// all the time that a pre-flight gets.
const triesWithoutHold = 5

// askAgain reports whether it is time to ask again.
func askAgain(s *State, u *Unanswered) bool {
	return s.Now >= askAgainAt(s, u)
}

func askAgainAt(s *State, u *Unanswered) time.Duration {
	return u.At + jitter(s.NodeUID, askAgainAfter(u.Tries), u.At)
}
