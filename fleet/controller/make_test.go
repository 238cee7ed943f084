package controller

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// alterObjects has admission change what is kept, as long as it is not told to stop.
func (s *stage) alterObjects(change func(object client.Object)) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	s.api.admit = func(object client.Object) {
		switch object.(type) {
		case *corev1.ConfigMap, *appsv1.ControllerRevision:
			change(object)
		}
	}
}

func ofMaps(change func(c *corev1.ConfigMap)) func(client.Object) {
	return func(object client.Object) {
		if c, is := object.(*corev1.ConfigMap); is {
			change(c)
		}
	}
}

// alterations are what policies do to objects, and what is said of it.
var alterations = map[string]func(object client.Object){
	"admission adds the key checksum":      ofMaps(func(c *corev1.ConfigMap) { c.Data["checksum"] = "1" }),
	"admission adds the key binary":        ofMaps(func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"binary": {1}} }),
	"admission changes the key kubelet":    ofMaps(func(c *corev1.ConfigMap) { c.Data["kubelet"] += " " }),
	"admission takes the key kubelet away": ofMaps(func(c *corev1.ConfigMap) { delete(c.Data, "kubelet") }),
	"admission makes it mutable":           ofMaps(func(c *corev1.ConfigMap) { c.Immutable = nil }),
	"admission gives it an owner": ofMaps(func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Namespace", Name: "kubelet-config"}}
	}),
	"admission takes the label kubelet-supervisor.io/pool away": ofMaps(func(c *corev1.ConfigMap) { delete(c.Labels, PoolLabel) }),
	"admission changes the label app.kubernetes.io/managed-by":  ofMaps(func(c *corev1.ConfigMap) { c.Labels[managedByLabel] = "Helm" }),
	"admission changes its data": func(object client.Object) {
		if r, is := object.(*appsv1.ControllerRevision); is {
			r.Revision++
		}
	},
}

// What admission changes of an object is a refusal with words: nothing false stays, no node is assigned it, and it is tried again seldom, by dry
// runs of which nothing has to be deleted.
func TestAnAlteredObjectIsARefusal(t *testing.T) {
	for words, change := range alterations {
		t.Run(words, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(3)
				s.pool(nil)
				s.secondPool()
				s.alterObjects(func(object client.Object) {
					if object.GetLabels()[PoolLabel] == "a" {
						change(object)
					}
				})
				s.turns(240)
				if says := s.says("a"); !strings.HasPrefix(says, "Held: keeping ") || !strings.HasSuffix(says, ": "+words) {
					t.Errorf("it says %q", says)
				}
				if says := s.says("b"); !strings.HasPrefix(says, "Completed") {
					t.Errorf("the other pool says %q", says)
				}
				mine := 0
				for _, verb := range []string{"create", "delete", "dry-run create"} {
					mine += len(s.api.asked(verb+" ConfigMap/pool-a-")) + len(s.api.asked(verb+" ControllerRevision/a-"))
				}
				if mine > 14 {
					t.Errorf("in four minutes there were %d requests", mine)
				}
				kind := "ConfigMap/pool-a-"
				if words == "admission changes its data" {
					kind = "ControllerRevision/a-"
				}
				for key := range s.api.stored {
					if strings.HasPrefix(key, kind) {
						t.Errorf("%s was left", key)
					}
				}
				s.alterObjects(func(client.Object) {})
				s.turns(320)
				if says := s.says("a"); !strings.HasPrefix(says, "Completed") {
					t.Errorf("when admission leaves it alone it says %q", says)
				}
			})
		})
	}
}

// More labels and annotations are no refusal.
func TestMoreLabelsAreHarmless(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.alterObjects(func(object client.Object) {
			object.SetAnnotations(map[string]string{"policy": "was-here"})
			object.GetLabels()["team"] = "x"
		})
		s.turns(30)
		if says := s.says("a"); !strings.HasPrefix(says, "Completed") {
			t.Errorf("it says %q", says)
		}
	})
}

// spoil puts other data into the ConfigMap that nodes have.
func (s *stage) spoil(key string) {
	spoiled := s.api.stored[key].(*corev1.ConfigMap).DeepCopy()
	spoiled.UID, spoiled.Data, spoiled.CreationTimestamp = "", map[string]string{"kubelet": `{"maxPods":1}`}, metav1.Now()
	s.api.put(spoiled)
}

func (s *stage) variant() string {
	for key := range s.api.stored {
		if strings.HasPrefix(key, "ConfigMap/pool-a-") {
			return key
		}
	}
	s.Fatal("there is no variant")
	return ""
}

// What nodes name and is spoiled is made again once a minute at most, whoever spoils it how often, and however often this process is killed.
func TestWhatNodesNameIsSeldomMadeAgain(t *testing.T) {
	for _, killed := range []bool{false, true} {
		play(t, func(s *stage) {
			s.nodes(3)
			s.pool(nil)
			s.turns(20)
			key := s.variant()
			time.Sleep(2 * remadeEvery)
			s.turns(1)
			for range 300 { // five minutes
				if s.api.stored[key].(*corev1.ConfigMap).Data["kubelet"] == `{"maxPods":1}` {
					s.turns(1)
					continue
				}
				if s.spoil(key); killed {
					s.again()
				}
				s.turns(1)
			}
			if n := len(s.api.asked("delete " + key)); n < 4 || n > 6 {
				t.Errorf("killed %v: in five minutes it was deleted %d times", killed, n)
			}
		})
	}
}

// What nodes name is not deleted as long as what would be made in its place is not taken as it is.
func TestTheOldOneStaysUntilTheNewOneIsTaken(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.turns(20)
		key := s.variant()
		time.Sleep(2 * remadeEvery)
		s.spoil(key)
		s.alterObjects(alterations["admission takes the label kubelet-supervisor.io/pool away"])
		s.turns(120)
		if n := len(s.api.asked("delete " + key)); n > 0 || s.api.stored[key] == nil {
			t.Errorf("it was deleted %d times", n)
		}
		s.alterObjects(func(client.Object) {})
		s.turns(300)
		if c := s.api.stored[key].(*corev1.ConfigMap); c.Data["kubelet"] == `{"maxPods":1}` {
			t.Error("it was not made again")
		}
	})
}

// A webhook that may not be asked by a dry run is not asked so.
func TestAWebhookWithSideEffects(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "dry-run") {
				return apierrors.NewBadRequest("admission webhook does not support dry run")
			}
			return nil
		}
		s.alterObjects(alterations["admission adds the key checksum"])
		s.turns(300)
		if n := len(s.api.asked("create ConfigMap/pool-a-")); n > 6 {
			t.Errorf("in five minutes it was made %d times", n)
		}
		s.alterObjects(func(client.Object) {})
		s.turns(300)
		if says := s.says("a"); !strings.HasPrefix(says, "Completed") {
			t.Errorf("it says %q", says)
		}
	})
}

func TestOtherName(t *testing.T) {
	if got := otherName("pool-a-b-0123456789"); got != "pool-a-b-9876543210" || !rollout.IsVariantOf("a-b", got) {
		t.Error(got)
	}
}
