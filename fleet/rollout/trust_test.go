package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// trusting is a core that takes what one cohort has completed for completed by all.
func trusting(s *sim) {
	everyPool(func(p *Pool) {
		p.Status.Revisions = slices.Clone(p.Status.Revisions)
		for i := range p.Status.Revisions {
			r := &p.Status.Revisions[i]
			for _, c := range r.ProvenIn[:min(1, len(r.ProvenIn))] {
				r.ProvenIn = append(slices.Clone(r.ProvenIn), v1alpha1.CohortProof{Cohort: "v1.37/amd64/" + c.Cohort[strings.LastIndexByte(c.Cohort, '/')+1:]})
			}
			r.ProvenIn = r.ProvenIn[max(0, len(r.ProvenIn)-4):]
		}
	})(s)
}

func newerKubelets(mistaken func(*sim)) string {
	s := agedScript(30)
	s.mistaken(mistaken)
	s.upgrade(true)
	s.layer(string(good))
	s.run(3 * time.Hour)
	if len(s.ran) != 1 || !s.stopped() {
		return fmt.Sprintf("%d of 30 nodes ran it, stopped: %v", len(s.ran), s.stopped())
	}
	return ""
}

// aged is a fleet that has completed one revision and then another, all with kubelets 1.36.
func aged(t *testing.T, nodes int) *script {
	t.Helper()
	s := agedScript(nodes)
	if !s.completed() {
		t.Fatal("the revision is not completed")
	}
	return s
}

func agedScript(nodes int) *script {
	s := newScript(nodes, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("10%") })
	for _, text := range []string{"", `,"maxPods":99`} {
		s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
			spec.Layers = []v1alpha1.Layer{inline("fleet", `{"logging":{"format":"good"}`+text+`}`)}
		})
		s.run(10 * time.Second)
		s.until(s.completed, 6*time.Hour)
	}
	s.run(time.Minute)
	return s
}

// upgrade gives all nodes a newer kubelet, which the first revision kills.
func (s *script) upgrade(kills bool) {
	first := s.api.revisions["a"][0]
	v, _ := newVariants(&first).variantFor(nil)
	if kills {
		s.api.natures[v.source] = dying
	}
	for _, m := range s.api.machines {
		m.Minor, m.BootID, m.dirty = "v1.37", "boot-37", true
		clear(m.begun)
	}
	s.run(time.Minute)
}

// Each way back to what was completed long ago, with kubelets that are newer now.
func waysBack() map[string]func(*script) {
	return map[string]func(*script){
		"the layers are reverted": func(s *script) { s.layer(string(good)) },
		"it is pinned":            func(s *script) { s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = pinned(1) }) },
		"a pin is taken away": func(s *script) {
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = pinned(2) })
			s.layer(string(good))
			s.run(time.Minute)
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Pin = nil })
		},
	}
}

// What was completed under another kubelet needs a canary again, and stops at harm.
func TestCompletedUnderAnotherKubelet(t *testing.T) {
	for name, back := range waysBack() {
		t.Run(name+", and it is deadly by now", func(t *testing.T) {
			s := aged(t, 30)
			s.upgrade(true)
			back(s)
			s.run(3 * time.Hour)
			if len(s.ran) != 1 || !s.stopped() {
				t.Errorf("%d of 30 nodes ran it, stopped: %v", len(s.ran), s.stopped())
			}
		})
		t.Run(name+", and it is good", func(t *testing.T) {
			s := aged(t, 30)
			s.upgrade(false)
			back(s)
			s.run(time.Minute)
			if most := s.pool().Status.Nodes; most.Applying+most.OnTrial+most.Proven > 1 {
				t.Errorf("a minute later: %+v", most)
			}
			if !s.until(s.completed, 3*time.Hour) {
				t.Errorf("it is not completed: %+v", s.pool().Status.Nodes)
			}
		})
	}
	t.Run("where it is proven, the way back needs none", func(t *testing.T) {
		s := aged(t, 30)
		s.layer(string(good))
		s.run(30 * time.Second)
		if n := s.pool().Status.Nodes; n.Applying+n.OnTrial < 3 {
			t.Errorf("half a minute later: %+v", n)
		}
	})
	t.Run("where it is proven for some, these go back beside a stop", func(t *testing.T) {
		s := aged(t, 30)
		s.upgrade(true)
		for i, uid := range s.api.names {
			if i%2 == 0 {
				m := s.api.machines[uid]
				m.Minor, m.dirty = "v1.36", true
			}
		}
		v, _ := newVariants(&s.api.revisions["a"][0]).variantFor(nil)
		s.each = func(s *script) { // it kills kubelets 1.37 alone
			for _, m := range s.api.machines {
				m.natureOf = func(source string) nature {
					if source == v.source && m.Minor == "v1.36" {
						return good
					}
					return s.api.natures[source]
				}
			}
		}
		s.run(time.Second)
		s.layer(string(good))
		s.run(3 * time.Hour)
		if !s.stopped() || s.with(v.source) < 15 {
			t.Errorf("stopped: %v, %d nodes have gone back", s.stopped(), s.with(v.source))
		}
		if failed := s.pool().Status.Nodes.Failed; failed != 1 {
			t.Errorf("%d nodes were harmed", failed)
		}
	})
}

// The proofs are kept in the status, a few of each revision, and not of all revisions without end.
func TestProofsAreKept(t *testing.T) {
	s := aged(t, 6)
	for _, r := range s.pool().Status.Revisions {
		if len(r.ProvenIn) != 1 || !strings.HasPrefix(r.ProvenIn[0].Cohort, "v1.36/amd64/") {
			t.Errorf("revision %d is proven in %v", r.Revision, r.ProvenIn)
		}
	}
	s.upgrade(false)
	s.run(6 * time.Minute)
	if r := s.pool().Status.Revisions[0]; len(r.ProvenIn) != 2 || !strings.HasPrefix(r.ProvenIn[0].Cohort, "v1.37/amd64/") {
		t.Errorf("after all run it under another kubelet it is proven in %v", r.ProvenIn)
	}

	var many []v1alpha1.RevisionStatus
	for range 20 {
		many = append(many, v1alpha1.RevisionStatus{ProvenIn: make([]v1alpha1.CohortProof, proofLimit)})
	}
	boundProofs(many, "none")
	if len(many[0].ProvenIn) != proofLimit || len(many[7].ProvenIn) != proofLimit || len(many[8].ProvenIn) != 0 {
		t.Error("the oldest are not those that are forgotten")
	}
}

// Undo goes back in time, not by numbers: content that comes back keeps its number.
func TestWhatWasCompletedBefore(t *testing.T) {
	s := aged(t, 6)
	read := func() *Pool {
		p := ReadPool(s.pool(), s.api.revisions["a"], time.LoadLocation)
		return &p
	}
	if before := read().Before(); before == nil || before.Number != 1 {
		t.Errorf("before revision 2 there was %+v", before)
	}
	s.layer(string(good)) // A, B, A
	s.run(10 * time.Second)
	s.until(s.completed, time.Hour)
	if before := read().Before(); before == nil || before.Number != 2 {
		t.Errorf("before revision 1 there was %+v", before)
	}
	limit := int32(1)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.RevisionHistoryLimit = &limit })
	for i := range 5 { // superseded in their canaries
		s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
			spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":`+string(rune('1'+i))+`}`)}
		})
		s.run(10 * time.Second)
	}
	w := World{Synced: true, Pools: []Pool{*read()}}
	gone, _ := Collect(w, "a", nil)
	kept := slices.Collect(maps.Values(map[int]string{1: s.api.revisions["a"][0].ObjectName(), 2: s.api.revisions["a"][1].ObjectName()}))
	for _, name := range kept {
		if slices.Contains(gone, name) {
			t.Errorf("%s is collected, which an undo may go to; of %v", name, gone)
		}
	}
}
