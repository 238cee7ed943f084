package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// budget makes a KubeletRolloutBudget over all nodes.
func (s *stage) budget(frozen bool, windows ...v1alpha1.Window) {
	s.namedBudget("all", frozen, windows...)
}

func (s *stage) namedBudget(name string, frozen bool, windows ...v1alpha1.Window) {
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: time.Now().UnixNano()}}
	b.Spec.Frozen, b.Spec.Windows = frozen, windows
	s.api.put(b)
}

// A budget is looked at before anything is sent, holds in the middle of a rollout, and lets go by itself.
func TestABudgetFreezes(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(10)
		s.budget(true)
		s.pool(atOnce)
		s.turns(5)
		if got := s.assigned(); len(got) > 0 {
			t.Errorf("%v were assigned by a frozen budget", got)
		}
		s.budget(false)
		s.turns(1)
		s.budget(true)
		s.turns(5)
		if got := s.assigned(); len(got) != 1 {
			t.Errorf("frozen in the middle, %v are assigned", got)
		}
		s.api.remove("KubeletRolloutBudget/all")
		s.turns(20)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("without the budget it is %s", got)
		}
	})
}

// The status of a budget is written when it changes, numbers alone seldom. Nobody waits for it where the API server does not take it.
func TestTheStatusOfABudget(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(10)
		s.budget(false)
		refuses := true
		s.api.before = func(request string) error {
			if refuses && request == "patch status of KubeletRolloutBudget/all" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "kubeletrolloutbudgets"}, "all", errors.New("no"))
			}
			return nil
		}
		s.pool(atOnce)
		s.turns(3)
		if got := s.assigned(); len(got) == 0 {
			t.Error("nobody is assigned while the status of a budget is refused")
		}
		refuses = false
		before := len(s.api.asked("patch status of KubeletRolloutBudget/all"))
		s.turns(30)
		var b v1alpha1.KubeletRolloutBudget
		if err := s.api.stored.get("KubeletRolloutBudget/all", &b); err != nil {
			t.Fatal(err)
		}
		if b.Status.Nodes != 10 || b.Status.Unavailable != 0 || !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionReady) ||
			b.Status.ObservedGeneration != b.Generation {
			t.Errorf("it says %+v", b.Status)
		}
		if got := len(s.api.asked("patch status of KubeletRolloutBudget/all")) - before; got > 5 {
			t.Errorf("it was written %d times", got)
		}
	})
}

// A status that is stored as another one is not written for ever.
func TestTheStatusOfABudgetIsStripped(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.budget(false)
		s.api.admit = func(object client.Object) {
			if b, is := object.(*v1alpha1.KubeletRolloutBudget); is {
				b.Status.Conditions = nil
			}
		}
		s.pool(atOnce)
		s.turns(600)
		if got := len(s.api.asked("patch status of KubeletRolloutBudget/all")); got > 15 {
			t.Errorf("it was written %d times in ten minutes", got)
		}
	})
}

// A cache of budgets that is behind is not believed: the budget may be the one that freezes all.
func TestABudgetThatTheCacheDoesNotKnow(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(10)
		s.pool(atOnce)
		s.cache.sync()
		s.cache.frozen = true
		s.budget(true)
		s.turns(5)
		if got := s.writes(); len(got) > 0 {
			t.Errorf("it wrote %v", got)
		}
	})
}

// A window opens by the API server's clock, without any news.
func TestAWindowOpens(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		opens := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Hour)
		s.budget(false, v1alpha1.Window{Schedule: opens.Format("0 15 * * *"), Duration: metav1.Duration{Duration: time.Hour}})
		s.pool(atOnce)
		var again time.Duration
		for range 5 {
			var err error
			if again, err = s.turn(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if left := time.Until(opens); again == 0 || again > left+2*time.Second || len(s.assigned()) > 0 {
			t.Fatalf("%v before the window it looks again in %v, and has assigned %v", left, again, s.assigned())
		}
		time.Sleep(time.Until(opens) + time.Second)
		s.turns(20)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("it is %s", got)
		}
	})
}

// disruption: Allow consents to the change that the node names, and to no other.
func TestThePoolConsents(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(1)
		s.pool(func(p *v1alpha1.KubeletPool) {
			atOnce(p)
			p.Spec.Rollout.Disruption = v1alpha1.DisruptionAllow
		})
		_, _ = s.turn()
		_, _ = s.turn()
		n := s.api.stored["Node/n1"].DeepCopyObject().(*corev1.Node)
		s.say(n, "WouldDisrupt")
		before := len(s.writes())
		for range 5 {
			_, _ = s.turn()
			time.Sleep(time.Second)
		}
		n = s.api.stored["Node/n1"].(*corev1.Node)
		if got := n.Annotations[nodev1.AllowDisruptionAnnotation]; got != "0123456789ab+any" {
			t.Errorf("it consents to %q", got)
		}
		patches := slices.DeleteFunc(s.writes()[before:], func(w string) bool { return !strings.HasPrefix(w, "patch Node/") })
		if len(patches) != 1 || n.Annotations[nodev1.ConfigSourceAnnotation] == "" {
			t.Errorf("it wrote %v", patches)
		}
	})
}

// A webhook that hangs over the statuses of budgets costs a turn one request, after the nodes have been written.
func TestBudgetsThatHang(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		for i := range 20 {
			s.namedBudget(fmt.Sprint("b", i), false)
		}
		longest := time.Duration(0)
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch status of KubeletRolloutBudget/") {
				time.Sleep(requestTime)
				return fmt.Errorf("Patch: %w", context.DeadlineExceeded)
			}
			return nil
		}
		s.pool(atOnce)
		for range 60 {
			began := time.Now()
			s.turns(1)
			longest = max(longest, time.Since(began))
		}
		if got := s.reason(); got != rollout.ReasonCompleted || longest > 3*requestTime {
			t.Errorf("the pool is %s, and a turn took %v", got, longest)
		}
	})
}
