package rollout

import (
	"slices"
	"time"
)

const quotaWords = "exceeded quota: small"

// refuseObjects lets the API server take no new revision and no new variant for a while, or no status of a pool.
func (s *sim) refuseObjects() {
	until := s.now + time.Duration(s.random.IntN(900))*time.Second
	switch s.random.IntN(4) {
	case 0:
		s.mute, s.muted = "a", until
	case 1:
		s.mute, s.muted = "b", until
	default:
		s.quota = until
	}
}

// plan decides until the API server takes all that the plan needs.
func (c *controller) plan(w *World) Plan {
	w.RefusedRevisions, w.RefusedVariants = map[string]string{}, map[string]string{}
	for {
		plan := c.decide(*w)
		if !c.s.refused(w, &plan) {
			return plan
		}
	}
}

// refused tells the world what of the plan is not taken. Whether it did not know.
func (s *sim) refused(w *World, plan *Plan) (more bool) {
	if s.now >= s.quota {
		return false
	}
	for i := range plan.Revisions {
		r := &plan.Revisions[i]
		taken := slices.ContainsFunc(s.api.revisions[r.Pool], func(k Revision) bool { return k.Hash == r.Hash })
		if name := r.ObjectName(); !taken && w.RefusedRevisions[name] == "" {
			w.RefusedRevisions[name], more = quotaWords, true
		}
	}
	for _, v := range plan.Variants {
		if _, taken := s.api.payloads[sourceOf(v.Name)]; !taken && w.RefusedVariants[v.Name] == "" {
			w.RefusedVariants[v.Name], more = quotaWords, true
		}
	}
	return more
}

// isMuted: the status of the pool is not taken, or was not a moment ago.
func (c *controller) isMuted(w *World, pool string) bool {
	if w.Mute[pool] {
		return true
	}
	if c.s.mute != pool || c.s.now >= c.s.muted {
		return false
	}
	c.mute[pool] = c.s.now + 10*time.Second
	return true
}
