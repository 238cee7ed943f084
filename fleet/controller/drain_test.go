package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// A node that waits is cordoned, its pods are evicted as PodDisruptionBudgets let them, and it is uncordoned once it runs the revision. Pods of a
// DaemonSet, mirror pods and those that have ended stay.
func TestADrain(t *testing.T) {
	play(t, func(s *stage) {
		held(s)
		s.pod("web-1", nil)
		s.pod("web-2", nil)
		s.pod("agent", ofDaemonSet)
		s.pod("static", mirror)
		s.pod("job", ended)
		s.pod("other", elsewhere)
		s.protects("web-1", 5)
		s.until("it is drained", isDrained)
		if got := s.api.asked("eviction"); len(got) > 0 {
			t.Errorf("%v were asked for before the cordon was seen", got)
		}
		s.until("web-1 is gone", func(*corev1.Node) bool { return !slices.Contains(s.left(), "web-1") })
		if got := strings.Join(s.left(), " "); got != "agent job other static" {
			t.Errorf("left are %s", got)
		}
		if got := len(s.api.asked("eviction of Pod/web-1")); got != 6 {
			t.Errorf("web-1 was asked to go %d times", got)
		}
		if n := s.n1(); !isDrained(n) {
			t.Error("the cordon went before the node runs the revision")
		}
		s.say(s.n1(), "Active")
		s.until("it is uncordoned", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
		if n := s.n1(); n.Annotations[rollout.DrainAnnotation] != "" {
			t.Errorf("it keeps %q", n.Annotations[rollout.DrainAnnotation])
		}
		if got := s.events1(rollout.EventPoolDrains); len(got) != 1 {
			t.Errorf("the events are %q", got)
		}
	})
}

// What stands in the way for too long ends the drain, and is named; the node is uncordoned, waits, and is not drained again.
func TestADrainInVain(t *testing.T) {
	for name, row := range map[string]struct {
		pods  func(*stage)
		asked bool
		want  string
	}{
		"a PodDisruptionBudget": {func(s *stage) { s.pod("web", nil); s.protects("web", 1<<30) }, true,
			"timed out after 10m0s: default/web: The disruption budget web needs 1 healthy pods and has 1 currently"},
		"no rights": {func(s *stage) {
			s.pod("web", nil)
			s.api.before = func(request string) error {
				if strings.HasPrefix(request, "eviction") {
					return apierrors.NewForbidden(resource("Pod/web"), "web", errors.New("no"))
				}
				return nil
			}
		}, true, `timed out after 10m0s: default/web: pods "web" is forbidden: no`},
		"a pod that does not end": {func(s *stage) { s.pod("web", terminating) }, false, "timed out after 10m0s: default/web is terminating"},
		"an emptyDir":             {func(s *stage) { s.pod("web", nil); s.pod("cache", withEmptyDir) }, false, "no drain may take default/cache (it has an emptyDir)"},
		"nobody would make it again": {func(s *stage) { s.pod("web", nil); s.pod("bare", bare) }, false,
			"no drain may take default/bare (it has no controller)"},
		"nothing at all": {func(s *stage) { s.pod("agent", ofDaemonSet) }, false, "all pods are gone that a drain may take, and it still waits: default/web (OutOfpods)"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				held(s)
				row.pods(s)
				s.until("it is drained", isDrained)
				s.until("it is over", isOver)
				n := s.n1()
				if got := rollout.ParseDrain(n.Annotations[rollout.DrainAnnotation]).Over; got != row.want || n.Spec.Unschedulable {
					t.Errorf("it ends with %q, unschedulable %v", got, n.Spec.Unschedulable)
				}
				if got := s.api.asked("eviction"); len(got) > 0 != row.asked {
					t.Errorf("it asked for %v", got)
				}
				synctest.Wait() // the last eviction may be under way
				before := len(s.api.asked("patch Node/")) + len(s.api.asked("eviction"))
				for range 100 {
					if _, err := s.turn(); err != nil {
						t.Error(err)
					}
					time.Sleep(10 * time.Second)
				}
				if after := len(s.api.asked("patch Node/")) + len(s.api.asked("eviction")); after != before {
					t.Errorf("it was not the end: %v", s.api.requests[len(s.api.requests)-5:])
				}
				if got := s.progressing(); !strings.Contains(got, "such as n1: "+row.want) {
					t.Errorf("the pool says %q", got)
				}
				if got := s.events1(rollout.EventPoolDrainEnded); len(got) != 1 || !strings.Contains(got[0], row.want) {
					t.Errorf("the events are %q", got)
				}
			})
		})
	}
}

// A controller that is killed in the middle leaves the cordon and its annotation; the next one goes on from there, or lifts it.
func TestAControllerThatIsKilledInADrain(t *testing.T) {
	play(t, func(s *stage) {
		held(s)
		s.pod("web", nil)
		s.protects("web", 20)
		s.until("it is drained, and web was asked to go", func(n *corev1.Node) bool { return isDrained(n) && len(s.api.asked("eviction")) > 0 })
		s.drains.end()
		asked := len(s.api.asked("eviction"))
		time.Sleep(time.Hour)
		if got := len(s.api.asked("eviction")); got != asked {
			t.Errorf("a dead one asked %d times more", got-asked)
		}
		s.again()
		s.until("web is gone", func(*corev1.Node) bool { return len(s.left()) == 0 })
		s.say(s.n1(), "Active")
		s.drains.end()
		s.again()
		s.until("it is uncordoned", func(n *corev1.Node) bool {
			return !n.Spec.Unschedulable && n.Annotations[rollout.DrainAnnotation] == ""
		})
	})
}

// Whoever leads no longer evicts no longer; a person who uncordons ends the drain, and another one's cordon stays.
func TestWhoEndsADrain(t *testing.T) {
	quiet := func(s *stage) int {
		s.Helper()
		if _, err := s.turn(); err != nil {
			s.Log(err)
		}
		synctest.Wait()
		before := len(s.api.asked("eviction"))
		for range 60 {
			if _, err := s.turn(); err != nil {
				s.Log(err)
			}
			time.Sleep(time.Second)
		}
		return len(s.api.asked("eviction")) - before
	}
	for name, row := range map[string]struct {
		change        func(*stage)
		unschedulable bool
		annotation    string
	}{
		"it leads no longer": {func(s *stage) { s.leads.leads = false }, true, ""},
		"uncordoned": {func(s *stage) { n := s.n1(); n.Spec.Unschedulable = false; s.api.put(n) }, false,
			`"over":"another user or program has uncordoned the node"`},
		"uncordoned, and cordoned": {func(s *stage) {
			n := s.n1()
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-cordon", FieldsV1: theCordon}}
			s.api.put(n)
		}, true, `"over":"another user or program has uncordoned the node"`},
		"the pool is deleted":          {func(s *stage) { s.api.remove("KubeletPool/a") }, false, "none"},
		"the node is held":             {func(s *stage) { n := s.n1(); n.Labels[rollout.RolloutLabel] = "hold"; s.api.put(n) }, false, "none"},
		"the annotation is taken away": {func(s *stage) { n := s.n1(); delete(n.Annotations, rollout.DrainAnnotation); s.api.put(n) }, true, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				held(s)
				s.pod("web", nil)
				s.protects("web", 1<<30)
				s.until("it is drained, and web was asked to go", func(n *corev1.Node) bool { return isDrained(n) && len(s.api.asked("eviction")) > 0 })
				row.change(s)
				if got := quiet(s); got > 0 {
					t.Errorf("web was asked to go %d times more", got)
				}
				n := s.n1()
				got := n.Annotations[rollout.DrainAnnotation]
				if n.Spec.Unschedulable != row.unschedulable || row.annotation == "none" && got != "" || row.annotation != "none" && !strings.Contains(got, row.annotation) {
					t.Errorf("unschedulable %v, %q", n.Spec.Unschedulable, got)
				}
			})
		})
	}
}

// A node that somebody else has cordoned gets nothing, and stays so.
func TestSomebodyElsesCordon(t *testing.T) {
	play(t, func(s *stage) {
		held(s)
		s.pod("web", nil)
		n := s.n1()
		n.Spec.Unschedulable = true
		s.api.put(n)
		before := len(s.api.asked("patch Node/"))
		for range 100 {
			if _, err := s.turn(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := s.n1(); !n.Spec.Unschedulable || n.Annotations[rollout.DrainAnnotation] != "" || len(s.api.asked("eviction")) > 0 || len(s.api.asked("patch Node/")) > before {
			t.Errorf("it was touched: %v", n.Annotations)
		}
	})
}

// Few nodes are drained at once, and the others get their turn.
func TestFewDrainsAtOnce(t *testing.T) {
	play(t, func(s *stage) {
		var wanted []rollout.Draining
		for i := range 2 * drainsAtOnce {
			wanted = append(wanted, rollout.Draining{Node: fmt.Sprint("n", i), UID: types.UID(fmt.Sprint("u", i)), Drain: rollout.Drain{Pool: "a", Hash: "x"}})
		}
		s.drains.follow(wanted)
		synctest.Wait()
		if got := len(s.api.asked("list Pod")); got != drainsAtOnce {
			t.Errorf("the pods of %d nodes were looked at", got)
		}
		s.drains.follow(wanted[drainsAtOnce:])
		synctest.Wait()
		if got := len(s.api.asked("list Pod")); got != 2*drainsAtOnce {
			t.Errorf("after that, of %d", got)
		}
	})
}
