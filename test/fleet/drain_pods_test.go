//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const appLabel = "app"

// pod makes a pod on a node, as a ReplicaSet would. It goes with the test.
func (c *crew) pod(name, node string, change func(*corev1.Pod)) {
	c.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.pool + "-" + name, Labels: map[string]string{appLabel: c.pool},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: c.pool, UID: "0", Controller: new(true)}}}}
	p.Spec = corev1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{Name: "main", Image: cluster.PauseImage, ImagePullPolicy: corev1.PullNever}}}
	if node == cluster.NodeName {
		p.Spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	if change != nil {
		change(p)
	}
	if err := c.f.admin.Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = c.f.admin.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}, client.GracePeriodSeconds(0))
	})
	if node != cluster.NodeName { // no kubelet says it
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := c.f.admin.Status().Update(c.t.Context(), p); err != nil {
			c.t.Fatal(err)
		}
	}
}

func ofDaemonSet(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet"; delete(p.Labels, appLabel) }
func unowned(p *corev1.Pod)     { p.OwnerReferences = nil; delete(p.Labels, appLabel) }

func (c *crew) hasPod(name string) bool {
	c.t.Helper()
	var p corev1.Pod
	err := c.f.admin.Get(c.t.Context(), types.NamespacedName{Namespace: "default", Name: c.pool + "-" + name}, &p)
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err == nil
}

// heldByPods: those of the crew that a ReplicaSet has made hold a change.
func (c *crew) heldByPods(node string) bool {
	var all corev1.PodList
	if err := c.f.admin.List(context.Background(), &all, client.InNamespace("default"), client.MatchingFields{"spec.nodeName": node}); err != nil {
		return true
	}
	for i := range all.Items {
		if owner := metav1.GetControllerOf(&all.Items[i]); owner == nil || owner.Kind != "DaemonSet" {
			return true
		}
	}
	return false
}

// protect makes a PodDisruptionBudget over the crew's pods, and does for it what kube-controller-manager would. Both go with the test.
func (c *crew) protect(minAvailable int32) {
	c.t.Helper()
	least := intstr.FromInt32(minAvailable)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.pool}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: c.pool}}
	b.Spec.MinAvailable = &least
	if err := c.f.admin.Create(c.t.Context(), b); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c.countHealthy(ctx)
			wait(ctx, 100*time.Millisecond)
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-ended
		_ = c.f.admin.Delete(context.Background(), b)
	})
}

// countHealthy says in the budget's status how many pods may go. A conflict is one with the API server that lets one go: it counts again.
func (c *crew) countHealthy(ctx context.Context) {
	var b policyv1.PodDisruptionBudget
	var pods corev1.PodList
	if c.f.admin.Get(ctx, types.NamespacedName{Namespace: "default", Name: c.pool}, &b) != nil ||
		c.f.admin.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{appLabel: c.pool}) != nil {
		return
	}
	healthy := int32(0)
	for i := range pods.Items {
		for _, condition := range pods.Items[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
				healthy++
			}
		}
	}
	now := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, CurrentHealthy: healthy, DesiredHealthy: b.Spec.MinAvailable.IntVal,
		ExpectedPods: int32(len(pods.Items)), DisruptionsAllowed: max(0, healthy-b.Spec.MinAvailable.IntVal)}
	if was := b.Status; was.ObservedGeneration == now.ObservedGeneration && was.CurrentHealthy == now.CurrentHealthy && was.DisruptionsAllowed == now.DisruptionsAllowed {
		return
	}
	b.Status = now
	_ = c.f.admin.Status().Update(ctx, &b)
}

// awaitThat waits until something is so.
func (c *crew) awaitThat(what string, within time.Duration, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(within); !holds(); wait(c.t.Context(), 100*time.Millisecond) {
		if time.Now().After(deadline) {
			nodes, err := c.f.Kubectl(context.Background(), "get", "nodes", "-l", poolLabel+"="+c.pool, "-o", "yaml")
			c.t.Fatalf("waited %v in vain until %s: %v\n%s", within, what, err, nodes)
		}
	}
}

// podNow is a pod as it is; an empty one where there is none.
func (c *crew) podNow(name string) *corev1.Pod {
	c.t.Helper()
	var p corev1.Pod
	if err := c.f.admin.Get(c.t.Context(), types.NamespacedName{Namespace: "default", Name: c.pool + "-" + name}, &p); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return &p
}

// allow changes how many pods have to be available.
func (c *crew) allow(minAvailable int) {
	c.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.pool}}
	if err := c.f.admin.Patch(c.t.Context(), b, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, minAvailable))); err != nil {
		c.t.Fatal(err)
	}
}
