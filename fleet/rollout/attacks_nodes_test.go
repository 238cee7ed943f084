package rollout

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func TestMadeAnewBesideARefusal(t *testing.T) {
	s := newScript(20, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint = "join" })
	s.until(s.completed, 6*time.Hour)
	stable := *s.pool().Status.Stable
	one := s.node(func(m *machine) { m.natureOf = func(string) nature { return refused } })
	s.run(10 * time.Minute)
	if one.Reason != nodev1.ReasonRefused {
		t.Fatal(one.Reason)
	}
	t.Log(s.says())
	anew := s.pool().DeepCopy()
	anew.Status, anew.Generation = v1alpha1.KubeletPoolStatus{}, anew.Generation+1
	s.api.pools["a"] = anew
	s.run(time.Second)
	fresh := s.node(func(m *machine) { m.Created, m.Taints = s.wall(), []string{"join"} })
	s.run(10 * time.Minute)
	if got := s.pool().Status.Stable; got == nil || *got != stable {
		t.Errorf("stable %+v, a new node has %q, taints %v; %s", got, fresh.Source, fresh.Taints, s.says())
	}
}

func TestUntaintWithoutAVariant(t *testing.T) {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) {
		p.Spec.JoinTaint = "join"
		p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`))
	})
	for range 8 {
		s.node(nil)
	}
	s.until(s.completed, 6*time.Hour)
	s.quota = s.now + 24*time.Hour
	fresh := s.node(func(m *machine) {
		m.Created, m.Taints = s.wall(), []string{"join"}
		m.Labels = map[string]string{"pool": "a", "gpu": "true"}
	})
	s.run(5 * time.Minute)
	if len(fresh.Taints) == 0 && fresh.Source == "" {
		t.Errorf("its taint is gone, and it has nothing: %s", s.says())
	}
}

func TestConsentForOneThatIsHeld(t *testing.T) {
	s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) {
		p.Spec.JoinTaint, p.Spec.Rollout.Disruption = "join", v1alpha1.DisruptionAllow
	})
	s.until(s.completed, 6*time.Hour)
	fresh := s.node(func(m *machine) { m.Created, m.Taints = s.wall(), []string{"join"} })
	s.each = func(s *script) {
		if fresh.Source != "" && fresh.heardSource == fresh.Source && fresh.Reason == nodev1.ReasonApplying && !fresh.consented() {
			fresh.says(nodev1.ReasonWouldDisrupt)
			source := fresh.Source
			fresh.then(s.now+100*time.Hour, func(m *machine) { m.onTrial(s.now, source) })
			fresh.Holds, fresh.dirty = "kube-system/agent", true
			s.api.relabel(fresh, RolloutLabel, "hold")
		}
	}
	if fault := playSafe(func(func(*sim)) string { s.run(10 * time.Minute); return "" }, nil); fault != "" {
		t.Errorf("the simulator says: %s", fault)
	}
	if fresh.Consent != "" {
		t.Errorf("it is held, and has the approval %s: %s", fresh.Consent, s.says())
	}
}

func TestNeverStoppedAfterARestart(t *testing.T) {
	s := newScript(12, string(unready), nil)
	s.run(time.Minute)
	s.restartAll()
	if !s.until(s.stopped, 12*time.Hour) {
		t.Errorf("twelve hours later: %s", s.says())
	}
}

func TestWasNotReadyBeforeTheFix(t *testing.T) {
	for name, restarts := range map[string]bool{"the same process": false, "another process": true} {
		for what, then := range map[string]func(*script, *machine){
			"stays": func(*script, *machine) {}, "deleted": func(s *script, m *machine) { s.api.remove(m.UID) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				s := newScript(30, string(unready), nil)
				s.until(s.stopped, 2*time.Hour)
				var broken *machine
				for _, m := range s.api.machines {
					if !m.Ready {
						broken = m
						m.natureOf = func(string) nature { return unready } // it is the machine
					}
				}
				s.layer(string(good))
				s.run(30 * time.Second)
				if restarts {
					s.restartAll()
				}
				s.run(time.Minute)
				then(s, broken)
				if !s.until(s.completed, 6*time.Hour) {
					t.Errorf("stopped %v: %s", s.stopped(), s.says())
				}
			})
		}
	}
}

func TestANewNodeWhoseLabelsFlap(t *testing.T) {
	s := gpuScript()
	s.withGPUs(10, 3)
	s.until(s.completed, 6*time.Hour)
	fresh := s.node(func(m *machine) { m.Created, m.Ready = s.wall(), false })
	next, is := s.now, false
	s.each = func(s *script) {
		if s.now >= next {
			next, is = s.now+10*time.Second, !is
			s.api.relabel(fresh, "gpu", map[bool]string{true: "true"}[is])
		}
	}
	before := s.writes
	s.run(15 * time.Minute)
	if n := s.writes - before; n > 3 {
		t.Errorf("%d writes", n)
	}
}

func TestRestartsAllTheTime(t *testing.T) {
	for name, kind := range map[string]nature{"good": good, "refused": refused, "dying": dying, "unready": unready} {
		t.Run(name, func(t *testing.T) {
			s := newScript(20, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			n := 0
			s.each = func(s *script) {
				if n++; n%20 == 0 {
					s.restartAll()
				}
			}
			s.layer(string(kind) + "")
			if kind == good {
				s.inlineLayer(`{"maxPods":7}`)
			}
			s.run(6 * time.Hour)
			if kind == good && !s.completed() || kind != good && (s.completed() || len(s.ran) > 1) {
				t.Errorf("completed %v, stopped %v, ran %v: %s", s.completed(), s.stopped(), s.ran, s.says())
			}
		})
	}
}

func TestAnotherPoolTakesTheNodes(t *testing.T) {
	s := newScript(12, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	s.layer(string(dying))
	s.until(func() bool { return s.having(s.pool().Status.Target.Hash) > 0 && s.pool().Status.Target.Revision == 2 }, time.Minute)
	s.api.pools["b"] = newPool("b", func(p *v1alpha1.KubeletPool) {
		p.Spec.Priority = 5
		p.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
		p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":9,"logging":{"format":"good"}}`)}
	})
	s.run(3 * time.Hour)
	if len(s.ran) > 1 {
		t.Errorf("%d ran it", len(s.ran))
	}
	st := s.api.pools["b"].Status
	if st.Stable == nil || st.Nodes.Proven != 12 {
		t.Errorf("b: %+v %+v", st.Nodes, st.Conditions)
	}
	delete(s.api.pools, "b")
	s.run(3 * time.Hour)
	if len(s.ran) > 1 {
		t.Errorf("%d ran it after b", len(s.ran))
	}
	t.Log(s.says())
}
