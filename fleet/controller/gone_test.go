package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
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

// The day counts from the last time at which a pool was deleted, however short it was back, and also where the record of the first time cannot be
// deleted.
func TestTheDayCountsFromTheLastDeletion(t *testing.T) {
	for name, refused := range map[string]string{"nothing is refused": "", "the record stays for an hour": "delete ConfigMap/pool-a-gone"} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(2)
				p := s.pool(nil)
				s.turns(30)
				for _, name := range []string{"n1", "n2"} {
					s.node(name) // as new
				}
				kept := func() int { return len(s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-")) }
				s.api.remove("KubeletPool/a")
				s.passes(goneFor - 5*time.Minute)
				if kept() != 3 {
					t.Fatalf("there is %d, and not a revision, a variant and a record", kept())
				}
				s.forbid(refused)
				p.UID, p.Status, p.Spec.Selector.MatchLabels = "", v1alpha1.KubeletPoolStatus{}, map[string]string{"of": "nobody"}
				s.api.put(p)
				s.turns(3)
				s.api.remove("KubeletPool/a")
				began := time.Now()
				s.passes(time.Hour)
				s.forbid()
				s.passes(goneFor - time.Hour - 5*time.Minute)
				if kept() < 3 {
					t.Errorf("%v after it was deleted again there is %v", time.Since(began), s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"))
				}
				s.passes(3 * time.Hour)
				if kept() != 0 {
					t.Errorf("%v after it was deleted again there still is %v", time.Since(began), s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"))
				}
			})
		})
	}
}

// The record goes as soon as the pool is back, also while its nodes are written to.
func TestARecordGoesWhenThePoolIsBack(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(2)
		p := s.pool(nil)
		s.turns(30)
		s.api.remove("KubeletPool/a")
		s.passes(2 * time.Minute)
		if s.api.stored["ConfigMap/pool-a-gone"] == nil {
			t.Fatal("there is no record")
		}
		p.UID, p.Status = "", v1alpha1.KubeletPoolStatus{}
		s.api.put(p)
		if s.turns(5); s.api.stored["ConfigMap/pool-a-gone"] != nil {
			t.Error("the record is still there")
		}
	})
}

// A ConfigMap of somebody else that has the name of a record stays as it is. What the pool has left stays, too, and the log says once what is in the
// way.
func TestARecordOfSomebodyElseStays(t *testing.T) {
	play(t, func(s *stage) {
		var told []string
		s.logs = funcr.New(func(_, words string) { told = append(told, words) }, funcr.Options{})
		s.again()
		s.nodes(2)
		s.pool(nil)
		s.turns(30)
		for _, name := range []string{"n1", "n2"} {
			s.node(name) // as new
		}
		foreign := configMap("pool-a-gone")
		s.api.put(foreign)
		s.api.remove("KubeletPool/a")
		s.passes(goneFor + 2*time.Hour)
		if n := len(s.api.asked("create ConfigMap/pool-a-gone")); n > 40 {
			t.Errorf("in 26 hours it was asked for %d times", n)
		}
		if now := s.api.stored["ConfigMap/pool-a-gone"]; now == nil || now.GetResourceVersion() != foreign.ResourceVersion {
			t.Errorf("it is %v", now)
		}
		if kept := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"); len(kept) != 3 {
			t.Errorf("there is %v", kept)
		}
		said := func(words string) (n int) {
			for _, line := range told {
				n += strings.Count(line, words)
			}
			return n
		}
		if n := said("recording that pool a is gone: an object of this name is there, and it is not replaced"); n != 1 {
			t.Errorf("that it is in the way was told %d times", n)
		}
		if n := said("a pool is gone, so"); n != 0 {
			t.Errorf("that the day has begun was told %d times", n)
		}
		s.api.remove("ConfigMap/pool-a-gone")
		s.passes(goneFor + 3*time.Hour)
		if kept := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"); len(kept) != 0 {
			t.Errorf("when it is gone there is %v", kept)
		}
		if n := said("a pool is gone, so"); n != 1 {
			t.Errorf("that the day has begun was told %d times then", n)
		}
	})
}

// A record that admission changes is a refusal, too.
func TestARecordThatAdmissionChangesIsARefusal(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(1)
		s.pool(nil)
		s.turns(30)
		s.leftOf("b", 1)
		s.alterObjects(ofMaps(func(c *corev1.ConfigMap) { delete(c.Labels, goneLabel) }))
		s.passes(12 * time.Hour)
		if n := len(s.api.asked("create ConfigMap/pool-b-gone")); n > 2 {
			t.Errorf("it was made %d times", n)
		}
		if s.api.stored["ConfigMap/pool-b-gone"] != nil {
			t.Error("it was left")
		}
		s.alterObjects(func(client.Object) {})
		if s.passes(2 * time.Hour); s.api.stored["ConfigMap/pool-b-gone"] == nil {
			t.Error("there is no record when admission leaves it alone")
		}
	})
}
