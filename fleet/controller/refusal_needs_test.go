package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// spread makes nodes of a kubelet each, so that no cohort waits for another.
func (s *stage) spread(prefix, pool string, n int) {
	for i := range n {
		o := s.node(fmt.Sprint(prefix, i))
		o.Labels = map[string]string{"pool": pool}
		o.Status.NodeInfo.KubeletVersion = fmt.Sprintf("v1.%d.0", 20+i)
		s.api.put(o)
	}
}

// lazily takes turns when the controller asks for them, as in a cluster in which nothing happens, until something is so.
func (s *stage) lazily(is func() bool) (took time.Duration) {
	s.Helper()
	for began := time.Now(); ; {
		again, err := s.turn()
		switch took = time.Since(began); {
		case is() || took > 5*time.Minute:
			return took
		case err != nil:
			s.Log(err)
			again = time.Second
		case again == 0:
			again = longestElapsed
		}
		time.Sleep(again)
	}
}

// A pool with more to write than a plan has, all of which is refused, costs the others no turn, also where nothing else makes one.
func TestARefusedPoolWithMuchToWriteStopsNoOther(t *testing.T) {
	for _, prefix := range []string{"create ConfigMap/pool-a-", "create ControllerRevision/a-", "patch status of KubeletPool/a"} {
		t.Run(prefix, func(t *testing.T) {
			play(t, func(s *stage) {
				s.spread("n", "a", 12)
				s.pool(wide)
				s.secondPool()
				s.refuse(prefix)
				inner := s.api.before
				s.api.before = func(request string) error { time.Sleep(20 * time.Millisecond); return inner(request) }
				if took := s.lazily(func() bool { return len(s.assigned()) > 0 }); took > 2*time.Second || s.assigned()[0][0] != 'b' {
					t.Errorf("the other pool's first node was assigned after %v: %v", took, s.assigned())
				}
			})
		})
	}
}

func wide(p *v1alpha1.KubeletPool) {
	atOnce(p)
	p.Spec.Rollout.Waves = p.Spec.Rollout.Waves[1:]
}

// alone are turns in which no node answers.
func (s *stage) alone(n int) {
	for range n {
		if _, err := s.turn(); err != nil {
			s.Log(err)
		}
		time.Sleep(time.Second)
	}
}

func (s *stage) edit(change func(p *v1alpha1.KubeletPool)) {
	p := s.poolNow()
	p.Generation++
	change(p)
	s.api.put(p)
}

func maxPods300(p *v1alpha1.KubeletPool) {
	p.Spec.Layers[0].Inline = &runtime.RawExtension{Raw: []byte(`{"maxPods":300}`)}
}

// made are the ConfigMaps of pool a, in the order in which they were asked for.
func (s *stage) made() (names []string) {
	for _, request := range s.api.asked("create ConfigMap/pool-a-") {
		if name := strings.TrimPrefix(request, "create "); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// with are the nodes that are assigned a ConfigMap.
func (s *stage) with(object string) (nodes []*corev1.Node) {
	name := strings.TrimPrefix(object, "ConfigMap/")
	for _, o := range s.api.stored {
		if n, is := o.(*corev1.Node); is && strings.Contains(n.Annotations[nodev1.ConfigSourceAnnotation], "/"+name+"/") {
			nodes = append(nodes, n.DeepCopy())
		}
	}
	return nodes
}

// A verdict is heard and kept although a ConfigMap that somebody has deleted cannot be made anew: also when the node, and this process, are gone.
func TestAVerdictWhileARepairIsRefused(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(6)
		s.pool(atOnce)
		s.turns(20)
		s.edit(maxPods300)
		s.alone(3)
		s.refuse("create ConfigMap/pool-a-")
		s.api.remove(s.made()[0])
		s.alone(2)
		bad := s.made()[1]
		canary := s.with(bad)[0]
		s.say(canary, "Rejected")
		s.alone(60)
		if now := s.poolNow(); len(now.Status.Stops) != 1 || !s.told(rollout.EventRolloutStopped) {
			t.Errorf("a minute after a verdict it says %q, stops %v", s.says("a"), now.Status.Stops)
		}
		s.api.remove("Node/" + canary.Name)
		s.alone(3)
		s.again()
		s.refuse("")
		s.alone(60)
		if again := s.with(bad); len(again) > 0 {
			t.Errorf("what was rejected is assigned to %s: %s", again[0].Name, s.says("a"))
		}
	})
}

// Nodes go back although what they come from was deleted, and cannot be made anew.
func TestAnUndoWhileARepairIsRefused(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(6)
		s.pool(atOnce)
		s.turns(20)
		s.edit(maxPods300)
		s.turns(30)
		s.refuse("create " + s.made()[1])
		s.api.remove(s.made()[1])
		s.turns(5)
		s.edit(func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Pin = &v1alpha1.Pin{Revision: 1} })
		s.turns(30)
		if back := s.with(s.made()[0]); len(back) != 6 {
			t.Errorf("half a minute after the undo %d of 6 have gone back: %s", len(back), s.says("a"))
		}
	})
}

// An object that does not go away, for somebody's finalizer, holds up the pool that needs it, and no other.
func TestAnObjectThatDoesNotGoAway(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(atOnce)
		s.secondPool()
		var stays *corev1.ConfigMap
		s.api.before = func(request string) error {
			if name, is := strings.CutPrefix(request, "create ConfigMap/"); is && strings.HasPrefix(name, "pool-a-") && stays == nil {
				stays = &corev1.ConfigMap{ObjectMeta: objectMeta("a", name), Data: map[string]string{"kubelet": "x"}}
				s.api.put(stays)
			}
			return nil
		}
		s.api.after = func(request string) error {
			if strings.HasPrefix(request, "delete ConfigMap/pool-a-") {
				s.api.put(stays.DeepCopy())
			}
			return nil
		}
		s.turns(60)
		if a, b := s.says("a"), s.says("b"); !strings.HasPrefix(a, "Held: ") || !strings.HasPrefix(b, "Completed") {
			t.Errorf("they say %q and %q", a, b)
		}
	})
}

// quietly takes turns for so long as the controller asks for them.
func (s *stage) quietly(d time.Duration) (turns int) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); turns++ {
		again, err := s.turn()
		if err != nil {
			s.Log(err)
			again = time.Second
		} else if again == 0 {
			again = longestElapsed
		}
		time.Sleep(again)
	}
	return turns
}

// gpu gives the nodes of that label a variant of their own.
func gpu(p *v1alpha1.KubeletPool) {
	wide(p)
	p.Spec.Layers = append(p.Spec.Layers, v1alpha1.Layer{Name: "gpu", Inline: &runtime.RawExtension{Raw: []byte(`{"maxPods":60}`)},
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}})
}

func (s *stage) gpuNode(name string, ready corev1.ConditionStatus) {
	n := s.node(name).DeepCopy()
	n.Labels["gpu"] = "true"
	n.Status.Conditions[0].Status = ready
	s.api.put(n)
}

// A refusal is forgotten once its object is there, by whatever answer, and once nobody needs it. Nobody spins until then.
func TestARefusalIsForgotten(t *testing.T) {
	for name, begins := range map[string]func(s *stage){
		"it was taken all the same": func(s *stage) {
			s.pool(wide)
			s.api.after = func(request string) error {
				if strings.HasPrefix(request, "create ConfigMap/pool-a-") && len(s.made()) == 1 {
					return apierrors.NewTimeoutError("no answer in the time allotted", 0)
				}
				return nil
			}
		},
		"who needs it is away": func(s *stage) {
			s.gpuNode("g", corev1.ConditionTrue)
			s.pool(gpu)
			s.refuse("create ConfigMap/pool-a-")
			s.quietly(5 * time.Second)
			s.refuse("")
			s.gpuNode("g", corev1.ConditionFalse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				begins(s)
				s.spread("n", "a", 12)
				turns := s.quietly(20 * time.Second)
				if got := len(s.assigned()); got < 8 || turns > 100 || len(s.owned.refusedVariants.all) > 0 {
					t.Errorf("%d turns, and %d are assigned: %s; refused %v", turns, got, s.says("a"), s.owned.refusedVariants.all)
				}
			})
		})
	}
}

// Two variants that are refused make no status that changes to and fro.
func TestTwoVariantsAreRefused(t *testing.T) {
	for k := range 4 {
		play(t, func(s *stage) {
			s.api.version += k // another uid, and another order of nodes
			s.node("a0")
			s.gpuNode("b0", corev1.ConditionTrue)
			s.pool(gpu)
			s.refuse("create ConfigMap/pool-a-")
			inner := s.api.before
			s.api.before = func(request string) error { time.Sleep(5 * time.Millisecond); return inner(request) }
			s.quietly(3 * time.Minute)
			if n := len(s.api.asked("patch status of KubeletPool/a")); n > 3 {
				t.Errorf("its status was written %d times in 3 minutes in which nothing changed", n)
			}
			if n := len(s.api.asked("create ConfigMap/pool-a-")); n < 20 || n > 60 {
				t.Errorf("it was tried %d times in 3 minutes", n)
			}
		})
	}
}

// A webhook that hangs for one pool stops no other.
func TestAWebhookThatHangs(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.secondPool()
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "create ConfigMap/pool-a-") {
				time.Sleep(requestTime)
				return fmt.Errorf("Post: %w", context.DeadlineExceeded)
			}
			return nil
		}
		s.turns(60)
		if a, b := s.says("a"), s.says("b"); !strings.HasPrefix(a, "Held: ") || !strings.HasPrefix(b, "Completed") {
			t.Errorf("they say %q and %q", a, b)
		}
	})
}

// Who has waited for longest is tried again first, so that slow refusals of some starve no other.
func TestSlowRefusalsStarveNobody(t *testing.T) {
	play(t, func(s *stage) {
		for _, pool := range []string{"a", "b", "c"} {
			s.spread(pool, pool, 8)
			s.pool(func(p *v1alpha1.KubeletPool) {
				wide(p)
				p.Name, p.Spec.Selector.MatchLabels = pool, map[string]string{"pool": pool}
				for i := range 8 {
					p.Spec.Layers = append(p.Spec.Layers, v1alpha1.Layer{Name: fmt.Sprint("l", i), Inline: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"maxPods":%d}`, 60+i)},
						NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node": fmt.Sprint(pool, i)}}})
				}
			})
			for i := range 8 {
				n := s.api.stored[fmt.Sprintf("Node/%s%d", pool, i)].DeepCopyObject().(*corev1.Node)
				n.Labels["node"] = n.Name
				s.api.put(n)
			}
		}
		s.spread("z", "z", 1)
		s.pool(func(p *v1alpha1.KubeletPool) {
			wide(p)
			p.Name, p.Spec.Selector.MatchLabels = "z", map[string]string{"pool": "z"}
		})
		free := false
		s.api.before = func(request string) error {
			switch {
			case !strings.HasPrefix(request, "create ConfigMap/pool-"), free && strings.HasPrefix(request, "create ConfigMap/pool-z"):
				return nil
			case !strings.HasPrefix(request, "create ConfigMap/pool-z"):
				time.Sleep(time.Second)
			}
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "x", fmt.Errorf("exceeded quota: small"))
		}
		s.quietly(5 * time.Minute)
		free = true
		s.quietly(2 * time.Minute)
		if got := s.assigned(); len(got) != 1 || got[0] != "z0" {
			t.Errorf("2 minutes after the last pool's quota is gone %v are assigned: %s; it was tried %d times", got, s.says("z"), len(s.api.asked("create ConfigMap/pool-z")))
		}
	})
}

// A status that was refused, and then somebody else has written, makes nobody spin.
func TestAConflictOfARefusedStatus(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.refuse("patch status of KubeletPool/a")
		s.quietly(5 * time.Second)
		conflicts := 0
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch status of KubeletPool/a") && conflicts == 0 {
				conflicts++
				return apierrors.NewConflict(corev1.Resource("kubeletpools"), "a", fmt.Errorf("somebody was faster"))
			}
			return nil
		}
		for conflicts == 0 {
			s.quietly(time.Millisecond)
		}
		if n := s.quietly(950 * time.Millisecond); n > 20 {
			t.Errorf("%d turns in less than a second", n)
		}
	})
}
