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

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
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
