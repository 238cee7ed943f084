package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// everySeen is a core that remembers something else.
func everySeen(change func(*Seen)) func(*sim) {
	return world(func(w *World) {
		w.Seen = maps.Clone(w.Seen)
		for uid, seen := range w.Seen {
			change(&seen)
			w.Seen[uid] = seen
		}
	})
}

// triedIn is how many nodes of a version have run what the pool gives.
func (s *script) triedIn(minor string) map[string]bool {
	tried := map[string]bool{}
	for _, m := range s.api.machines {
		if m.Minor == minor && len(m.begun) > 0 && m.natureOf("") == dying {
			tried[m.Name] = true
		}
	}
	return tried
}

func (s *script) newer(kind nature) {
	for range 10 {
		s.node(func(m *machine) { m.Minor = "v1.37"; m.natureOf = func(string) nature { return kind } })
	}
}

func newCohort(mistaken func(*sim)) string {
	s := newScript(10, string(good), nil).mistaken(mistaken)
	s.until(s.completed, 6*time.Hour)
	s.newer(dying)
	tried := map[string]bool{}
	s.each = func(s *script) {
		maps.Copy(tried, s.triedIn("v1.37"))
		for _, uid := range slices.Clone(s.api.names) {
			if s.api.machines[uid].Reason == nodev1.ReasonRejected {
				s.api.remove(uid)
			}
		}
	}
	if s.run(2 * time.Hour); len(tried) > 1 {
		return fmt.Sprintf("%d of 10 nodes died of it", len(tried))
	}
	return ""
}

func upgraded(mistaken func(*sim)) string {
	s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("5") }).mistaken(mistaken)
	s.until(s.completed, 6*time.Hour)
	s.run(time.Minute)
	m := s.api.machines[s.api.names[0]]
	m.Minor, m.dirty = "v1.37", true
	s.newer(dying)
	s.run(time.Minute)
	m.Ready, m.dirty = false, true
	s.run(time.Hour)
	if tried := s.triedIn("v1.37"); len(tried) > 1 {
		return fmt.Sprintf("%d of 10 nodes died of it", len(tried))
	}
	return ""
}

func flapping(mistaken func(*sim)) string {
	s := newScript(20, string(good), nil).mistaken(mistaken)
	var flaps *machine
	next := time.Duration(0)
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if flaps == nil && m.Reason == nodev1.ReasonInTrial {
				flaps = m
			}
		}
		if flaps != nil && s.now >= next {
			flaps.Ready, flaps.dirty = !flaps.Ready, true
			if next = s.now + 4*time.Minute; flaps.Ready {
				next = s.now + 20*time.Second
			}
		}
	}
	if s.run(time.Hour); !s.stopped() {
		return "it is not stopped"
	}
	return ""
}

func labelsFlap(mistaken func(*sim)) string {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = []v1alpha1.Layer{gpuLayer(`{"maxPods":60}`)} }).mistaken(mistaken)
	for range 20 {
		s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"} })
	}
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[0] = gpuLayer(`{"maxPods":61}`) })
	s.run(5 * time.Second)
	for _, m := range s.api.machines {
		s.api.relabel(m, "gpu", "")
	}
	if s.run(4 * time.Minute); s.with(nodev1.Local) > 0 {
		return fmt.Sprintf("%d nodes go to their own configuration", s.with(nodev1.Local))
	}
	return ""
}
