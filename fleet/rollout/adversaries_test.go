package rollout

import (
	"slices"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// script is a cluster in which only what the script says goes wrong.
type script struct {
	*sim
	ran  map[string]bool // the nodes that ever ran, or tried, something of nature bad
	most int             // of our changes at once
	each func(*script)   // what others do after each second
}

func newScript(nodes int, natureText string, change func(*v1alpha1.KubeletPool)) *script {
	s := &script{sim: newSim(1, func(s *sim) { s.every = 1 << 30 }), ran: map[string]bool{}}
	s.api, s.nodes = newAPIServer(), 0
	s.api.pools["a"] = newPool("a", func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"logging":{"format":"`+natureText+`"}}`)}
		if change != nil {
			change(p)
		}
	})
	for range nodes {
		s.node(nil)
	}
	s.restart(s.controllers[0])
	s.restart(s.controllers[1])
	return s
}

func (s *script) node(change func(*machine)) *machine {
	return s.addMachine(func(m *machine) {
		*m = machine{random: m.random, natureOf: m.natureOf, running: nodev1.Local, good: nodev1.Local, begun: m.begun, dirty: true, Node: Node{Name: m.Name, UID: m.UID,
			Labels: map[string]string{"pool": "a"}, Created: s.wall().Add(-time.Hour), Ready: true, Minor: "v1.36", Arch: "amd64", Supervised: true,
			Layered: true, Active: nodev1.Local, Good: nodev1.Local, Reason: nodev1.ReasonLocal, BootID: "boot"}}
		if change != nil {
			change(m)
		}
	})
}

// run lets time go by, second by second, with a controller that hears everything at once.
func (s *script) run(d time.Duration) {
	for end := s.now + d; s.now < end; {
		s.pass(time.Second)
		c := s.controllers[s.leader()]
		c.lead()
		c.hear(true)
		c.reconcile(0, 0)
		busy := 0
		for _, m := range s.api.machines {
			if m.Reason == nodev1.ReasonApplying {
				busy++
			}
			for _, source := range m.begun {
				if bad := s.api.natureOf(source); bad == dying || bad == unready {
					s.ran[string(m.UID)] = true
				}
			}
		}
		s.most = max(s.most, busy)
		if s.each != nil {
			s.each(s)
		}
		for _, m := range s.api.machines {
			if m.dirty {
				s.api.stamp(m)
			}
		}
	}
}

func (s *script) pool() *v1alpha1.KubeletPool { return s.api.pools["a"] }

func (s *script) edit(change func(*v1alpha1.KubeletPoolSpec)) {
	p := s.pool().DeepCopy()
	p.Generation++
	change(&p.Spec)
	s.api.pools["a"] = p
}

func (s *script) layer(natureText string) {
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
		spec.Layers = []v1alpha1.Layer{inline("fleet", `{"logging":{"format":"`+natureText+`"}}`)}
	})
}

// until lets time go by until something is so, but not for longer than that.
func (s *script) until(is func() bool, limit time.Duration) bool {
	for end := s.now + limit; s.now < end && !is(); {
		s.run(time.Second)
	}
	return is()
}

func (s *script) completed() bool {
	p := s.pool().Status
	return p.Stable != nil && !p.Stable.Local && p.Stable.Hash == p.Target.Hash
}

func (s *script) stopped() bool {
	return slices.ContainsFunc(s.pool().Status.Stops, func(stop v1alpha1.Stop) bool { return stop.Hash == s.pool().Status.Target.Hash })
}

func (s *script) with(source string) (n int) {
	for _, m := range s.api.machines {
		if m.Source == source {
			n++
		}
	}
	return n
}

// adversary is somebody who means well, and the mistake that lets the harm through.
type adversary struct {
	name    string
	mistake func(*sim)
	play    func(mistaken func(*sim)) (fault string)
}

func adversaries() []adversary {
	return []adversary{
		{"remediation labels a node that is rolled back", handsOff(held), remediation(func(s *script, m *machine) { s.api.relabel(m, RolloutLabel, "hold") })},
		{"remediation cordons a node that is rolled back", handsOff(func(n *Node) bool { return n.Cordoned }),
			remediation(func(_ *script, m *machine) { m.Cordoned, m.dirty = true, true })},
		{"remediation takes a node that is rolled back out of the pool", handsOff(func(n *Node) bool { return n.Labels[PoolLabel] == "none" }),
			remediation(func(s *script, m *machine) { s.api.relabel(m, PoolLabel, "none") })},
		{"an autohealer deletes nodes that are not Ready", forgetful, autohealer},
		{"pods end everywhere at once", world(waitingIsNothing), podsEnd},
		{"a canary stays NotReady and is then undone", world(backIsForward), undone},
		{"a selector is widened over a hundred Ready nodes", world(func(w *World) {
			for i := range w.Nodes {
				if n := &w.Nodes[i]; n.Source == "" && n.Labels["wide"] != "" {
					n.Ready, n.Created = false, w.Now
				}
			}
		}), widened},
		{"a version of the kubelet first appears in wave 3", everyNode(func(n *Node) { n.Minor = "any" }), newVersion},
		{"a word to try again is taken away, and put back", everyPool(func(p *Pool) {
			p.Status.Retries = slices.DeleteFunc(slices.Clone(p.Status.Retries), func(word string) bool { return word == "one" })
		}), heardBefore},
		{"a stalled leader with a stale cache", func(s *sim) { s.ignoresLease = true }, stalled},
		{"one Node whose PATCH is refused", world(func(w *World) { w.Denied = nil }), patchRefused},
		{"kubelets get newer, and the layers are reverted", trusting, newerKubelets},
		{"remediation deletes what the stable revision kills in a new cohort", world(func(w *World) {
			w.Gone = nil
			for i := range w.Pools {
				w.Pools[i].Status.Revisions = slices.Clone(w.Pools[i].Status.Revisions)
				for j := range w.Pools[i].Status.Revisions {
					w.Pools[i].Status.Revisions[j].FailedIn = nil
				}
			}
		}), newCohort},
		{"a kubelet is upgraded, and dies", everySeen(func(seen *Seen) { seen.Upgraded = false }), upgraded},
		{"a canary flaps", everySeen(func(seen *Seen) {
			if seen.Ready {
				seen.IllFor = 0
			}
		}), flapping},
		{"labels flap in a rollout", everySeen(func(seen *Seen) { seen.AsksFor = time.Hour }), labelsFlap},
		{"a GPU node joins", world(func(w *World) { // layers are those of the pool, not of the node
			for i := range w.Nodes {
				w.Nodes[i].Labels = map[string]string{"pool": "a"}
			}
		}), gpuJoins},
	}
}

// Each of them was seen to do harm in an earlier design; each does so again with the mistake.
func TestAdversaries(t *testing.T) {
	for _, a := range adversaries() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if fault := playSafe(a.play, nil); fault != "" {
				t.Error(fault)
			}
			fault := playSafe(a.play, a.mistake)
			if fault == "" {
				t.Error("the mistake does no harm: the script shows nothing")
			}
			t.Logf("with the mistake: %.200s", fault)
		})
	}
}

func playSafe(play func(func(*sim)) string, mistaken func(*sim)) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			b, is := r.(broken)
			if !is {
				panic(r)
			}
			fault = b.words
		}
	}()
	return play(mistaken)
}

func (s *script) mistaken(change func(*sim)) *script {
	if change != nil {
		change(s.sim)
		s.every = 1 << 30
		s.restart(s.controllers[0])
		s.restart(s.controllers[1])
	}
	return s
}

// handsOff is a core that does not look at nodes that somebody has taken aside.
func handsOff(aside func(*Node) bool) func(*sim) {
	return everyNode(func(n *Node) {
		if aside(n) {
			n.Mark, n.Retry, n.Observed, n.Reason = Mark{}, Retry{}, "", ""
		}
	})
}
