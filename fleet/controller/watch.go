package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// gather is how long a turn waits for more changes after the first one, because a node writes several within a moment.
const gather = 100 * time.Millisecond

// watch has a change of any kind lead to another turn.
func (c *Controller) watch(to controller.Controller, from cache.Cache) error {
	for _, s := range []source.Source{
		source.Kind(from, &corev1.Node{}, news[*corev1.Node](), c.newsOfNodes()),
		source.Kind(from, &v1alpha1.KubeletPool{}, news[*v1alpha1.KubeletPool](), newsOfPools()),
		source.Kind(from, &v1alpha1.KubeletRolloutBudget{}, news[*v1alpha1.KubeletRolloutBudget](), changed[*v1alpha1.KubeletRolloutBudget]()),
		source.Kind(from, &corev1.ConfigMap{}, news[*corev1.ConfigMap](), changed[*corev1.ConfigMap]()),
		source.Kind(from, &appsv1.ControllerRevision{}, news[*appsv1.ControllerRevision](), changed[*appsv1.ControllerRevision]()),
		source.Kind(from, &corev1.Pod{}, news[*corev1.Pod](), turnedAway()),
	} {
		if err := to.Watch(s); err != nil {
			return fmt.Errorf("watching %s: %w", s, err)
		}
	}
	return nil
}

// news adds the only key to the queue.
func news[object client.Object]() handler.TypedEventHandler[object, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	soon := func(q queue) { q.AddAfter(reconcile.Request{}, gather) }
	return handler.TypedFuncs[object, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[object], q queue) { soon(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[object], q queue) { soon(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[object], q queue) { soon(q) },
	}
}

// newsOfNodes ignores heartbeats. It is the first to see a verdict.
func (c *Controller) newsOfNodes() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		if sameNode(e.ObjectOld, e.ObjectNew) {
			return false
		}
		n := rollout.ReadNode(e.ObjectNew)
		c.verdicts.hear(&n, c.monotonic())
		return true
	}}
}

// newsOfPools ignores statuses, which only this controller writes.
func newsOfPools() predicate.TypedPredicate[*v1alpha1.KubeletPool] {
	return predicate.TypedFuncs[*v1alpha1.KubeletPool]{UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.KubeletPool]) bool {
		return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.UID != e.ObjectNew.UID ||
			e.ObjectOld.Annotations["kubernetes.io/change-cause"] != e.ObjectNew.Annotations["kubernetes.io/change-cause"]
	}}
}

// changed ignores what a resync repeats.
func changed[object client.Object]() predicate.TypedPredicate[object] {
	return predicate.TypedFuncs[object]{UpdateFunc: func(e event.TypedUpdateEvent[object]) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// turnedAway ignores pods that have failed, and that no kubelet has rejected.
func turnedAway() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.NewTypedPredicateFuncs(func(p *corev1.Pod) bool { return rejection.Is(&p.Status) })
}
