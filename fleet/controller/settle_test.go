package controller

import (
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// A node that begins to run while a turn reads the cache has not run since that turn began.
func TestASlowLookMakesNobodySettleSooner(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(2)
		s.pool(func(p *v1alpha1.KubeletPool) {
			atOnce(p)
			p.Spec.Rollout.Settle = &metav1.Duration{Duration: 10 * time.Second}
		})
		turn := func(want int, when string) {
			t.Helper()
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
			if got := s.assigned(); len(got) != want {
				t.Errorf("%s %v are assigned, not %d", when, got, want)
			}
		}
		turn(1, "in the beginning")
		var slow sync.Once
		s.cache.reads = func(kind string) {
			if kind == "Node" {
				slow.Do(func() {
					time.Sleep(5 * time.Second)
					s.answer()
					s.cache.sync()
				})
			}
		}
		turn(1, "as it begins to run")
		time.Sleep(6 * time.Second)
		turn(1, "6 s after it has begun to run")
		time.Sleep(5 * time.Second)
		turn(2, "11 s after it has begun to run")
	})
}
