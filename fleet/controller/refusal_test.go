package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// refuse lets the API server refuse all requests that begin so, as a webhook or a quota does.
func (s *stage) refuse(prefix string) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	s.api.before = nil
	if prefix != "" {
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, prefix) {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), "pool-a", fmt.Errorf("exceeded quota: small"))
			}
			return nil
		}
	}
}

// secondPool is one that nothing is wrong with.
func (s *stage) secondPool() {
	for i := range 9 {
		n := s.node(fmt.Sprint("b", i))
		n.Labels = map[string]string{"pool": "b"}
		s.api.put(n)
	}
	s.pool(func(p *v1alpha1.KubeletPool) {
		p.Name, p.Spec.Selector.MatchLabels = "b", map[string]string{"pool": "b"}
	})
}

func (s *stage) says(pool string) string {
	var p v1alpha1.KubeletPool
	if err := s.api.stored.get("KubeletPool/"+pool, &p); err != nil {
		s.Fatal(err)
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// A pool whose objects the API server refuses waits and says why, with few requests; the others go on, and it does when the reason is gone.
func TestOnePoolThatIsRefusedStopsNoOther(t *testing.T) {
	const quota = `Held: keeping %s: configmaps "pool-a" is forbidden: exceeded quota: small`
	for prefix, want := range map[string]string{
		"create ConfigMap/pool-a-":      fmt.Sprintf(quota, "ConfigMap pool-a-*"),
		"create ControllerRevision/a-":  fmt.Sprintf(quota, "revision a-*"),
		"patch status of KubeletPool/a": "",
	} {
		t.Run(prefix, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(9)
				s.pool(nil)
				s.secondPool()
				s.refuse(prefix)
				s.turns(60)
				before, after, _ := strings.Cut(want, "*")
				if got := s.says("a"); !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
					t.Errorf("it says %q, not %q", got, want)
				}
				if got := s.says("b"); !strings.HasPrefix(got, "Completed") {
					t.Errorf("the other pool says %q", got)
				}
				for _, name := range s.assigned() {
					if strings.HasPrefix(name, "n") {
						t.Errorf("%s was assigned something", name)
					}
				}
				if got := len(s.api.asked(prefix)); got > 10 {
					t.Errorf("in a minute it asked %d times", got)
				}
				if got := len(s.api.asked("patch status of KubeletPool/a")); want != "" && got > 1 {
					t.Errorf("in a minute its status was written %d times", got)
				}
				if told := s.told(rollout.EventRolloutHeld); told != (want != "") {
					t.Errorf("there was an Event RolloutHeld: %v", told)
				}
				if clock := s.memory.clocks["a"]; clock.Elapsed > 0 {
					t.Errorf("its wave counts the time: %+v", clock)
				}
				s.refuse("")
				s.turns(40)
				for _, pool := range []string{"a", "b"} {
					if got := s.says(pool); !strings.HasPrefix(got, "Completed") {
						t.Errorf("with nothing in its way pool %s says %q", pool, got)
					}
				}
			})
		})
	}
}

// What is refused is tried again although nothing happens, and time that somebody waits for passes although nothing happens.
func TestWhatIsRefusedIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(nil)
		s.refuse("patch Node/n5")
		s.turns(60)
		if again, err := s.turn(); err != nil || again <= 0 || again > deniedFor {
			t.Errorf("it looks again after %v, %v", again, err)
		}
	})
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.turns(30)
		s.node("late")
		for range 3 {
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if again, err := s.turn(); err != nil || again <= 0 || again > longestElapsed || !slices.Contains(s.assigned(), "late") {
			t.Errorf("of %v one has not answered, and it looks again after %v, %v", s.assigned(), again, err)
		}
	})
}

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
		if n, is := o.(*corev1.Node); is && strings.Contains(n.Annotations[rollout.ConfigSourceAnnotation], "/"+name+"/") {
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
		s.edit(func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Pin = new(int64(1)) })
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
				stays = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: rollout.Namespace}, Data: map[string]string{"kubelet": "x"}}
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
