package rollout

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// mine is what people have assigned by hand.
const mine = Namespace + "/mine/kubelet"

// adopted lets all nodes run what a person has assigned, and the pool adopt them.
func (s *script) adopted(nodes int) {
	s.api.payloads[mine], s.api.natures[mine] = "{}", good
	for range nodes {
		s.node(func(m *machine) {
			m.Source, m.running, m.good, m.heardSource = mine, mine, mine, mine
			m.Active, m.Good, m.Observed, m.Reason = mine, mine, mine, nodev1.ReasonActive
		})
	}
	s.run(time.Minute)
	for _, m := range s.api.machines {
		if m.Source == mine {
			m.Mark, m.dirty = Mark{Pool: "a", Assignment: mine, Attempt: 1}, true
		}
	}
}

// To adopt nodes restarts none of them, and then they are changed as others are.
func TestAdoptionKeepsTheLimits(t *testing.T) {
	s := newScript(4, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("1") })
	if !s.until(s.completed, 6*time.Hour) {
		t.Fatal("not completed")
	}
	s.most = 0
	s.adopted(20)
	s.run(8 * time.Second)
	if n := s.pool().Status.Nodes; n.Late < 19 {
		t.Errorf("eight seconds later: %+v", n)
	}
	if s.run(6 * time.Hour); s.most > 1 || s.with(mine) > 0 {
		t.Errorf("%d at once, and in the end %+v", s.most, s.pool().Status.Nodes)
	}
}

// What has not begun is taken back to what the node runs, whatever brakes are on.
func TestTakenBackToWhatRuns(t *testing.T) {
	for name, brake := range map[string]func(*v1alpha1.KubeletPoolSpec){
		"no brake":         func(*v1alpha1.KubeletPoolSpec) {},
		"paused":           func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Paused = true },
		"maxUnavailable 0": func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.MaxUnavailable = amountOf("0") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(0, string(refused), func(p *v1alpha1.KubeletPool) {
				p.Spec.Rollout.Waves, p.Spec.Rollout.MaxUnavailable = wavesOf("2", "100%"), amountOf("3")
			})
			s.adopted(6)
			for _, m := range s.api.machines {
				m.Minor, m.deaf = "v1.35", true // they never begin
			}
			answers := s.api.machines[s.api.names[0]]
			answers.deaf, answers.Minor = false, "v1.36"
			s.until(func() bool { return s.with(mine) <= 4 }, time.Hour) // a canary of each version
			s.edit(brake)
			if s.run(10 * time.Minute); !s.stopped() || s.with(mine) != 5 {
				t.Errorf("stopped: %v; %d nodes have what they ran, and %d the nodes' own", s.stopped(), s.with(mine), s.with(nodev1.Local))
			}
		})
	}
}

// A new node gets the stable revision at once, whatever else goes on.
func TestANewNodeIsServedInEveryState(t *testing.T) {
	states := map[string]func(*script){
		"completed": func(*script) {},
		"stopped":   func(s *script) { s.layer(string(refused)); s.run(5 * time.Minute) },
		"paused":    func(s *script) { s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Paused = true }) },
		"frozen": func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.MaxUnavailable = amountOf("0") })
		},
		"a window that never opens": func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
				spec.Rollout.Windows = []v1alpha1.Window{windowOf("0 0 1 1 *", time.Hour, "")}
			})
		},
		"a dead node": func(s *script) {
			m := s.api.machines[s.api.names[0]]
			m.Ready, m.dirty = false, true
			s.run(time.Minute)
		},
		"a node that refuses it now": func(s *script) {
			m := s.api.machines[s.api.names[0]]
			m.says(nodev1.ReasonRejected)
			m.dirty = true
			s.run(time.Minute)
		},
		"a rollout in its canary": func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
			s.run(30 * time.Second)
		},
	}
	for state, enter := range states {
		for kind, change := range map[string]func(*machine){
			"Ready at once": func(*machine) {}, "not Ready": func(m *machine) { m.Ready = false }, "cordoned": func(m *machine) { m.Cordoned = true },
			"hours old, with its taint": func(m *machine) { m.Created = m.Created.Add(-3 * time.Hour) },
		} {
			t.Run(state+", "+kind, func(t *testing.T) {
				s := newScript(8, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint = "join" })
				if !s.until(s.completed, 6*time.Hour) {
					t.Fatal("not completed")
				}
				stable := *s.pool().Status.Stable
				enter(s)
				fresh := s.node(func(m *machine) { m.Created, m.Taints = s.wall(), []string{"join"}; change(m) })
				s.run(time.Minute)
				if fresh.Retry.Hash != stable.Hash || len(fresh.Taints) > 0 && fresh.Reason != nodev1.ReasonWouldDisrupt {
					t.Errorf("a minute later it has %s of %s, taints %v: %s", fresh.Source, fresh.Retry, fresh.Taints, fresh.Reason)
				}
			})
		}
	}
}

// A rollout ends although an autoscaler adds a node each minute and takes the oldest away.
func TestArrivalsDoNotHoldUpARollout(t *testing.T) {
	s := newScript(40, string(good), nil)
	if !s.until(s.completed, 6*time.Hour) {
		t.Fatal("not completed")
	}
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
	next := s.now
	s.each = func(s *script) {
		if s.now >= next {
			next = s.now + 20*time.Second // a trial is one minute here, and ten in truth
			s.api.remove(s.api.names[0])
			s.node(func(m *machine) { m.Created = s.wall() })
		}
	}
	s.run(10 * time.Second)
	if !s.until(s.completed, 3*time.Hour) {
		t.Errorf("after 3 hours: wave %+v, %+v", s.pool().Status.Wave, s.pool().Status.Nodes)
	}
}

// The way back moves beside a node that died of something else.
func TestUndoBesideADeadNode(t *testing.T) {
	s := newScript(8, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	stable := s.pool().Status.Stable.Revision
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
	moved := func() (n int) {
		for _, m := range s.api.machines {
			if m.Retry.Hash != s.pool().Status.Stable.Hash {
				n++
			}
		}
		return n
	}
	s.until(func() bool { return moved() >= 3 }, 2*time.Hour)
	for _, m := range s.api.machines {
		if m.Retry.Hash == s.pool().Status.Stable.Hash {
			m.Ready, m.dirty = false, true
			break
		}
	}
	s.run(time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = pinned(stable) })
	s.run(time.Hour)
	if n := moved(); n > 0 || s.most > 1 {
		t.Errorf("%d nodes still have the new revision, %d went back at once", n, s.most)
	}
}

// A dead node that is the canary of the fix fills no wave: somebody else is.
func TestADeadCanaryIsReplaced(t *testing.T) {
	s := newScript(30, string(unready), nil)
	if !s.until(s.stopped, 2*time.Hour) {
		t.Fatal("not stopped")
	}
	for _, m := range s.api.machines {
		if !m.Ready {
			m.deaf = true // the machine is dead
		}
	}
	s.layer(string(good))
	s.run(10 * time.Second)
	if !s.until(s.completed, 6*time.Hour) {
		t.Errorf("the fix is not completed: %+v", s.pool().Status.Nodes)
	}
}

// A dead node that was released, or has been dead for long, holds no zone.
func TestADeadNodeHoldsNoZoneForEver(t *testing.T) {
	s := newScript(0, string(unready), func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.Topology = &v1alpha1.Topology{Key: "zone", MaxDomains: 1}
	})
	for i := range 12 {
		s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "zone": string(rune('a' + i%3))} })
	}
	if !s.until(s.stopped, 2*time.Hour) {
		t.Fatal("not stopped")
	}
	for _, m := range s.api.machines {
		if !m.Ready {
			m.deaf = true
			s.api.relabel(m, PoolLabel, "none")
		}
	}
	s.layer(string(good))
	s.run(10 * time.Second)
	if !s.until(s.completed, 6*time.Hour) {
		t.Errorf("the fix is not completed: %+v", s.pool().Status.Conditions)
	}
}

// A cloud that takes a node away in its trial tells nothing of the configuration.
func TestSpotLosses(t *testing.T) {
	for name, says := range map[string]func(*machine){
		"a taint":                     func(m *machine) { m.Leaving = true },
		"its own shutdown":            func(m *machine) { m.Leaving, m.Ready = true, false },
		"a taint, and then NotReady":  func(m *machine) { m.Leaving = true },
		"a taint that the pool names": func(m *machine) { m.Taints = []string{"cloud/takes-it"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(12, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.LeavingTaints = []string{"cloud/takes-it"} })
			gone := 0
			s.each = func(s *script) {
				for _, uid := range s.api.names {
					m := s.api.machines[uid]
					leaving := m.Leaving || len(m.Taints) > 0
					switch {
					case leaving && m.Ready:
						m.Ready, m.dirty = false, true
					case leaving:
						s.api.remove(uid)
						return
					case gone < 3 && m.Reason == nodev1.ReasonInTrial:
						gone++
						says(m)
						m.dirty = true
						return
					}
				}
			}
			if !s.until(s.completed, 6*time.Hour) || gone < 3 {
				t.Errorf("%d nodes went, stopped: %v", gone, s.stopped())
			}
		})
	}
}

// What ran is found again where the pool was made anew, and its status is gone.
func TestAPoolThatIsMadeAnew(t *testing.T) {
	s := newScript(8, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint = "join" })
	if !s.until(s.completed, 6*time.Hour) {
		t.Fatal("not completed")
	}
	stable := *s.pool().Status.Stable
	s.layer(string(refused))
	if !s.until(s.stopped, time.Hour) {
		t.Fatal("not stopped")
	}
	anew := s.pool().DeepCopy()
	anew.Status, anew.Generation = v1alpha1.KubeletPoolStatus{}, anew.Generation+1
	s.api.pools["a"] = anew
	fresh := s.node(func(m *machine) { m.Created, m.Taints = s.wall(), []string{"join"} })
	s.run(time.Minute)
	status := s.pool().Status
	if status.Stable == nil || *status.Stable != stable || len(status.Completions) != 1 || fresh.Retry.Hash != stable.Hash || len(fresh.Taints) > 0 {
		t.Errorf("stable %+v, completions %v, a new node has %s, %v", status.Stable, status.Completions, fresh.Retry, fresh.Taints)
	}
	pool := ReadPool(s.pool(), s.api.revisions["a"], time.LoadLocation)
	if before := pool.Before(); before == nil || before.Number != stable.Revision {
		t.Errorf("an undo goes to %+v", before)
	}
	if s.run(time.Hour); !s.stopped() || s.with(nodev1.Local) > 0 {
		t.Errorf("stopped: %v; %d nodes have their own configuration", s.stopped(), s.with(nodev1.Local))
	}
}

// A label that goes and comes back changes nothing; one that stays away changes nodes as others are changed.
func TestLabelsThatFlap(t *testing.T) {
	s := newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
	for i := range 24 {
		s.node(func(m *machine) {
			if i < 20 {
				m.Labels = map[string]string{"pool": "a", "gpu": "true"}
			}
		})
	}
	if !s.until(s.completed, 6*time.Hour) {
		t.Fatal("not completed")
	}
	relabel := func(value string) {
		for _, uid := range s.api.names[:20] {
			s.api.relabel(s.api.machines[uid], "gpu", value)
		}
	}
	s.run(time.Minute)
	s.most = 0
	writes := s.writes
	for range 5 {
		relabel("")
		s.run(time.Minute)
		relabel("true")
		s.run(4 * time.Minute)
	}
	if s.writes != writes {
		t.Errorf("%d writes for labels that came back", s.writes-writes)
	}
	relabel("")
	s.run(6 * time.Minute)
	if s.writes == writes || s.most > 2 {
		t.Errorf("%d writes for labels that stay away, %d at once", s.writes-writes, s.most)
	}
	if s.run(6 * time.Hour); s.pool().Status.Nodes.Proven != 24 {
		t.Errorf("in the end %+v", s.pool().Status.Nodes)
	}
}

// A cluster that was made minutes ago is rolled out as any other: who has proven what it was given is no new node any more.
func TestAFreshCluster(t *testing.T) {
	s := newScript(0, string(good), nil)
	for range 6 {
		s.node(func(m *machine) { m.Created = s.wall() })
	}
	for _, layer := range []string{`{"maxPods":7}`, `{"maxPods":8}`} {
		s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", layer)} })
		s.run(time.Second)
		began := s.now
		if !s.until(s.completed, time.Hour) || s.now-began > 9*time.Minute {
			t.Errorf("%s took %v", layer, s.now-began)
		}
	}
}

// A word that somebody sets again and again is not forgotten for others, so that it never asks for anything anew.
func TestAWordThatComesBackIsNotForgotten(t *testing.T) {
	w := newTable(t)
	say := func(word string) int64 {
		w.pool.Spec.Rollout.Retry = word
		_, w.pool.Status = w.decide(w.proven("n1"))
		return w.pool.Status.Target.Attempt
	}
	say("git")
	for i := range int64(2 * retryLimit) {
		if got := say("person-" + string(rune('a'+i))); got != i+3 {
			t.Fatalf("attempt %d, want %d", got, i+3)
		}
		if got := say("git"); got != i+3 {
			t.Fatalf("the old word asks again: attempt %d, want %d", got, i+3)
		}
	}
}

// One that has the new revision and died with its machine holds the way back up no longer than it takes to leave it alone.
func TestUndoBesideADeadNodeWithTheNewRevision(t *testing.T) {
	s := newScript(10, string(good), nil)
	s.until(s.completed, 6*time.Hour)
	stable := s.pool().Status.Stable.Revision
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":7}`)} })
	moved := func() (alive int, one *machine) {
		for _, m := range s.api.machines {
			if m.Retry.Hash != s.pool().Status.Stable.Hash && !m.deaf {
				alive, one = alive+1, m
			}
		}
		return alive, one
	}
	s.until(func() bool { n, _ := moved(); return n >= 5 }, 3*time.Hour)
	s.run(2 * time.Minute)
	_, dies := moved()
	dies.Ready, dies.deaf, dies.dirty = false, true, true
	s.run(time.Minute)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = pinned(stable) })
	s.run(30 * time.Minute)
	if n, _ := moved(); n > 0 {
		t.Errorf("%d nodes still have the new revision", n)
	}
}

// A pool that was made before its nodes begins with them.
func TestAPoolBeforeItsNodes(t *testing.T) {
	s := newScript(0, string(good), nil)
	s.run(time.Minute)
	for range 10 {
		s.node(func(m *machine) { m.Created = s.wall() })
	}
	if !s.until(s.completed, 2*time.Hour) {
		t.Errorf("it does not begin: %+v", s.pool().Status.Nodes)
	}
}
