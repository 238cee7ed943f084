//go:build linux

package pools

import (
	"context"
	"fmt"
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A Stage is one revision, from the change of the pool until all nodes have proven it.
type Stage struct {
	Took      time.Duration
	Processor time.Duration // of the leader; of one that was started again meanwhile since then
	Busy      float64       // share of this machine's processors that was in use, 0 to 1

	Assigned    int           // Nodes that were assigned to, by PATCHes
	Canaries    int           // of them, that came first
	Unnoted     int           // of them: the API server was killed before it noted that
	Conflicts   int           // PATCHes that were answered with 409: the Node had changed, and nothing was written
	Failed      int           // PATCHes that were answered with anything else but 200
	Sending     time.Duration // from the first assignment after the canaries' to the last
	Busiest     int           // assignments in the second with the most
	Words       int           // writes of their own status by nodes
	WordsMost   int           // in the second with the most
	Pool        int           // writes of the pool's status
	Unavailable int           // at once, at most

	// What must not be.
	Behind    []string // Nodes that do not run the revision
	Twice     []string // Nodes that were assigned to more than once
	Exceeded  []string // waves that began before all nodes of the one before had proven it
	OverLimit []string // assignments when too many were unavailable
}

// limits are what a stage has to hold to.
type limits struct {
	waves       []int // how many nodes in all, at the end of each
	unavailable int
	settle      time.Duration
}

// stage changes the pool, and measures until it is completed.
func (r *rolling) stage(ctx context.Context, s *Stage, l limits, change func(context.Context) error) error {
	if err := r.noted.readOn(); err != nil {
		return err
	}
	began := time.Now()
	leader := r.first
	before, err := cluster.UsageOf(leader.PID())
	if err != nil {
		return err
	}
	allBefore, busyBefore, err := cluster.MachineTime()
	if err != nil {
		return err
	}
	if err := change(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, v1alpha1.ConditionReady, rollout.ReasonCompleted); err != nil {
		return err
	}
	s.Took = time.Since(began)
	all, busy, err := cluster.MachineTime()
	if err != nil {
		return err
	}
	s.Busy = float64(busy-busyBefore) / float64(max(1, all-allBefore))
	pause(ctx, tail)
	after, err := cluster.UsageOf(r.first.PID())
	if err != nil {
		return err
	}
	if s.Processor = after.Processor; r.first == leader {
		s.Processor -= before.Processor
	}
	if s.Behind, err = r.behind(ctx); err != nil {
		return err
	}
	if err := r.noted.readOn(); err != nil {
		return err
	}
	return r.examine(s, l, began)
}

// behind names the Nodes that do not say that they have proven what is assigned, or are assigned something else than most are.
func (r *rolling) behind(ctx context.Context) (names []string, err error) {
	sources := map[string]int{}
	names, err = r.unlike(ctx, func(n *rollout.Node) bool {
		sources[n.Source]++
		return n.Reason == nodev1.ReasonActive && n.Observed == n.Source && n.Active == n.Source && n.Good == n.Source && n.RetryHeard == n.Retry
	})
	if len(sources) > 1 {
		names = append(names, fmt.Sprintf("there are %d assignments: %v", len(sources), sources))
	}
	return names, err
}

// examine counts what was noted since the begin, and holds it to the limits.
func (r *rolling) examine(s *Stage, l limits, began time.Time) error {
	words := since(r.noted.words, began)
	s.Words, s.WordsMost, s.Pool = len(words), busiest(words), len(since(r.noted.pools, began))
	told, err := r.told(began)
	if err != nil {
		return err
	}
	sent := r.assigned(s, since(r.noted.assignments, began), told)
	s.Assigned, s.Busiest = len(sent), busiest(sent)
	if s.Assigned > cohorts {
		s.Sending, s.Canaries = sent[len(sent)-1].received.Sub(sent[cohorts].received), cohorts
	}
	s.checkWaves(sent, told, l.waves)
	s.checkUnavailable(sent, told, l)
	return nil
}

// assigned are the assignments that were written, one for each Node, in their order. Of one over which the API server was killed there is no
// note: it came before that.
func (r *rolling) assigned(s *Stage, patches []request, told map[string]telling) (sent []request) {
	seen := map[string]bool{}
	for _, p := range patches {
		switch {
		case p.code == conflict:
			s.Conflicts++
		case !p.done():
			s.Failed++
		case seen[p.name]:
			s.Twice = append(s.Twice, p.name)
		default:
			seen[p.name] = true
			sent = append(sent, p)
		}
	}
	for name := range told {
		if !seen[name] {
			s.Unnoted++
			sent = append(sent, request{name: name, received: r.killed})
		}
	}
	slices.SortFunc(sent, func(a, b request) int { return a.received.Compare(b.received) })
	return sent
}

// checkWaves: a wave begins after all nodes of the wave before have told that they have proven the revision.
func (s *Stage) checkWaves(sent []request, told map[string]telling, waves []int) {
	wave, proven := 0, time.Time{}
	for i, p := range sent {
		if wave < len(waves) && i == waves[wave] {
			if wave++; p.received.Before(proven) {
				s.Exceeded = append(s.Exceeded, fmt.Sprintf("wave %d began %v before the last node of the one before had proven it", wave+1, proven.Sub(p.received)))
			}
		}
		if at := told[p.name].proven; at.After(proven) {
			proven = at
		}
	}
}

// checkUnavailable: a node is unavailable from its assignment until it has run that for the settle time.
func (s *Stage) checkUnavailable(sent []request, told map[string]telling, l limits) {
	for i, p := range sent {
		away := 0
		for _, before := range sent[:i+1] {
			if runs := told[before.name].runs; runs.IsZero() || runs.Add(l.settle).After(p.received) {
				away++
			}
		}
		s.Unavailable = max(s.Unavailable, away)
		if away > l.unavailable {
			s.OverLimit = append(s.OverLimit, fmt.Sprintf("%s was assigned to while %d were unavailable", p.name, away))
		}
	}
}
