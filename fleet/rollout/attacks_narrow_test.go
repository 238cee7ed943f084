package rollout

import (
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func TestCompletedByNobody(t *testing.T) {
	for name, aside := range map[string]func(*script, *machine, bool){
		"held": func(s *script, m *machine, is bool) {
			s.api.relabel(m, RolloutLabel, map[bool]string{true: "hold"}[is])
		},
		"cordoned": func(s *script, m *machine, is bool) { m.Cordoned, m.dirty = is, true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
			for i := range 40 {
				s.node(func(m *machine) {
					if i < 8 {
						m.Labels = map[string]string{"pool": "a", "gpu": "true"}
					}
				})
			}
			s.until(s.completed, 6*time.Hour)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
				spec.Layers[1] = gpuLayer(`{"maxPods":61,"logging":{"format":"dying"}}`)
				spec.Rollout.Waves = soaked("1")
			})
			for _, uid := range s.api.names[:8] {
				aside(s, s.api.machines[uid], true)
			}
			s.run(30 * time.Second)
			hash := s.pool().Status.Target.Hash
			if s.completed() {
				t.Errorf("half a minute later it is completed, and %d have it: %s", s.having(hash), s.says())
			}
			var fresh []*machine
			for range 8 { // an autoscaler
				fresh = append(fresh, s.node(func(m *machine) {
					m.Labels = map[string]string{"pool": "a", "gpu": "true"}
					m.Created = s.wall()
				}))
			}
			s.run(10 * time.Minute)
			died := 0
			for _, m := range fresh {
				if m.Retry.Hash == hash && len(m.begun) > 0 {
					died++
				}
			}
			if died > 1 {
				t.Errorf("%d new nodes died of what nobody has run before: %s", died, s.says())
			}
		})
	}
}

func TestCompletedInTheMiddle(t *testing.T) {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
	for i := range 40 {
		s.node(func(m *machine) {
			if i < 8 {
				m.Labels = map[string]string{"pool": "a", "gpu": "true"}
			}
		})
	}
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
		spec.Layers[1] = gpuLayer(`{"maxPods":61}`)
		spec.Rollout.Waves = soaked("1")
	})
	s.run(20 * time.Second)
	for _, uid := range s.api.names[:8] {
		s.api.machines[uid].Cordoned, s.api.machines[uid].dirty = true, true
	}
	s.run(10 * time.Second)
	for _, uid := range s.api.names[:8] {
		s.api.machines[uid].Cordoned, s.api.machines[uid].dirty = false, true
	}
	hash := s.pool().Status.Target.Hash
	s.run(time.Hour)
	if n := s.having(hash); n > 1 || s.completed() {
		t.Errorf("after an hour of a soak of two %d of 8 have it, completed %v: %s", n, s.completed(), s.says())
	}
}

func TestTouchedAreNotReady(t *testing.T) {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
	for i := range 40 {
		s.node(func(m *machine) {
			if i < 1 {
				m.Labels = map[string]string{"pool": "a", "gpu": "true"}
			}
		})
	}
	s.until(s.completed, 6*time.Hour)
	m := s.api.machines[s.api.names[0]]
	m.Ready, m.deaf, m.dirty = false, true, true
	s.run(time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[1] = gpuLayer(`{"maxPods":61}`) })
	s.run(30 * time.Minute)
	first := s.says()
	s.run(12 * time.Hour)
	if _, _, message := s.progress(); !s.completed() && !strings.Contains(message, m.Name) {
		t.Errorf("half an hour later %s\ntwelve hours later %s", first, s.says())
	}
}

func TestHeldUpByOneThatIsNotTouched(t *testing.T) {
	for name, ails := range map[string]func(*script, *machine){
		"died on trial": func(s *script, m *machine) { m.Ready, m.deaf, m.next, m.dirty = false, true, nil, true },
		"blocked": func(s *script, m *machine) {
			m.says(nodev1.ReasonSyncFailed)
			m.deaf, m.next, m.dirty = true, nil, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := gpuScript()
			s.withGPUs(20, 4)
			s.until(s.completed, 6*time.Hour)
			late := s.node(nil)
			s.until(func() bool { return late.Reason == nodev1.ReasonInTrial }, 10*time.Minute)
			ails(s, late)
			s.run(time.Hour)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[1] = gpuLayer(`{"maxPods":61}`) })
			s.run(2 * time.Second)
			if !s.until(s.completed, 12*time.Hour) {
				t.Errorf("twelve hours later %d of 4: %+v %s", s.having(s.pool().Status.Target.Hash), s.pool().Status.Wave, s.says())
			}
		})
	}
}

func TestVanishOneAfterTheOther(t *testing.T) {
	s := gpuScript()
	s.withGPUs(40, 8)
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[1] = gpuLayer(`{"maxPods":61}`) })
	gone := 0
	s.each = func(s *script) {
		for _, uid := range s.api.names {
			if m := s.api.machines[uid]; m.Labels["gpu"] != "" && m.Reason == nodev1.ReasonInTrial && m.Retry.Hash == s.pool().Status.Target.Hash && s.pool().Status.Target.Revision == 2 {
				gone++
				s.api.remove(uid)
				s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"}; m.Created = s.wall() })
				return
			}
		}
	}
	s.run(3 * time.Hour)
	if gone > 3 {
		t.Errorf("%d vanished, stopped %v: %s", gone, s.stopped(), s.says())
	}
}

func TestSoakBesideACordon(t *testing.T) {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`))
	})
	s.withGPUs(40, 8)
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
		spec.Layers[1] = gpuLayer(`{"maxPods":61}`)
		spec.Rollout.Waves = soaked("1")
		spec.Rollout.Windows = []v1alpha1.Window{windowOf("0 0 1 1 *", time.Hour, "")} // closed
	})
	for _, uid := range s.api.names[:8] {
		s.api.machines[uid].Cordoned, s.api.machines[uid].dirty = true, true
	}
	s.run(10 * time.Second)
	if s.completed() {
		t.Errorf("completed outside of its window, by nobody: %s", s.says())
	}
}
