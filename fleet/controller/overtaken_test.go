package controller

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// hears lets a node speak while a turn is under way, as a watch would.
func (s *stage) hears(name, reason string) {
	var before, after corev1.Node
	err := s.api.stored.get("Node/"+name, &before)
	s.say(before.DeepCopy(), reason)
	if err = errors.Join(err, s.api.stored.get("Node/"+name, &after)); err != nil {
		s.Fatal(err)
	}
	s.newsOfNodes().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: &before, ObjectNew: &after})
}

// A verdict that is heard while assignments wait for their turn overtakes them: they are not sent. Other words do not.
func TestAVerdictOvertakesAssignments(t *testing.T) {
	for reason, want := range map[string]int{"Rejected": 1, "Active": 8} {
		t.Run(reason, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(20)
				s.pool(atOnce)
				s.turns(1)
				canary := s.assigned()[0]
				before := len(s.api.asked("patch Node/"))
				var first sync.Once
				s.api.before = func(request string) error {
					if strings.HasPrefix(request, "patch Node/") {
						first.Do(func() { s.hears(canary, reason) })
					}
					return nil
				}
				if _, err := s.turn(); err != nil {
					t.Fatal(err)
				}
				if got := s.api.asked("patch Node/")[before:]; len(got) != want {
					t.Errorf("sent were %v, not %d", got, want)
				}
				s.api.before = nil
				time.Sleep(2 * time.Second) // a status is written once in a second
				if _, err := s.turn(); err != nil {
					t.Fatal(err)
				}
				if got := s.reason(); reason == "Rejected" && got != rollout.ReasonStopped {
					t.Errorf("afterwards it is %s", got)
				}
			})
		})
	}
}
