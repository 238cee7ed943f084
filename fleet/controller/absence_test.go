package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// writes are the requests that are no reads.
func (s *stage) writes() (writes []string) {
	for _, request := range s.api.asked("") {
		if !strings.HasPrefix(request, "get ") && !strings.HasPrefix(request, "list ") {
			writes = append(writes, request)
		}
	}
	return writes
}

// Nothing is written on the strength of a cache that is behind the API server, nor where that does not answer.
func TestACacheHasToBeCompleteFirst(t *testing.T) {
	for name, spoil := range map[string]func(s *stage){
		"empty":         func(s *stage) { s.cache.known, s.cache.frozen = objects{}, true },
		"a node short":  func(s *stage) { s.cache.sync(); delete(s.cache.known, "Node/n2"); s.cache.frozen = true },
		"a node behind": func(s *stage) { s.cache.sync(); s.cache.frozen = true; s.node("n2") },
		"a node more":   func(s *stage) { s.cache.sync(); s.cache.frozen = true; s.api.remove("Node/n3") },
		"a pool behind": func(s *stage) { s.cache.sync(); s.cache.frozen = true; s.api.put(s.poolNow()) },
		"no list": func(s *stage) {
			s.api.before = func(request string) error {
				if strings.HasPrefix(request, "list Node") {
					return apierrors.NewForbidden(resource("Node"), "", errors.New("no"))
				}
				return nil
			}
		},
		"no leader": func(s *stage) { s.leads.leads = false },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(3)
				s.pool(nil)
				spoil(s)
				s.turns(20)
				if got := s.writes(); len(got) > 0 {
					t.Errorf("it wrote %v", got)
				}
				s.cache.frozen, s.api.before, s.leads.leads = false, nil, true
				s.turns(20)
				if got := s.reason(); got != rollout.ReasonCompleted {
					t.Errorf("afterwards it is %s", got)
				}
			})
		})
	}
}

// A watch that fails lets the caches be compared again.
func TestAfterAFailedWatchTheCacheIsCompared(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(20)
		s.pool(nil)
		s.turns(1)
		before := len(s.writes())
		s.caches.watches.count.Add(1)
		s.cache.frozen = true
		s.turns(5)
		if got := s.writes()[before:]; len(got) > 0 {
			t.Errorf("it wrote %v", got)
		}
		s.cache.frozen = false
		s.turns(60)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("afterwards it is %s", got)
		}
	})
}

// A list that comes back empty does not make the nodes vanish: three that vanish at risk would stop a revision.
func TestNodesThatVanishFromTheCacheAreAskedFor(t *testing.T) {
	for _, n := range []int{4, 40} {
		play(t, func(s *stage) {
			s.nodes(n)
			s.pool(atOnce)
			s.turns(8)
			before := len(s.writes())
			s.cache.known, s.cache.frozen = objects{"KubeletPool/a": s.poolNow()}, true
			s.turns(5)
			if got := s.writes()[before:]; len(got) > 0 {
				t.Errorf("of %d nodes: it wrote %v", n, got)
			}
			s.cache.frozen = false
			s.turns(60)
			if got := s.reason(); got != rollout.ReasonCompleted {
				t.Errorf("of %d nodes: afterwards it is %s", n, got)
			}
		})
	}
}

// A layer is missing only where the API server says so; what it does not tell is not known, and holds.
func TestALayerThatIsNotThere(t *testing.T) {
	layered := func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet"}}}
	}
	layer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: "fleet"}, Data: map[string]string{"kubelet": "maxPods: 250"}}
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(layered)
		s.turns(5)
		if got := s.reason(); got != rollout.ReasonLayerMissing {
			t.Errorf("it is %s", got)
		}
		if got := s.api.asked("get ConfigMap/"); len(got) != 1 {
			t.Errorf("it asked %v", got)
		}
		s.api.put(layer.DeepCopy())
		s.turns(20)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("with the layer it is %s", got)
		}
		s.api.remove("ConfigMap/fleet")
		before := len(s.api.asked("patch Node"))
		s.turns(5)
		if got := s.reason(); got != rollout.ReasonLayerMissing || len(s.api.asked("patch Node")) > before {
			t.Errorf("without it again it is %s", got)
		}
	})
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(layered)
		s.api.before = func(request string) error {
			if request == "get ConfigMap/fleet" {
				return apierrors.NewForbidden(resource("ConfigMap"), "fleet", errors.New("no"))
			}
			return nil
		}
		s.turns(5)
		if got := s.reason(); got != rollout.ReasonRolling && got != "" || len(s.assigned()) > 0 {
			t.Errorf("it is %s, %v are assigned", got, s.assigned())
		}
	})
}

// What the API server does not tell of a layer is asked again although nothing happens, soon and then seldom. In a busy cluster it is asked no more.
func TestALayerThatIsNotKnownIsAskedForAgain(t *testing.T) {
	for _, busy := range []bool{false, true} {
		play(t, func(s *stage) {
			s.nodes(3)
			s.pool(func(p *v1alpha1.KubeletPool) {
				p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "nowhere"}}}
			})
			s.api.before = func(request string) error {
				if request == "get ConfigMap/nowhere" {
					return apierrors.NewForbidden(resource("ConfigMap"), "nowhere", errors.New("no"))
				}
				return nil
			}
			began := time.Now()
			if busy {
				s.turns(120)
			} else {
				s.lazily(func() bool { return time.Since(began) > 2*time.Minute })
			}
			if got := len(s.api.asked("get ConfigMap/nowhere")); got < 6 || got > 9 {
				t.Errorf("busy %v: in two minutes it asked %d times", busy, got)
			}
			s.api.before = nil
			if took := s.lazily(func() bool { return s.reason() == rollout.ReasonLayerMissing }); took > askedFor+time.Second {
				t.Errorf("busy %v: it knew after %v, and is %s", busy, took, s.reason())
			}
		})
	}
}

// What nodes run is there, whoever has deleted it or put something else in its place.
func TestAVariantIsMadeAnew(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.turns(20)
		var name string
		for key := range s.api.stored {
			if strings.HasPrefix(key, "ConfigMap/pool-a-") {
				name = key
			}
		}
		sound := *s.api.stored[name].(*corev1.ConfigMap)
		s.api.remove(name)
		time.Sleep(lagLimit)
		s.turns(2)
		if got := s.api.stored[name]; got == nil || got.(*corev1.ConfigMap).Data["kubelet"] != sound.Data["kubelet"] {
			t.Errorf("deleted by hand it is %v", got)
		}
		time.Sleep(remadeEvery)
		changed := sound.DeepCopy()
		changed.UID, changed.Data = types.UID("another"), map[string]string{"kubelet": `{"maxPods":1}`}
		s.api.put(changed)
		time.Sleep(lagLimit)
		s.turns(1)
		if got := meta.FindStatusCondition(s.poolNow().Status.Conditions, v1alpha1.ConditionStalled); got.Reason != rollout.ReasonRevisionTampered {
			t.Errorf("edited by hand the pool says %+v", got)
		}
		s.turns(2)
		if got := meta.FindStatusCondition(s.poolNow().Status.Conditions, v1alpha1.ConditionStalled); got.Reason != rollout.ReasonNotStalled {
			t.Errorf("made anew the pool says %+v", got)
		}
		if got := s.api.stored[name]; got == nil || got.(*corev1.ConfigMap).Data["kubelet"] != sound.Data["kubelet"] {
			t.Errorf("edited by hand it is %v", got)
		}
	})
}

// Revisions beyond the limit that nothing names are deleted, with their variants.
func TestOldRevisionsAreCollected(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(1)
		one := int32(1)
		s.pool(func(p *v1alpha1.KubeletPool) { p.Spec.RevisionHistoryLimit = &one })
		for i := range 4 {
			p := s.poolNow()
			p.Generation++
			p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":` + string(rune('1'+i)) + `0}`)
			s.api.put(p)
			s.turns(20)
		}
		s.turns(120)
		count := func(kind string) (n int) {
			for key := range s.api.stored {
				if strings.HasPrefix(key, kind) {
					n++
				}
			}
			return n
		}
		if r, v := count("ControllerRevision/"), count("ConfigMap/"); r != 3 || v != 3 { // the target, what an undo goes back to, and one more
			t.Errorf("there are %d revisions and %d variants", r, v)
		}
	})
}
