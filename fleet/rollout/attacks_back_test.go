package rollout

import (
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func TestBackWithOneThatRefuses(t *testing.T) {
	s := newScript(10, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	first := s.pool().Spec.Layers
	hash := s.pool().Status.Stable.Hash
	s.inlineLayer(`{"maxPods":7}`)
	s.until(s.completed, 6*time.Hour)
	one := s.api.machines[s.api.names[0]]
	one.natureOf = func(string) nature { return refused }
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
	s.run(2 * time.Second)
	if !s.until(s.completed, 6*time.Hour) {
		t.Errorf("not completed: %d have it; %+v %s", s.having(hash), s.pool().Status.Nodes, s.says())
	}
}

func TestBackWithOneThatDies(t *testing.T) {
	s := newScript(10, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	first := s.pool().Spec.Layers
	hash := s.pool().Status.Stable.Hash
	s.inlineLayer(`{"maxPods":7}`)
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
	var dies *machine
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if dies == nil && m.Retry.Hash == hash && m.Reason == nodev1.ReasonInTrial {
				dies = m
				m.Ready, m.deaf, m.dirty, m.next = false, true, true, nil
			}
		}
	}
	s.run(2 * time.Second)
	if !s.until(s.completed, 12*time.Hour) {
		t.Errorf("not completed: %d have it; %+v %s", s.having(hash), s.pool().Status.Nodes, s.says())
	}
}

func TestBackOfThoseWhomItMadeNotReady(t *testing.T) {
	for name, many := range map[string]int{"one": 1, "half": 5, "all": 10} {
		t.Run(name, func(t *testing.T) {
			s := newScript(10, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			first := s.pool().Spec.Layers
			hash := s.pool().Status.Stable.Hash
			s.inlineLayer(`{"maxPods":7}`)
			s.until(s.completed, 6*time.Hour)
			s.run(time.Hour)
			for _, uid := range s.api.names[:many] {
				m := s.api.machines[uid]
				m.lost, m.Ready, m.dirty = s.now, false, true // its kubelet does not renew its Lease with that; its supervisor works
			}
			s.run(10 * time.Minute)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
			s.run(6 * time.Hour)
			if n := s.having(hash); n != 10 {
				t.Errorf("six hours later %d of 10 went back: %+v %s", n, s.pool().Status.Nodes, s.says())
			}
		})
	}
}

func TestToLocalBesideOneThatDies(t *testing.T) {
	s := newScript(10, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = &v1alpha1.Pin{Local: true} })
	var dies *machine
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if dies == nil && m.Source == nodev1.Local {
				dies = m
				m.Ready, m.deaf, m.dirty, m.next = false, true, true, nil
			}
		}
	}
	s.run(30 * time.Minute)
	if n := s.with(nodev1.Local); n != 10 {
		t.Errorf("half an hour later %d: %s", n, s.says())
	}
	done := func() bool { st := s.pool().Status.Stable; return st != nil && st.Local }
	if !s.until(done, 12*time.Hour) {
		t.Errorf("not completed: %s", s.says())
	}
}

func TestOneThatDiesHoldsUpTheWayBack(t *testing.T) {
	for name, nodes := range map[string]int{"ten nodes": 10, "three": 3} {
		t.Run(name, func(t *testing.T) {
			s := newScript(nodes, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			first, hash := s.pool().Spec.Layers, s.pool().Status.Stable.Hash
			s.inlineLayer(`{"maxPods":7}`)
			s.until(s.completed, 6*time.Hour)
			s.run(time.Hour)
			var dies *machine
			s.each = func(s *script) {
				for _, m := range s.api.machines {
					if dies == nil && m.Retry.Hash == hash {
						dies = m
						m.Ready, m.deaf, m.dirty, m.next = false, true, true, nil
					}
				}
			}
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
			s.run(12 * time.Hour)
			if n := s.having(hash); n != nodes {
				t.Errorf("twelve hours later %d of %d: %s", n, nodes, s.says())
			}
		})
	}
}

func TestBackUnderANewerKubeletThatItKills(t *testing.T) {
	s := newScript(10, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	first, hash := s.pool().Spec.Layers, s.pool().Status.Stable.Hash
	s.inlineLayer(`{"maxPods":7}`)
	s.until(s.completed, 6*time.Hour)
	s.run(time.Hour)
	for _, uid := range s.api.names { // the newer kubelet does not get Ready with revision 2
		m := s.api.machines[uid]
		m.Minor, m.BootID, m.lost, m.Ready, m.dirty = "v1.37", "boot-37", s.now, false, true
	}
	s.run(10 * time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
	s.run(12 * time.Hour)
	if n := s.having(hash); n != 10 {
		t.Errorf("twelve hours later %d of 10 went back: %s", n, s.says())
	}
}

func TestUpgradeInTheMiddleOfTheWayBack(t *testing.T) {
	for name, row := range map[string]struct {
		at   int
		kind nature
	}{"one has gone back, dying": {1, dying}, "half have, dying": {10, dying}, "half have, unready": {10, unready}, "none has, refused": {0, refused}} {
		t.Run(name, func(t *testing.T) {
			s := newScript(20, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("5") })
			s.until(s.completed, 6*time.Hour)
			first, hash := s.pool().Spec.Layers, s.pool().Status.Stable.Hash
			s.inlineLayer(`{"maxPods":7}`)
			s.until(s.completed, 6*time.Hour)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
			s.until(func() bool { return s.having(hash) >= row.at }, time.Hour)
			upgraded := map[string]bool{}
			for _, m := range s.api.machines {
				if m.Retry.Hash != hash {
					m.Minor, m.dirty, upgraded[m.Name] = "v1.37", true, true
					m.natureOf = func(source string) nature {
						if strings.Contains(s.api.payloads[source], string(good)) {
							return row.kind
						}
						return good
					}
				}
			}
			tried := map[string]bool{}
			s.each = func(s *script) {
				for _, m := range s.api.machines {
					if upgraded[m.Name] && (m.Retry.Hash == hash) {
						tried[m.Name] = true
					}
				}
			}
			s.run(6 * time.Hour)
			if len(tried) > 1 {
				t.Errorf("%d of %d tried it: %s", len(tried), len(upgraded), s.says())
			}
			t.Logf("%d: %s", len(tried), s.says())
		})
	}
}

func TestDeadOnesComeBackAtOnce(t *testing.T) {
	s := newScript(20, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("3") })
	s.until(s.completed, 6*time.Hour)
	first, hash := s.pool().Spec.Layers, s.pool().Status.Stable.Hash
	s.inlineLayer(`{"maxPods":7}`)
	second := s.pool().Status.Target.Hash
	s.until(func() bool {
		n := 0
		for _, m := range s.api.machines {
			if m.Retry.Hash == second && m.hasProven() {
				n++
			}
		}
		return n >= 10
	}, 6*time.Hour)
	var zone []*machine
	for _, uid := range s.api.names {
		if m := s.api.machines[uid]; m.Retry.Hash == second && m.hasProven() {
			m.Minor, m.dirty = "v1.37", true
			zone = append(zone, m)
		}
	}
	s.run(time.Minute)
	for _, m := range zone { // a zone is cut off
		m.Ready, m.deaf, m.dirty = false, true, true
		m.natureOf = func(source string) nature {
			if strings.Contains(s.api.payloads[source], string(good)) {
				return dying
			}
			return good
		}
	}
	s.run(time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
	s.run(10 * time.Minute)
	given := 0
	for _, m := range zone {
		if m.Retry.Hash == hash {
			given++
		}
		m.Ready, m.deaf, m.dirty = true, false, true
	}
	s.most = 0
	s.run(time.Hour)
	tried := 0
	for _, m := range zone {
		for retry := range m.begun {
			if retry.Hash == hash && m.running != sourceOf("") && m.Reason == nodev1.ReasonRejected {
				tried++
				break
			}
		}
	}
	if tried > 1 {
		t.Errorf("%d of %d were given it while they were cut off, and %d of them died of it, %d at once of at most 3: %s", given, len(zone), tried, s.most, s.says())
	}
}
