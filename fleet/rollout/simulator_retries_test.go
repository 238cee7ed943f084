package rollout

import (
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// checkRetries: the attempt rises by one for a word that was never heard, and for nothing else, and a stop that holds against another revision
// than the target holds then, too.
func (s *sim) checkRetries(v *view, p *Pool) {
	status, old := v.status(p), &p.Status
	if old.Target == nil || status.Target == nil {
		return
	}
	word := p.Spec.Rollout.Retry
	fresh := word != "" && !slices.Contains(old.Retries, word)
	switch rise := status.Target.Attempt - old.Target.Attempt; {
	case rise != 0 && (rise != 1 || !fresh):
		s.breaks(4, "the attempt of %s goes from %d to %d for the word %q of %q", p.Name, old.Target.Attempt, status.Target.Attempt, word, old.Retries)
	case rise != 0 && !slices.Contains(status.Retries, word):
		s.breaks(4, "%s forgets the word %q", p.Name, word)
	}
	for _, stop := range old.Stops {
		if stop.Hash != targetHash(status.Target.RevisionName) && stop.Attempt >= old.Target.Attempt && attemptOf(status.Stops, stop.Hash) < status.Target.Attempt {
			s.breaks(4, "the stop of %s does not hold any more, for another revision is tried again", stop.Hash)
		}
	}
}

// attemptOf is up to which attempt a revision is stopped; 0 where it is not.
func attemptOf(stops []v1alpha1.Stop, hash string) int64 {
	for _, stop := range stops {
		if stop.Hash == hash {
			return stop.Attempt
		}
	}
	return 0
}
