//go:build e2e && long

package fleet

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// awaitSame waits until an object is as it was. What nodes name is made again once a minute at most.
func (m *tamperer) awaitSame(was client.Object, content func(client.Object) string) {
	m.c.t.Helper()
	now := was.DeepCopyObject().(client.Object)
	for deadline := time.Now().Add(75 * time.Second); ; wait(m.c.t.Context(), 50*time.Millisecond) {
		err := m.as.Get(m.c.t.Context(), client.ObjectKeyFromObject(was), now)
		if err == nil && content(now) == content(was) {
			return
		}
		if time.Now().After(deadline) {
			m.c.t.Fatalf("%s is %s, %v", was.GetName(), content(now), err)
		}
	}
}

// spoil puts another object in an object's place until the pool says so: the controller may have missed the one that was there before, and have
// made it anew by then. It is made anew in any case.
func (m *tamperer) spoil(was, spoiled client.Object, content func(client.Object) string) {
	m.c.t.Helper()
	for range 20 {
		m.c.remove(m.as, was.DeepCopyObject().(client.Object))
		if err := m.as.Create(m.c.t.Context(), spoiled.DeepCopyObject().(client.Object)); err != nil && !apierrors.IsAlreadyExists(err) {
			m.c.t.Fatal(err)
		}
		said := false
		for deadline := time.Now().Add(1500 * time.Millisecond); !said && time.Now().Before(deadline); wait(m.c.t.Context(), 50*time.Millisecond) {
			is := meta.FindStatusCondition(m.c.now().Status.Conditions, v1alpha1.ConditionStalled)
			said = is.Status == metav1.ConditionTrue && is.Reason == "RevisionTampered" && strings.Contains(is.Message, was.GetName())
		}
		m.awaitSame(was, content)
		if said {
			m.c.awaitReason(v1alpha1.ConditionStalled, "Moving", 10*time.Second)
			return
		}
	}
	m.c.t.Errorf("%s was tampered with, and the pool has never said so", was.GetName())
}

// What is rendered is made anew when somebody with the controller's rights has deleted it, or put something else in its place, which the pool
// says. No node is moved over it.
func TestLongRevisionsAreTamperedWith(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 3, nil)
	m := c.tamperer()
	c.f.steady(t)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)

	variant := &corev1.ConfigMap{}
	if err := m.as.Get(t.Context(), client.ObjectKey{Namespace: deploy.Namespace, Name: strings.Split(c.source(), "/")[1]}, variant); err != nil {
		t.Fatal(err)
	}
	payload := func(object client.Object) string { return object.(*corev1.ConfigMap).Data["kubelet"] }
	spoiled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: variant.Namespace, Name: variant.Name, Labels: variant.Labels},
		Data: map[string]string{"kubelet": strings.Replace(payload(variant), "250", "110", 1)}}
	c.remove(m.as, variant.DeepCopy())
	m.awaitSame(variant, payload)
	m.spoil(variant, spoiled, payload)

	revision := &appsv1.ControllerRevision{}
	if err := m.as.Get(t.Context(), client.ObjectKey{Namespace: deploy.Namespace, Name: c.pool + "-" + c.now().Status.Target.Hash}, revision); err != nil {
		t.Fatal(err)
	}
	data := func(object client.Object) string { return string(object.(*appsv1.ControllerRevision).Data.Raw) }
	other := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, Name: revision.Name, Labels: revision.Labels}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte(strings.Replace(data(revision), "250", "110", 1))}}
	c.remove(m.as, revision.DeepCopy())
	m.awaitSame(revision, data)
	m.spoil(revision, other, data)

	p := c.now()
	if p.Status.Stable.Revision != 1 || len(c.patches()) != 3 || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("sent were %v, and its status is %+v", c.patches(), p.Status)
	}
}
