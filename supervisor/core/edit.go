package core

import (
	"fmt"
	"hash/fnv"
	"time"
)

// One ConfigMap may be edited again and again, by a person or by a tool that runs wild, and each node that is assigned it would prove
// and publish each edit. So an edit is taken once it has settled (rule 15).
const (
	editQuiet  = 2 * time.Second  // without another edit
	editPeriod = 10 * time.Second // between two edits that are taken, and the most that the newest one waits
)

// expectQuiet decides when the edit that has just come is taken.
func expectQuiet(s *State) {
	if s.Edit == nil {
		s.SettlesBy = s.Now + editPeriod
	}
	quiet := s.Now + editQuiet
	if s.Sync != nil || !s.Child.Healthy || s.Assigned != nil && !usable(s, s.Assigned) {
		quiet = s.Now // it may be what fixes it
	}
	s.SettlesAt = min(max(quiet, s.NextEdit), s.SettlesBy)
}

// takeEdit takes the edit that has settled.
func takeEdit(s *State) {
	if s.Edit != nil && s.Now >= s.SettlesAt {
		s.NextEdit = s.Now + editPeriod
		expect(s, *s.Edit, s.Now-s.EditHeard)
	}
}

// spread returns how long a node waits with an edit, so that not every node that shares the ConfigMap restarts its kubelet at once.
func spread(nodeUID, resourceVersion string, over time.Duration) time.Duration {
	if over <= 0 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%s", nodeUID, resourceVersion)
	return time.Duration(hash.Sum64() % uint64(over))
}
