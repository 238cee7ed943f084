package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// having is how many nodes have been assigned a revision.
func (s *script) having(hash string) (n int) {
	for _, m := range s.api.machines {
		if m.Retry.Hash == hash {
			n++
		}
	}
	return n
}

// soaked are two waves with a long soak each, and then all.
func soaked(first string) []v1alpha1.Wave {
	return []v1alpha1.Wave{{Nodes: *amountOf(first), Soak: durationOf(2 * time.Hour)}, {Nodes: *amountOf("50%"), Soak: durationOf(2 * time.Hour)},
		{Nodes: *amountOf("100%")}}
}

// Nodes whose variant a change does not touch fill none of its waves, and pass no soak for others.
func TestWavesAreOfThoseWhomTheChangeTouches(t *testing.T) {
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
	s.run(2 * time.Second)
	s.grows(t, 8, []step{{time.Hour, 1}, {4 * time.Hour, 4}, {6 * time.Hour, 8}})
}

// step is how many nodes have the target some time after its rollout began.
type step struct {
	at   time.Duration
	want int
}

func (s *script) grows(t *testing.T, of int, steps []step) {
	t.Helper()
	hash, began := s.pool().Status.Target.Hash, s.now
	for _, step := range steps {
		if s.run(began + step.at - s.now); s.having(hash) != step.want {
			t.Errorf("after %v %d of %d nodes have it, want %d: %+v", step.at, s.having(hash), of, step.want, s.pool().Status.Wave)
		}
	}
	if !s.completed() {
		t.Errorf("it is not completed: %+v", s.pool().Status.Conditions)
	}
}

// Where a revision is proven in no cohort of the kubelets of today, the way back to it goes by waves, with their soak.
func TestTheWayBackUnderANewerKubeletGoesByWaves(t *testing.T) {
	s := newScript(40, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("50%") })
	s.until(s.completed, 6*time.Hour)
	first := s.pool().Spec.Layers
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
	s.run(time.Minute)
	s.until(s.completed, 6*time.Hour)
	old := 10 // as they were
	for i, uid := range s.api.names {
		if m := s.api.machines[uid]; i >= old {
			m.Minor, m.dirty = "v1.37", true
		}
	}
	s.run(10 * time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers, spec.Rollout.Waves = first, soaked("1") })
	s.run(2 * time.Second)
	s.grows(t, 40, []step{{time.Hour, old + 1}, {4 * time.Hour, old + 15}, {6 * time.Hour, 40}})
}

// A cohort in which what is stable has failed is left alone, whatever becomes of the node that has shown it, until somebody asks again.
func TestAStableRevisionThatFailsInANewCohort(t *testing.T) {
	for how, aside := range map[string]func(*script, *machine){
		"taken out of the pool": func(s *script, m *machine) { s.api.relabel(m, PoolLabel, "none") },
		"deleted":               func(s *script, m *machine) { s.api.remove(m.UID) },
		"held":                  func(s *script, m *machine) { s.api.relabel(m, RolloutLabel, "hold") },
		"left":                  func(*script, *machine) {},
	} {
		for kind, seen := range map[nature]func(*machine) bool{
			dying:   func(m *machine) bool { return m.Reason == nodev1.ReasonRejected },
			unready: func(m *machine) bool { return !m.Ready },
		} {
			t.Run(how+", "+string(kind), func(t *testing.T) {
				s := newScript(10, string(good), nil)
				s.until(s.completed, 6*time.Hour)
				for range 20 {
					s.node(func(m *machine) { m.Minor = "v1.37"; m.natureOf = func(string) nature { return kind } })
				}
				tried := map[string]bool{}
				s.each = func(s *script) {
					for _, uid := range slices.Clone(s.api.names) {
						m := s.api.machines[uid]
						if m.Minor == "v1.37" && len(m.begun) > 0 {
							tried[m.Name] = true
							if seen(m) && m.Labels[PoolLabel] == "" && m.Labels[RolloutLabel] == "" {
								aside(s, m)
							}
						}
					}
				}
				s.run(6 * time.Hour)
				if len(tried) != 1 {
					t.Errorf("%d of 20 nodes tried it", len(tried))
				}
				why := meta.FindStatusCondition(s.pool().Status.Conditions, v1alpha1.ConditionProgressing)
				for name := range tried {
					if why.Reason != ReasonHeld || !strings.Contains(why.Message, name) || !strings.Contains(why.Message, "v1.37/amd64") {
						t.Errorf("it says %s: %s", why.Reason, why.Message)
					}
				}
				s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Retry = "again" })
				if s.run(time.Hour); len(tried) != 2 && how != "left" {
					t.Errorf("asked again, %d nodes tried it", len(tried))
				}
			})
		}
	}
}

// maxUnproven counts whatever moves to what its cohort has not proven.
func TestMaxUnprovenCountsLateNodes(t *testing.T) {
	tab := newTable(t)
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)} // S, stable
	b := &v1alpha1.KubeletRolloutBudget{}
	b.Name, b.Spec.MaxUnproven = "b", amountOf("1")
	tab.world.Budgets = []Budget{ReadBudget(b, time.LoadLocation)}
	var nodes []Node
	for i := range 8 {
		nodes = append(nodes, tab.node(fmt.Sprintf("n%02d", i), func(n *Node) {
			n.Minor = fmt.Sprintf("v1.%d", 37+i)
			n.Source, n.Mark, n.Retry, n.Observed, n.Active, n.Good, n.Reason = "", Mark{}, Retry{}, "", nodev1.Local, nodev1.Local, nodev1.ReasonLocal
		}))
	}
	if plan, _ := tab.decide(nodes...); len(plan.Writes) != 1 || plan.Writes[0].Why != WhyLate {
		t.Errorf("writes %+v", plan.Writes)
	}
}

// A canary that waits for its pods; it loses the label for which it was one, and is still at risk with what it was assigned: no other node of that
// cohort is tried beside it.
func TestRelabelledWhileItWaitsForItsPods(t *testing.T) {
	s := newScript(12, string(good), func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`))
		p.Spec.Rollout.MaxUnavailable, p.Spec.Rollout.Waves = amountOf("50%"), []v1alpha1.Wave{{Nodes: *amountOf("25%")}, {Nodes: *amountOf("100%")}}
	})
	for range 4 {
		s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"} })
	}
	s.until(s.completed, 6*time.Hour)
	s.each = func(s *script) {
		for _, m := range s.api.machines {
			if m.Labels["gpu"] != "" && m.heardSource == m.Source && m.Reason == nodev1.ReasonApplying {
				source := m.Source
				m.says(nodev1.ReasonWouldDisrupt)
				m.then(s.now+100*time.Hour, func(m *machine) { m.onTrial(s.now, source) })
				m.dirty = true
			}
		}
	}
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
		spec.Layers[0], spec.Layers[1] = inline("fleet", `{"maxPods":7}`), gpuLayer(`{"maxPods":61}`)
	})
	s.run(time.Minute)
	var canary *machine
	for _, m := range s.api.machines {
		if m.Reason == nodev1.ReasonWouldDisrupt {
			canary = m
		}
	}
	if canary == nil {
		t.Fatal("no canary waits for its pods")
	}
	source := canary.Source
	s.api.relabel(canary, "gpu", "")
	s.each, canary = nil, nil
	for range 600 {
		s.run(time.Second)
		var atRisk []string
		for _, m := range s.api.machines {
			switch {
			case m.good == source:
				return // the cohort has proven it
			case m.Source == source:
				atRisk = append(atRisk, m.Name)
			}
		}
		if len(atRisk) > 1 {
			t.Fatalf("at risk are %q: %+v", atRisk, s.pool().Status.Conditions)
		}
	}
	t.Error("nobody else has proven it after ten minutes")
}
