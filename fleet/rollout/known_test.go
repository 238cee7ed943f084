package rollout

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func (s *script) restartAll() {
	s.restart(s.controllers[0])
	s.restart(s.controllers[1])
}

// A dead node that was given the fix is not the fix's fault, for a process either that did not see it die.
func TestADeadCanaryAfterARestart(t *testing.T) {
	for name, then := range map[string]func(*script, *machine){
		"stays":   func(*script, *machine) {},
		"deleted": func(s *script, m *machine) { s.api.remove(m.UID) },
		"held":    func(s *script, m *machine) { s.api.relabel(m, RolloutLabel, "hold") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(30, string(unready), nil)
			s.until(s.stopped, 2*time.Hour)
			for _, m := range s.api.machines {
				m.deaf = !m.Ready
			}
			s.layer(string(good))
			s.run(10 * time.Second)
			s.restartAll()
			s.run(time.Minute)
			for _, m := range maps.Clone(s.api.machines) {
				if m.deaf {
					then(s, m)
				}
			}
			if !s.until(s.completed, 6*time.Hour) {
				t.Errorf("stopped %v: %+v", s.stopped(), s.pool().Status.Conditions)
			}
		})
	}
}

// A canary that is NotReady most of the time, and Ready now and then, has not earned anything.
func TestACanaryThatFlaps(t *testing.T) {
	for name, times := range map[string]struct {
		ill, well time.Duration
		stops     bool
	}{
		"NotReady nearly always":  {4 * time.Minute, 20 * time.Second, true},
		"NotReady half the time":  {2 * time.Minute, 2 * time.Minute, true},
		"NotReady for a moment":   {15 * time.Second, 5 * time.Minute, false},
		"NotReady once, for long": {4 * time.Minute, 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(20, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
				spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)}
				spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: *amountOf("1"), Soak: durationOf(time.Hour)}, {Nodes: *amountOf("100%")}}
			})
			s.run(3 * time.Second)
			hash, next := s.pool().Status.Target.Hash, time.Duration(0)
			var flaps *machine
			s.each = func(s *script) {
				for _, m := range s.api.machines {
					if flaps == nil && m.Retry.Hash == hash && m.Reason == nodev1.ReasonInTrial {
						flaps = m
					}
				}
				if flaps == nil || s.now < next {
					return
				}
				flaps.Ready, flaps.dirty = !flaps.Ready, true
				if next = s.now + times.ill; flaps.Ready {
					next = s.now + times.well
				}
			}
			s.run(6 * time.Hour)
			if s.stopped() != times.stops || s.completed() == times.stops {
				t.Errorf("stopped: %v, completed: %v", s.stopped(), s.completed())
			}
		})
	}
}

// What was asked of a node that runs its own configuration a moment ago counts for a process, too, that did not see it.
func TestLocalIsSettledAfterAWhile(t *testing.T) {
	s := newScript(12, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("1") })
	s.until(s.completed, 6*time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = &v1alpha1.Pin{Local: true} })
	s.each = func(s *script) { s.restartAll() }
	began := s.now
	s.until(func() bool { return s.with(nodev1.Local) == 12 }, time.Hour)
	if took := s.now - began; took < 11*15*time.Second {
		t.Errorf("12 nodes, one at a time, took %v", took)
	}
}

// Labels that flap while a rollout is under way move nobody, whatever the nodes have.
func TestLabelsThatFlapInARollout(t *testing.T) {
	for name, restarts := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = []v1alpha1.Layer{gpuLayer(`{"maxPods":60}`)} })
			for range 20 {
				s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"} })
			}
			s.until(s.completed, 6*time.Hour)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[0] = gpuLayer(`{"maxPods":61}`) })
			s.run(5 * time.Second)
			relabel := func(value string) {
				for _, m := range s.api.machines {
					s.api.relabel(m, "gpu", value)
				}
			}
			relabel("")
			if restarts {
				s.restartAll()
			}
			s.run(4 * time.Minute)
			if n := s.with(nodev1.Local); n > 0 {
				t.Errorf("%d nodes have gone to their own configuration", n)
			}
			if why := meta.FindStatusCondition(s.pool().Status.Conditions, v1alpha1.ConditionProgressing); !strings.Contains(why.Message, "labels") {
				t.Errorf("it says %s: %s", why.Reason, why.Message)
			}
			relabel("true")
			if !s.until(s.completed, 3*time.Hour) || s.with(nodev1.Local) > 0 {
				t.Errorf("with its labels back: %+v", s.pool().Status.Conditions)
			}
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[0] = gpuLayer(`{"maxPods":62}`) })
			s.run(5 * time.Second)
			relabel("")
			if s.run(2 * time.Hour); s.with(nodev1.Local) != 20 {
				t.Errorf("with its labels gone for good: %d of 20 have their own configuration", s.with(nodev1.Local))
			}
		})
	}
}

// Who undoes need not first repair what is being undone.
func TestAPinBesideATypo(t *testing.T) {
	s := newScript(20, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	stable := *s.pool().Status.Stable
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
	s.run(time.Minute)
	s.until(func() bool { w := s.pool().Status.Wave; return w == nil || w.Number > 2 }, time.Hour)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
		spec.Layers, spec.Rollout.Pin = []v1alpha1.Layer{inline("fleet", `{"maxPods":`)}, pinned(stable.Revision)
	})
	if s.run(3 * time.Hour); s.having(stable.Hash) != 20 {
		t.Errorf("%d of 20 went back: %+v", s.having(stable.Hash), s.pool().Status.Conditions)
	}
}

// A new node that waits for its pods is named, and where pods may die it is let go on.
func TestANewNodeThatWaitsForItsPods(t *testing.T) {
	for _, disruption := range []v1alpha1.Disruption{v1alpha1.DisruptionHold, v1alpha1.DisruptionAllow} {
		t.Run(string(disruption), func(t *testing.T) {
			s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint, p.Spec.Rollout.Disruption = "join", disruption })
			s.until(s.completed, 6*time.Hour)
			fresh := s.node(func(m *machine) { m.Created, m.Taints = s.wall(), []string{"join"} })
			s.each = func(s *script) {
				if fresh.Source != "" && fresh.heardSource == fresh.Source && fresh.Reason == nodev1.ReasonApplying && !fresh.consented() {
					fresh.says(nodev1.ReasonWouldDisrupt)
					source := fresh.Source
					fresh.then(s.now+100*time.Hour, func(m *machine) { m.onTrial(s.now, source) })
					fresh.Holds, fresh.dirty = "kube-system/agent", true
				}
			}
			s.run(time.Hour)
			why := meta.FindStatusCondition(s.pool().Status.Conditions, v1alpha1.ConditionProgressing)
			if gone := len(fresh.Taints) == 0; gone != (disruption == v1alpha1.DisruptionAllow) {
				t.Errorf("taints %v, %s; it says %s", fresh.Taints, fresh.Reason, why.Message)
			} else if !gone && (!strings.Contains(why.Message, fresh.Name) || !strings.Contains(why.Message, "kube-system/agent")) {
				t.Errorf("it says %s: %s", why.Reason, why.Message)
			}
		})
	}
}

// Where a pool has lost its status, what ran is what somebody has completed: no revision that failed, and none that is under way.
func TestWhatRanBeforeAStatusWasLost(t *testing.T) {
	lose := func(s *script) {
		anew := s.pool().DeepCopy()
		anew.Status, anew.Generation = v1alpha1.KubeletPoolStatus{}, anew.Generation+1
		s.api.pools["a"] = anew
	}
	second := func(s *script) string {
		s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[0] = inline("fleet", `{"maxPods":7}`) })
		s.run(3 * time.Second)
		return s.pool().Status.Target.Hash
	}
	proven := func(s *script, hash string) (n int, one *machine) {
		for _, m := range s.api.machines {
			if m.Retry.Hash == hash && m.hasProven() {
				n, one = n+1, m
			}
		}
		return n, one
	}
	for name, row := range map[string]struct {
		gpus int
		play func(s *script)
		want int64
	}{
		"stopped in the canary of few nodes, the others have nothing of it": {1, func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
				spec.Layers[1] = gpuLayer(`{"maxPods":61,"logging":{"format":"refused"}}`)
			})
			s.until(s.stopped, time.Hour)
		}, 1},
		"stopped at three fifths": {0, func(s *script) {
			hash := second(s)
			s.until(func() bool { n, _ := proven(s, hash); return n >= 12 }, 3*time.Hour)
			_, one := proven(s, hash)
			one.says(nodev1.ReasonLastKnownGoodFailed)
			one.dirty = true
		}, 1},
		"three fifths have it": {0, func(s *script) {
			hash := second(s)
			s.until(func() bool { n, _ := proven(s, hash); return n >= 12 }, 3*time.Hour)
		}, 1},
		"completed, and one node is held": {0, func(s *script) {
			s.api.relabel(s.api.machines[s.api.names[0]], RolloutLabel, "hold")
			second(s)
			s.until(s.completed, 3*time.Hour)
		}, 2},
		"completed, and most nodes have nothing of it": {2, func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers[1] = gpuLayer(`{"maxPods":61}`) })
			s.run(3 * time.Second)
			s.until(s.completed, 3*time.Hour)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
			for i := range 20 {
				s.node(func(m *machine) {
					if i < row.gpus {
						m.Labels = map[string]string{"pool": "a", "gpu": "true"}
					}
				})
			}
			s.until(s.completed, 6*time.Hour)
			row.play(s)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Paused = true })
			lose(s)
			s.run(3 * time.Second)
			if stable := s.pool().Status.Stable; stable == nil || stable.Revision != row.want {
				t.Errorf("stable is %+v, want %d", stable, row.want)
			}
		})
	}
}

// An upgrade is not forgotten for a word that asks a node again for what it has.
func TestAnUpgradeIsRememberedBeyondARetry(t *testing.T) {
	r := defaultRules()
	n := Node{Name: "n", Ready: true, Minor: "v1.37", Source: mine, Observed: mine, Active: mine, Good: mine, Reason: nodev1.ReasonActive, Mark: Mark{Pool: "a", Assignment: mine, Attempt: 2}}
	before := Seen{Name: "n", Minor: "v1.36", Mark: Mark{Pool: "a", Assignment: mine, Attempt: 1}, Source: mine, Runs: true, Running: time.Hour}
	after := before.look(&n, false, &r, time.Time{}, time.Second)
	if n.Mark.Attempt = 3; !after.Upgraded || !after.look(&n, false, &r, time.Time{}, time.Second).Upgraded {
		t.Errorf("it is forgotten: %+v", after)
	}
}
