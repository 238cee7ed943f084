package rollout

import (
	"maps"
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
		if kept := s.api.revisions["a"]; len(kept) > 0 && s.random.IntN(2) == 0 { // and somebody deletes one
			at := s.random.IntN(len(kept))
			s.api.revisions["a"] = slices.Delete(slices.Clone(kept), at, at+1)
			s.kept++
		}
	}
}

// refusals are what was refused to a process, by name, as far as it is needed.
type refusals struct{ revisions, variants map[string]string }

// plan decides until all that the plan needs was taken or refused.
func (c *controller) plan(w *World) Plan {
	w.RefusedRevisions, w.RefusedVariants = map[string]string{}, map[string]string{}
	maps.Copy(w.RefusedRevisions, c.refused.revisions)
	maps.Copy(w.RefusedVariants, c.refused.variants)
	tried := map[string]bool{}
	for {
		plan := c.decide(*w)
		again, needed := false, refusals{map[string]string{}, map[string]string{}}
		for i := range plan.Revisions {
			r := &plan.Revisions[i]
			taken := slices.ContainsFunc(c.s.api.revisions[r.Pool], func(k Revision) bool { return k.Hash == r.Hash && !k.Tampered })
			again = c.tries(r.ObjectName(), taken, tried, w.RefusedRevisions, needed.revisions) || again
		}
		for _, v := range plan.Variants {
			_, taken := c.s.api.payloads[sourceOf(v.Name)]
			again = c.tries(v.Name, taken, tried, w.RefusedVariants, needed.variants) || again
		}
		if !again {
			c.refused = needed
			return plan
		}
	}
}

// tries asks the API server for an object, once. What was refused before is not tried each time. Whether the world is another one with that.
func (c *controller) tries(name string, taken bool, tried map[string]bool, refused, needed map[string]string) (news bool) {
	was := refused[name] != ""
	if !tried[name] && (!was || c.s.random.IntN(2) == 0) {
		tried[name] = true
		if taken = taken || c.s.now >= c.s.quota; taken {
			delete(refused, name)
		} else {
			refused[name] = quotaWords
		}
	}
	if refused[name] != "" {
		needed[name] = quotaWords
	}
	return was != (refused[name] != "")
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
