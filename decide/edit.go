package decide

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

// expectQuiet says when the assignment that has just come is taken, if it is an edit; whether it comes in the place of one that waits.
func (s *State) expectQuiet(replaces bool) {
	if !replaces {
		s.SettlesBy = s.Now + editPeriod
	}
	quiet := s.Now + editQuiet
	if s.Sync != nil || !s.Child.Healthy || s.Assigned != nil && !s.usable(s.Assigned) {
		quiet = s.Now // it may be what mends it
	}
	s.SettlesAt = min(max(quiet, s.NextEdit), s.SettlesBy)
}

// tookEdit: one that came while this one was being written has its turn after it.
func (s *State) tookEdit() {
	s.NextEdit = s.Now + editPeriod
	s.SettlesAt, s.SettlesBy = s.NextEdit, s.NextEdit
}

// settling tells whether Pending is an edit that waits for quiet. Until it is taken it is as if it had not been heard of. Another assignment waits for
// nothing.
func (s *State) settling() bool {
	p := s.Pending
	return s.EditSpread > 0 && s.Assigned != nil && p.Text == s.Text && p.NodeUID == s.NodeUID && !s.reached(s.SettlesAt)
}

// spread is how long a node waits with an edit, so that not every node that shares the ConfigMap restarts its kubelet at once.
func spread(nodeUID, resourceVersion string, over time.Duration) time.Duration {
	if over <= 0 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%s", nodeUID, resourceVersion)
	return time.Duration(hash.Sum64() % uint64(over))
}
