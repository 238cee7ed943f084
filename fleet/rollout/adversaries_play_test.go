package rollout

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func remediation(aside func(*script, *machine)) func(func(*sim)) string {
	return func(mistaken func(*sim)) string {
		s := newScript(12, string(dying), nil).mistaken(mistaken)
		s.each = func(s *script) {
			for _, m := range s.api.machines {
				if m.Reason == nodev1.ReasonRolledBack || m.Reason == nodev1.ReasonRejected {
					aside(s, m)
				}
			}
		}
		s.run(time.Hour)
		if len(s.ran) > 1 || !s.stopped() {
			return fmt.Sprintf("%d of 12 nodes ran the deadly revision", len(s.ran))
		}
		return ""
	}
}

// forgetful is a core that forgets a node as soon as it is gone.
func forgetful(s *sim) {
	world(func(w *World) {
		there := map[types.UID]bool{}
		for i := range w.Nodes {
			there[w.Nodes[i].UID] = true
		}
		w.Gone, w.Seen = nil, maps.Clone(w.Seen)
		maps.DeleteFunc(w.Seen, func(uid types.UID, _ Seen) bool { return !there[uid] })
	})(s)
}

func autohealer(mistaken func(*sim)) string {
	s := newScript(12, string(unready), nil).mistaken(mistaken)
	since := map[types.UID]time.Duration{}
	s.each = func(s *script) {
		for uid, m := range maps.Clone(s.api.machines) {
			if m.Ready {
				since[uid] = s.now
			}
			if s.now-since[uid] > time.Minute {
				s.api.remove(uid)
				s.node(nil)
			}
		}
	}
	s.run(2 * time.Hour)
	if len(s.ran) > 1 || !s.stopped() {
		return fmt.Sprintf("%d nodes burned", len(s.ran))
	}
	return ""
}

// waitingIsNothing: who waits for its pods costs nothing.
func waitingIsNothing(w *World) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Reason == nodev1.ReasonWouldDisrupt {
			n.Labels = map[string]string{"pool": "a", RolloutLabel: "hold"}
			n.Mark, n.Retry, n.Reason = Mark{}, Retry{}, nodev1.ReasonLocal
		}
	}
}

func podsEnd(mistaken func(*sim)) string {
	s := newScript(50, string(good), nil).mistaken(mistaken)
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if m.Source != "" && m.heardSource == m.Source && m.Reason != nodev1.ReasonWouldDisrupt && m.Reason != nodev1.ReasonActive {
				m.says(nodev1.ReasonWouldDisrupt)
				m.next, m.dirty = nil, true
			}
		}
	}
	s.run(20 * time.Minute)
	s.each = nil
	for _, m := range s.api.machines {
		if m.Reason == nodev1.ReasonWouldDisrupt {
			m.says(nodev1.ReasonApplying)
			m.dirty = true
			m.then(s.now+3*time.Second, func(m *machine) { m.onTrial(m.at, m.Source) })
		}
	}
	s.run(3 * time.Second)
	if s.most > 5 {
		return fmt.Sprintf("%d kubelets restarted in one tick", s.most)
	}
	if !s.until(s.completed, 3*time.Hour) {
		return "the rollout does not end when the pods have"
	}
	return ""
}

// backIsForward: a revision that was completed is judged as any other, and every node that is not Ready is its fault.
func backIsForward(w *World) {
	for i := range w.Pools {
		p := &w.Pools[i]
		p.Status.Revisions = nil
		if p.Status.Stable != nil {
			p.Status.Stable = nil
		}
	}
	w.Seen = maps.Clone(w.Seen)
	for uid, seen := range w.Seen {
		seen.WasReady = true
		w.Seen[uid] = seen
	}
}

func undone(mistaken func(*sim)) string {
	s := newScript(12, string(good), nil)
	if !s.until(s.completed, 3*time.Hour) {
		return "the first revision is not completed"
	}
	stable := *s.pool().Status.Stable
	s.mistaken(mistaken)
	s.layer(string(unready))
	s.run(2 * time.Minute) // the canary is NotReady, and stays so
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if len(m.begun) > 1 && m.Ready {
				m.Ready, m.dirty = false, true
			}
		}
	}
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = pinned(stable.Revision) })
	s.run(10 * time.Minute)
	for _, stop := range s.pool().Status.Stops {
		if stop.Hash == stable.Hash {
			return "the stable revision was stopped"
		}
	}
	for _, m := range s.api.machines {
		if m.Retry.Hash != stable.Hash {
			return m.Name + " was not taken back"
		}
	}
	if p := s.pool().Status; p.Target.Hash != stable.Hash || p.Stable.Hash != stable.Hash {
		return "the stable revision is not stable any more"
	}
	return ""
}

func widened(mistaken func(*sim)) string {
	s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint = "" })
	if !s.until(s.completed, 3*time.Hour) {
		return "the first revision is not completed"
	}
	for range 100 {
		s.node(func(m *machine) { m.Labels = map[string]string{"pool": "other", "wide": "true"} })
	}
	s.mistaken(mistaken)
	s.most = 0
	for _, m := range s.api.machines {
		s.api.relabel(m, "pool", "a")
		s.api.stamp(m)
	}
	s.until(func() bool { return s.most > 11 || s.pool().Status.Nodes.Proven == 110 }, 2*time.Hour)
	if s.most > 11 {
		return fmt.Sprintf("%d of 110 nodes changed at once", s.most)
	}
	if s.pool().Status.Nodes.Proven != 110 {
		return fmt.Sprintf("%d of 110 nodes have the revision", s.pool().Status.Nodes.Proven)
	}
	return ""
}

func newVersion(mistaken func(*sim)) string {
	s := newScript(20, string(good), nil).mistaken(mistaken)
	if !s.until(func() bool { w := s.pool().Status.Wave; return w != nil && w.Number == 3 }, 2*time.Hour) {
		return "wave 3 is never reached"
	}
	var fresh []*machine
	for range 8 {
		fresh = append(fresh, s.node(func(m *machine) {
			m.Minor = "v1.37"
			m.natureOf = func(string) nature { return dying }
		}))
	}
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.MaxUnavailable = amountOf("100%") })
	s.run(time.Hour)
	died := 0
	for _, m := range fresh {
		if len(m.begun) > 0 {
			died++
		}
	}
	if died > 1 || !s.stopped() {
		return fmt.Sprintf("%d nodes of the new version died of it", died)
	}
	return ""
}

func heardBefore(mistaken func(*sim)) string {
	s := newScript(12, string(refused), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Retry = "one" }).mistaken(mistaken)
	s.run(10 * time.Minute)
	if !s.stopped() {
		return "it is not stopped"
	}
	before := s.writes
	for _, word := range []string{"two", "", "one", "two"} {
		s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Retry = word })
		s.run(10 * time.Minute)
	}
	if s.writes != before+1 {
		return fmt.Sprintf("the stopped revision is assigned %d times more for one word", s.writes-before)
	}
	return ""
}

func stalled(mistaken func(*sim)) string {
	s := newScript(12, string(refused), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Waves = wavesOf("3", "100%") }).mistaken(mistaken)
	old := s.controllers[0]
	old.lead()
	old.list()
	old.reconcile(0, 4) // frozen just before a PATCH
	if len(old.stuck) == 0 {
		return "it is not frozen"
	}
	for range 30 {
		s.node(nil) // so that the new leader chooses another canary
	}
	s.now += leaseTime + time.Second
	s.pass(0)
	other := s.controllers[1]
	for range 60 {
		s.pass(time.Second)
		other.lead()
		other.hear(true)
		other.reconcile(0, 0)
	}
	if !s.stopped() {
		return "the new leader has not stopped it"
	}
	before := s.writes
	old.thaw()
	if s.writes != before {
		return "a write arrived after the stop"
	}
	return ""
}

func patchRefused(mistaken func(*sim)) string {
	s := newScript(12, string(good), nil).mistaken(mistaken)
	s.refuses["n003"] = true
	if !s.until(s.completed, 2*time.Hour) || s.pool().Status.Nodes.Proven != 11 {
		return fmt.Sprintf("%d of 11 nodes have proven the revision", s.pool().Status.Nodes.Proven)
	}
	return ""
}

func gpuJoins(mistaken func(*sim)) string {
	gpu := func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"} }
	s := newScript(8, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
	s.node(gpu)
	if !s.until(s.completed, 2*time.Hour) {
		return "the first revision is not completed"
	}
	var has string
	for _, m := range s.api.machines {
		if m.Labels["gpu"] != "" {
			has = m.Source
		}
	}
	s.mistaken(mistaken)
	fresh := s.node(func(m *machine) { gpu(m); m.Ready, m.Created = false, s.wall() })
	s.run(10 * time.Second)
	if fresh.Source != has {
		return fmt.Sprintf("it gets %s, and the others have %s", fresh.Source, has)
	}
	if s.with(has) != 2 || !s.completed() {
		return "the others are moved for it"
	}
	return ""
}
