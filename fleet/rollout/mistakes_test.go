package rollout

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// mistake is a core, or a shell, that has not understood one thing. The simulator has to find it out.
type mistake struct {
	name       string
	invariants []int // any of them
	change     func(*sim)
}

// world is a core that reads the world in another way.
func world(change func(w *World)) func(*sim) {
	return func(s *sim) {
		s.every = 4
		s.decide = func(w World) Plan {
			w.Pools, w.Nodes = slices.Clone(w.Pools), slices.Clone(w.Nodes)
			change(&w)
			return Decide(w)
		}
	}
}

func everyNode(change func(n *Node)) func(*sim) {
	return world(func(w *World) {
		for i := range w.Nodes {
			change(&w.Nodes[i])
		}
	})
}

func everyPool(change func(p *Pool)) func(*sim) {
	return world(func(w *World) {
		for i := range w.Pools {
			change(&w.Pools[i])
		}
	})
}

// outcome is a core that makes another plan of what it knows.
func outcome(change func(w *World, plan *Plan)) func(*sim) {
	return func(s *sim) {
		s.every = 4
		s.decide = func(w World) Plan {
			plan := Decide(w)
			change(&w, &plan)
			return plan
		}
	}
}

func mistakes() []mistake {
	return []mistake{
		{"maxUnavailable is not asked", []int{1}, everyPool(func(p *Pool) { p.rules.maxUnavailable = amount{100, true} })},
		{"a frozen pool moves", []int{1}, func(s *sim) {
			everyPool(func(p *Pool) {
				if p.rules.maxUnavailable.value == 0 {
					p.rules.maxUnavailable = amount{1, false}
				}
			})(s)
			s.maxUnavailable = []string{"0"}
		}},
		{"control planes are nodes as others", []int{1}, everyNode(func(n *Node) { n.ControlPlane = false })},
		{"who waits for its pods takes nothing", []int{1}, everyNode(func(n *Node) {
			if n.Reason == nodev1.ReasonWouldDisrupt {
				n.Reason, n.Active = nodev1.ReasonInTrial, n.Source
			}
		})},
		{"waves are not asked", []int{2}, everyPool(func(p *Pool) { p.rules.waves = []wave{{nodes: amount{100, true}}} })},
		{"all nodes are of one cohort", []int{2}, everyNode(func(n *Node) { n.Minor, n.Arch = "v1", "any" })},
		{"a person's assignment is ours", []int{3}, everyNode(func(n *Node) {
			if n.Mark.Pool != "" {
				n.Source = n.Mark.Assignment
			}
		})},
		{"the label hold is not read", []int{3}, everyNode(func(n *Node) {
			if held(n) {
				n.Labels = maps.Clone(n.Labels)
				delete(n.Labels, RolloutLabel)
			}
		})},
		{"stops are forgotten", []int{4}, everyPool(func(p *Pool) { p.Status.Stops = nil })},
		{"a stop is of one attempt alone", []int{4}, everyPool(func(p *Pool) {
			p.Status.Stops = slices.DeleteFunc(slices.Clone(p.Status.Stops), func(stop v1alpha1.Stop) bool { return stop.Attempt != 1 })
		})},
		{"a word that was heard is heard again", []int{4}, everyPool(func(p *Pool) { p.Status.Retries = nil })},
		{"a word lifts the stops of all revisions", []int{4}, outcome(func(w *World, plan *Plan) {
			for i := range w.Pools {
				if status, is := plan.Status[w.Pools[i].Name]; is {
					status.Stops = slices.Clone(status.Stops)
					for j := range status.Stops {
						if before := attemptOf(w.Pools[i].Status.Stops, status.Stops[j].Hash); before > 0 {
							status.Stops[j].Attempt = before
						}
					}
					plan.Status[w.Pools[i].Name] = status
				}
			}
		})},
		{"verdicts are seen late", []int{1, 5}, everyNode(func(n *Node) {
			if final(n.Reason) {
				n.Reason = nodev1.ReasonApplying
			}
		})},
		{"all writes are sent at once", []int{5, 7}, outcome(func(_ *World, plan *Plan) {
			if n := len(plan.Writes); n > 4 {
				plan.Writes = append(plan.Writes, plan.Writes...)
			}
		})},
		{"nodes that have vanished count", []int{1, 6, 20}, ghosts()},
		{"what was sent is forgotten, and a conflict blindly retried", []int{1, 2, 7}, func(s *sim) { s.forgetsSent, s.blind = true, true }},
		{"the lease is not asked", []int{1, 2, 4, 7}, func(s *sim) { s.ignoresLease, s.freezes = true, true }},
		{"a layer that is not there is empty", []int{9}, world(func(w *World) {
			ref := Ref{"fleet", "kubelet"}
			if layer, is := w.Layers[ref]; !is || layer.Missing {
				w.Layers = map[Ref]Layer{ref: {Patch: "{}"}}
			}
		})},
		{"a cache that is not synced is believed", []int{9}, world(func(w *World) { w.Synced = true })},
		{"time is the difference of two clocks", []int{10, 17, 20}, wallClock()},
		{"a tie goes to the first name", []int{6, 11}, everyPool(func(p *Pool) {
			if p.Name == "a" {
				p.Spec.Priority += 100
			}
		})},
		{"new nodes get what is being tried", []int{4, 12}, outcome(func(w *World, plan *Plan) {
			for i := range plan.Writes {
				for _, p := range w.Pools {
					if write := &plan.Writes[i]; write.Why == WhyJoin && p.Name == write.Pool && write.Source != "" && p.Status.Target != nil {
						write.Retry.Hash = p.Status.Target.Hash
					}
				}
			}
		})},
		{"a resourceVersion is content", []int{13}, world(func(w *World) {
			layers := map[Ref]Layer{}
			for ref, layer := range w.Layers {
				layer.Patch = strings.Replace(layer.Patch, "{", `{"version":"`+layer.ResourceVersion+`",`, 1)
				layers[ref] = layer
			}
			w.Layers = layers
		})},
		{"who leaves a pool is reset", []int{14}, outcome(func(w *World, plan *Plan) {
			for i := range w.Nodes {
				if n := &w.Nodes[i]; n.Mark.Pool != "" && n.Labels[PoolLabel] == "none" && len(plan.Writes) < rate {
					plan.Writes = append(plan.Writes, Write{Node: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Pool: n.Mark.Pool, Source: nodev1.Local})
				}
			}
		})},
		{"doubt holds up the way back, too", []int{16}, everyPool(func(p *Pool) { p.Spec.Rollout.Paused = p.Spec.Rollout.Paused || p.Spec.Rollout.Pin != nil })},
		{"the status tells the time", []int{17}, outcome(func(w *World, plan *Plan) {
			for _, p := range w.Pools {
				if _, is := plan.Status[p.Name]; !is {
					plan.Status[p.Name] = p.Status
				}
			}
		})},
		{"every taint is ours", []int{18}, outcome(func(_ *World, plan *Plan) {
			for i := range plan.Writes {
				if plan.Writes[i].RemoveTaint != "" {
					plan.Writes[i].RemoveTaint = "other"
				}
			}
		})},
		{"paused is not read", []int{19}, everyPool(func(p *Pool) { p.Spec.Rollout.Paused = false })},
		{"zones are not asked", []int{15}, world(func(w *World) {
			for i := range w.Pools {
				w.Pools[i].rules.topology = topology{}
			}
			w.Budgets = slices.Clone(w.Budgets)
			for i := range w.Budgets {
				w.Budgets[i].topology = topology{}
			}
		})},
		{"a window is always open", []int{19}, everyPool(func(p *Pool) { p.rules.windows = windows{} })},
		{"budgets are not asked", []int{15, 21}, world(func(w *World) { w.Budgets = nil })},
		{"pods may always die", []int{3}, everyPool(func(p *Pool) { p.rules.disrupts = true })},
		{"every cordon is ours", []int{18}, everyNode(func(n *Node) {
			if n.Cordoned && n.Mark.Pool != "" {
				n.Cordoned, n.Draining, n.Drain = false, true, Drain{Pool: n.Mark.Pool, Hash: n.Retry.Hash}
			}
		})},
		{"a drain has no end", []int{18}, everyPool(func(p *Pool) { p.rules.drainTimeout = veryLong })},
		{"who was drained in vain is drained again", []int{18}, everyNode(func(n *Node) {
			if n.Drain.Over != "" {
				n.Drain = Drain{}
			}
		})},
		{"a cordon is left behind", []int{18}, outcome(func(_ *World, plan *Plan) {
			plan.Writes = slices.DeleteFunc(plan.Writes, func(w Write) bool { return w.Why == WhyUndrain && w.Drain.Pool == "" })
		})},
		{"who comes first is served first", []int{20}, outcome(func(w *World, plan *Plan) {
			at := func(a Write) int { return slices.IndexFunc(w.Nodes, func(n Node) bool { return n.UID == a.UID }) }
			slices.SortFunc(plan.Writes, func(a, b Write) int { return at(a) - at(b) })
		})},
	}
}

// ghosts is a core whose list of nodes only grows.
func ghosts() func(*sim) {
	return func(s *sim) {
		known := map[types.UID]Node{}
		s.decide = func(w World) Plan {
			for _, n := range w.Nodes {
				known[n.UID] = n
			}
			w.Nodes = slices.Clone(w.Nodes)
			for uid, n := range known {
				if !slices.ContainsFunc(w.Nodes, func(n Node) bool { return n.UID == uid }) {
					w.Nodes = append(w.Nodes, n)
				}
			}
			return Decide(w)
		}
	}
}

// wallClock is a core that takes a step of the API server's clock for time that has passed.
func wallClock() func(*sim) {
	return world(func(w *World) { w.Elapsed += w.Now.Sub(simEpoch).Truncate(time.Hour) })
}

// comparesPlans: to see that such an invariant breaks takes another plan to compare with.
func comparesPlans(invariant int) bool { return slices.Contains([]int{10, 13, 16, 17, 20}, invariant) }

// Each mistake is found out, by the invariant that it breaks.
func TestMistakesAreFoundOut(t *testing.T) {
	for _, m := range mistakes() {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 2000; seed++ {
				_, fault := live(seed, schedule(seed, eventsEach), func(s *sim) {
					if m.change(s); !slices.ContainsFunc(m.invariants, comparesPlans) {
						s.every = 1 << 30
					}
				})
				if fault == nil {
					continue
				}
				if !slices.Contains(m.invariants, fault.invariant) {
					t.Errorf("seed %d breaks invariant %d instead of %v: %s", seed, fault.invariant, m.invariants, fault.words)
				}
				t.Logf("after %d schedules, by invariant %d: %.300s", seed, fault.invariant, fault.words)
				return
			}
			t.Error("nobody has noticed")
		})
	}
}
