package controller

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// pod runs on n1, below a ReplicaSet.
func (s *stage) pod(name string, change func(*corev1.Pod)) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	if change != nil {
		change(p)
	}
	s.api.put(p)
}

func ofDaemonSet(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
func bare(p *corev1.Pod)        { p.OwnerReferences = nil }
func mirror(p *corev1.Pod) {
	bare(p)
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
}
func ended(p *corev1.Pod)       { bare(p); p.Status.Phase = corev1.PodSucceeded }
func elsewhere(p *corev1.Pod)   { bare(p); p.Spec.NodeName = "n2" }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
func withEmptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// held is a stage on which n1 waits for its pods, and the pool drains.
func held(s *stage) {
	s.node("n1")
	s.pool(func(p *v1alpha1.KubeletPool) {
		atOnce(p)
		p.Spec.Rollout.Disruption = v1alpha1.DisruptionDrain
	})
	s.until("n1 is assigned", func(n *corev1.Node) bool { return n.Annotations[nodev1.ConfigSourceAnnotation] != "" })
	s.say(s.n1(), "WouldDisrupt")
}

func (s *stage) n1() *corev1.Node {
	s.Helper()
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	var n corev1.Node
	if err := s.api.stored.get("Node/n1", &n); err != nil {
		s.Fatal(err)
	}
	return &n
}

// until takes turns, one a second, until n1 is so.
func (s *stage) until(what string, holds func(n *corev1.Node) bool) {
	s.Helper()
	for range 1200 {
		if _, err := s.turn(); err != nil {
			s.Log(err)
		}
		if holds(s.n1()) {
			return
		}
		time.Sleep(time.Second)
	}
	s.Fatalf("20 minutes in vain until %s: %v, unschedulable %v", what, s.n1().Annotations, s.n1().Spec.Unschedulable)
}

func isDrained(n *corev1.Node) bool {
	return n.Spec.Unschedulable && rollout.ParseDrain(n.Annotations[rollout.DrainAnnotation]).Pool == "a"
}

func isOver(n *corev1.Node) bool {
	return rollout.ParseDrain(n.Annotations[rollout.DrainAnnotation]).Over != ""
}

// protects is a PodDisruptionBudget that lets a pod go only after so many tries.
func (s *stage) protects(pod string, tries int) {
	s.api.before = func(request string) error {
		if request != "eviction of Pod/"+pod {
			return nil
		}
		if tries--; tries < 0 {
			return nil
		}
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 1 healthy pods and has 1 currently"}}
		return err
	}
}

func (s *stage) left() (names []string) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	for key := range s.api.stored {
		if name, is := strings.CutPrefix(key, "Pod/"); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// events1 are those with a reason.
func (s *stage) events1(reason string) (found []string) {
	for {
		select {
		case event := <-s.events.Events:
			if strings.Contains(event, reason) {
				found = append(found, event)
			}
		default:
			return found
		}
	}
}

func (s *stage) progressing() string {
	for _, c := range s.poolNow().Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing {
			return c.Message
		}
	}
	return ""
}
