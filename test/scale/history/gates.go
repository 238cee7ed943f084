package history

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// The defaults of a pool, as docs/reference/pool.md has them.
var (
	usualUnavailable = intstr.FromString("10%")
	usualWaves       = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: intstr.FromString("10%")}, {Nodes: intstr.FromString("50%")}, {Nodes: intstr.FromString("100%")}}
)

// lately are the versions of the pool that the controller may have gone by: it has heard of what was answered Lag ago, and its own status
// may be written a little after its PATCH.
func (c *checker) lately(w *Write) (versions []*Write) {
	all := c.pools[w.Node.Mark.Pool]
	for i, p := range all {
		over := i+1 < len(all) && all[i+1].Answered.Add(c.Lag).Before(w.Received)
		if !over && p.Received.Before(w.Received.Add(c.Lag)) && p.Version > 0 {
			versions = append(versions, p)
		}
	}
	return versions
}

// any says whether something is so in any of them.
func (c *checker) any(w *Write, is func(*Write) bool) bool {
	for _, p := range c.lately(w) {
		if is(p) {
			return true
		}
	}
	return false
}

func selects(p *Write, n *rollout.Node) bool {
	selector, err := metav1.LabelSelectorAsSelector(&p.Pool.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// gates: when a member may be moved to what its pool tries.
func (c *checker) gates(w *Write, before state) {
	tries := func(p *Write) bool {
		s := &p.Pool.Status
		return s.Target != nil && s.Target.Hash == w.Node.Retry.Hash && (s.Stable == nil || s.Stable.Hash != s.Target.Hash)
	}
	if w.Node.Source == before.Source && w.Node.Retry == before.Retry || !c.any(w, tries) || c.any(w, func(p *Write) bool {
		return p.Pool.Status.Stable != nil && p.Pool.Status.Stable.Hash == w.Node.Retry.Hash
	}) {
		return // it is taken back, or joins, or it is not known what the pool tries
	}
	switch {
	case !c.any(w, func(p *Write) bool { return !p.Pool.Spec.Rollout.Paused }):
		c.breach("paused", w, "the pool is paused")
	case !c.any(w, func(p *Write) bool { return !stopped(p, w.Node.Retry) }):
		c.breach("stopped", w, "%s is stopped", w.Node.Retry)
	}
	c.unavailable(w, before)
	c.wave(w)
}

func stopped(p *Write, retry rollout.Retry) bool {
	for _, stop := range p.Pool.Status.Stops {
		if stop.Hash == retry.Hash && retry.Attempt <= stop.Attempt {
			return true
		}
	}
	return false
}

// unavailable: so many may be away at once. Those count whose kubelet the pool itself has sent on its way; the controller counts more.
func (c *checker) unavailable(w *Write, before state) {
	if !before.Ready || before.Cordoned || before.sent || changing(before.Node) {
		return // it is away already
	}
	away, members := 1, 0
	for name, n := range c.nodes {
		if !c.any(w, func(p *Write) bool { return selects(p, n.Node) }) {
			continue
		}
		if members++; name == w.Name || n.Mark.Pool != w.Node.Mark.Pool || c.lateNews(w, n) {
			continue
		}
		if n.sent || changing(n.Node) && n.answered.Add(c.Lag).Before(w.Received) {
			away++
		}
	}
	c.Unavailable = max(c.Unavailable, away)
	if !c.any(w, func(p *Write) bool {
		return away <= amount(p.Pool.Spec.Rollout.MaxUnavailable, usualUnavailable, members)
	}) {
		c.breach("maxUnavailable", w, "%d of %d are away then", away, members)
	}
}

// lateNews: a person has changed it just now, so the controller may count it in another way.
func (c *checker) lateNews(w *Write, n state) bool { return n.third.Add(c.Lag).After(w.Received) }

// changing: by its own words its kubelet does not run yet what was assigned, or may be restarted at any time.
func changing(n *rollout.Node) bool {
	return n.Mark.Records(n.Source) && n.Source != "" && (n.Observed != n.Source || n.Reason == "Applying" || n.Reason == "RolledBack")
}

func amount(of *intstr.IntOrString, usual intstr.IntOrString, members int) int {
	if of == nil {
		of = &usual
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, members, true)
	if err != nil {
		return members
	}
	if of.Type == intstr.String && n == 0 && of.StrVal != "0%" {
		return 1
	}
	return n
}

// wave: so many may have been sent to. Each kind of nodes has one of its own in the first.
func (c *checker) wave(w *Write) {
	sent, members := 1, 0
	kinds := map[string]bool{}
	for name, n := range c.nodes {
		if !c.any(w, func(p *Write) bool { return selects(p, n.Node) }) {
			continue
		}
		members++
		kinds[c.kind(n.Node)] = true
		aside := n.Cordoned || n.Labels[rollout.RolloutLabel] == "hold" || n.Labels[rollout.PoolLabel] == "none" || !n.Mark.Records(n.Source)
		if name != w.Name && n.Retry == w.Node.Retry && !aside && !rollout.IsVerdict(n.Reason) && !c.lateNews(w, n) {
			sent++
		}
	}
	allows := func(p *Write) bool {
		s := &p.Pool.Status
		if s.Target == nil || s.Target.Hash != w.Node.Retry.Hash {
			return false
		}
		if s.Wave == nil || completedBefore(p, s.Target.Hash) {
			return true
		}
		waves := p.Pool.Spec.Rollout.Waves
		if len(waves) == 0 {
			waves = usualWaves
		}
		goal := len(kinds)
		for i := range waves[:min(int(s.Wave.Number), len(waves))] {
			goal = max(goal, amount(&waves[i].Nodes, waves[i].Nodes, members))
		}
		return sent <= goal
	}
	if !c.any(w, allows) {
		c.breach("waves", w, "%d of %d have been sent %s then", sent, members, w.Node.Retry)
	}
}

// kind is what the first wave has one node of.
func (c *checker) kind(n *rollout.Node) string {
	kind := []string{n.Minor, n.Arch}
	for _, label := range c.KindLabels {
		kind = append(kind, n.Labels[label])
	}
	return strings.Join(kind, " ")
}

func completedBefore(p *Write, hash string) bool {
	for _, r := range p.Pool.Status.Revisions {
		if r.Hash == hash && r.Result == v1alpha1.ResultCompleted {
			return true
		}
	}
	return false
}
