package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// forbid lets the API server refuse exactly these requests.
func (s *stage) forbid(requests ...string) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	s.api.before = func(request string) error {
		if slices.Contains(requests, request) {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("a policy"))
		}
		return nil
	}
}

// passes lets a time pass, with the turns that the controller asks for.
func (s *stage) passes(d time.Duration) {
	began := time.Now()
	s.longer(func() bool { return time.Since(began) > d })
}

// leftOf makes ConfigMaps that pool NAME has rendered, and that no Node names.
func (s *stage) leftOf(pool string, n int) (keys []string) {
	for i := range n {
		c := configMap(fmt.Sprintf("pool-%s-%010d", pool, i), PoolLabel+"="+pool, madeByUs)
		s.api.put(c)
		keys = append(keys, keyOf(c))
	}
	return keys
}

// Objects that cannot be deleted keep no other ones, not even if there are more of them than are deleted at a time. They are tried again, seldom.
func TestWhatCannotBeDeletedKeepsNothingElse(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(2)
		s.pool(nil)
		s.turns(30)
		keys := s.leftOf("a", patchesPerSecond+5)
		last := len(keys) - 1
		var refused []string
		for _, key := range keys[:last] {
			refused = append(refused, "delete "+key)
		}
		s.forbid(refused...)
		s.passes(15 * time.Minute)
		if s.api.stored[keys[last]] != nil {
			t.Errorf("%s is still there", keys[last])
		}
		if s.passes(12 * time.Hour); len(s.api.asked(refused[0])) > 30 {
			t.Errorf("in half a day %s was asked for %d times", refused[0], len(s.api.asked(refused[0])))
		}
		s.forbid()
		s.passes(3 * time.Hour)
		for _, key := range keys {
			if s.api.stored[key] != nil {
				t.Errorf("when nothing refuses it, %s is still there", key)
			}
		}
	})
}

// A record that is refused keeps no other pool's from being made, or deleted.
func TestARecordThatIsRefusedKeepsNoOther(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(1)
		s.pool(nil)
		s.turns(30)
		s.leftOf("b", 1)
		s.leftOf("c", 1)
		s.forbid("create ConfigMap/pool-b-gone")
		s.passes(10 * time.Minute)
		if s.api.stored["ConfigMap/pool-c-gone"] == nil {
			t.Error("there is no record of pool c")
		}
		if n := len(s.api.asked("create ConfigMap/pool-b-gone")); n < 2 || n > 6 {
			t.Errorf("in ten minutes the record of pool b was asked for %d times", n)
		}
		s.forbid()
		s.passes(time.Hour)
		if s.api.stored["ConfigMap/pool-b-gone"] == nil {
			t.Fatal("there is no record of pool b when nothing refuses it")
		}
		s.forbid("delete ConfigMap/pool-b-gone")
		for key := range s.api.stored {
			if strings.HasPrefix(key, "ConfigMap/pool-b-0") || strings.HasPrefix(key, "ConfigMap/pool-c-0") {
				s.api.remove(key) // an administrator
			}
		}
		s.passes(10 * time.Minute)
		if s.api.stored["ConfigMap/pool-c-gone"] != nil {
			t.Error("the record of pool c is still there")
		}
	})
}
