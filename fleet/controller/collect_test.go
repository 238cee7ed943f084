package controller

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

func configMap(name string, labels ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: name, Labels: map[string]string{}}, Data: map[string]string{"kubelet": "maxPods: 99"}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	return c
}

const (
	ofPoolA  = PoolLabel + "=a"
	madeByUs = managedByLabel + "=" + Name
)

// Only what has both labels and the name that the controller gives is its own, and what a pool has a layer from stays even then (rule 24).
func TestOnlyWhatItMadeIsDeleted(t *testing.T) {
	kept := map[string]*corev1.ConfigMap{
		"made by push, or by kustomize":        configMap("pool-a-5t67d5m954", "kubelet-supervisor.io/purpose=configuration"),
		"a word of ten letters":                configMap("pool-a-production"),
		"and with labels, copied from another": configMap("pool-a-monitoring", ofPoolA, madeByUs),
		"a name by chance, made by hand":       configMap("pool-a-0123456789"),
		"with the label of a pool alone":       configMap("pool-a-1123456789", ofPoolA),
		"with the label of its maker alone":    configMap("pool-a-2123456789", madeByUs),
		"with that of another pool":            configMap("pool-a-3123456789", PoolLabel+"=b", madeByUs),
		"made by another":                      configMap("pool-a-4123456789", ofPoolA, managedByLabel+"=Helm"),
		"the layer of a pool":                  configMap("pool-a-5123456789", ofPoolA, madeByUs),
	}
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(func(p *v1alpha1.KubeletPool) {
			p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "pool-a-5123456789"}}}
		})
		for _, object := range kept {
			s.api.put(object.DeepCopy())
		}
		gone := configMap("pool-a-6123456789", ofPoolA, madeByUs) // so that something is collected at all
		s.api.put(gone)
		s.turns(150)
		for what, object := range kept {
			if s.api.stored[keyOf(object)] == nil {
				t.Errorf("deleted: %s: %s", what, object.Name)
			}
		}
		if s.api.stored[keyOf(gone)] != nil {
			t.Error("nothing is collected, so nothing is proved")
		}
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("the pool is %s", got)
		}
	})
}

// An object of somebody else by the name of what is to be made stays, and the pool says what is in the way.
func TestWhatIsInTheWayIsNotDeleted(t *testing.T) {
	for kind, object := range map[string]func(name string) client.Object{
		"ConfigMap": func(name string) client.Object { return configMap(name, ofPoolA) },
		"ControllerRevision": func(name string) client.Object {
			return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: name}}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(3)
				s.pool(nil)
				var inTheWay client.Object
				s.api.before = func(request string) error {
					if name, is := strings.CutPrefix(request, "create "+kind+"/"); is && inTheWay == nil {
						inTheWay = object(name)
						s.api.put(inTheWay)
					}
					return nil
				}
				s.turns(30)
				if now := s.api.stored[keyOf(inTheWay)]; now == nil || now.GetUID() != inTheWay.GetUID() {
					t.Errorf("%s was replaced", keyOf(inTheWay))
				}
				if says := s.says("a"); !strings.Contains(says, "its labels do not say that "+Name+" made it; delete it") {
					t.Errorf("the pool says %q", says)
				}
				s.api.remove(keyOf(inTheWay))
				time.Sleep(refusedFor)
				s.turns(30)
				if says := s.says("a"); !strings.HasPrefix(says, "Completed") {
					t.Errorf("when it is gone the pool says %q", says)
				}
			})
		})
	}
}

// keptOf are the objects of pool a that are kept, and the record of its absence.
func (s *stage) keptOf(prefixes ...string) (kept []string) {
	for key := range s.api.stored {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				kept = append(kept, key)
			}
		}
	}
	return kept
}

// What was kept of a pool that was deleted, and that no Node names, goes after a day, whoever leads meanwhile. What a Node names stays, and so does
// what was not made here.
func TestWhatADeletedPoolHasKeptIsCollected(t *testing.T) {
	for _, named := range []bool{false, true} {
		play(t, func(s *stage) {
			s.nodes(2)
			s.pool(nil)
			s.turns(30)
			if !named {
				for _, name := range []string{"n1", "n2"} {
					s.node(name) // as new
				}
			}
			s.api.put(configMap("pool-a-0123456789"))
			s.api.remove("KubeletPool/a")
			s.lazily(func() bool { return s.api.stored["ConfigMap/pool-a-gone"] != nil })
			began := time.Now()
			s.again() // another process
			day := func(d time.Duration) func() bool { return func() bool { return time.Since(began) > d } }
			s.longer(day(goneFor - 2*time.Minute))
			if got := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"); len(got) != 4 {
				t.Fatalf("before a day was over there was %v", got)
			}
			s.longer(day(goneFor + 5*time.Minute))
			got := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-")
			if want := map[bool]int{false: 1, true: 4}[named]; len(got) != want {
				t.Errorf("named %v: after a day there was %v", named, got)
			}
			if s.api.stored["ConfigMap/pool-a-0123456789"] == nil {
				t.Error("what somebody has made is gone")
			}
			before := len(s.writes())
			s.longer(day(goneFor + 2*time.Hour))
			if more := s.writes()[before:]; len(more) > 0 {
				t.Errorf("named %v: then it wrote %v", named, more)
			}
		})
	}
}

// longer is lazily for more than five minutes.
func (s *stage) longer(is func() bool) {
	for !is() {
		s.lazily(is)
	}
}

// A pool that was made again within a day has all that it had.
func TestAPoolThatIsMadeAgainKeepsWhatItHad(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(2)
		p := s.pool(nil)
		s.turns(30)
		before := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-")
		s.api.remove("KubeletPool/a")
		s.lazily(func() bool { return s.api.stored["ConfigMap/pool-a-gone"] != nil })
		time.Sleep(goneFor - time.Hour)
		p.UID, p.Status = "", v1alpha1.KubeletPoolStatus{}
		s.api.put(p)
		s.lazily(func() bool { return s.api.stored["ConfigMap/pool-a-gone"] == nil })
		began := time.Now()
		s.longer(func() bool { return time.Since(began) > 2*time.Hour })
		if got := s.keptOf("ConfigMap/pool-a-", "ControllerRevision/a-"); len(got) != len(before) {
			t.Errorf("there is %v, and was %v", got, before)
		}
	})
}
