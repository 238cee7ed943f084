package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// boundFor is for how long it is remembered that a pod was unbound. A kubelet rejects a pod within moments.
const boundFor = 5 * time.Minute

// unbound knows which pods this process has seen without a node, so that a scheduler has chosen their nodes.
type unbound struct {
	monotonic func() time.Duration

	lock  sync.Mutex
	waits map[types.UID]bool
	left  map[types.UID]time.Duration // when they were bound or deleted
	swept time.Duration
}

func newUnbound(monotonic func() time.Duration) *unbound {
	return &unbound{monotonic: monotonic, waits: map[types.UID]bool{}, left: map[types.UID]time.Duration{}}
}

// watch has the manager watch the pods that have no node yet, with a cache of its own, because a cache has one selector for a kind.
func (u *unbound) watch(ctx context.Context, m manager.Manager) error {
	selector := fields.OneTermEqualSelector("spec.nodeName", "")
	pods, err := cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Field: selector, Transform: trimToUID}}})
	if err != nil {
		return fmt.Errorf("caching pods without a node: %w", err)
	}
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("caching pods without a node: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: u.comes, DeleteFunc: u.leaves}); err != nil {
		return fmt.Errorf("watching pods without a node: %w", err)
	}
	return m.Add(pods)
}

func trimToUID(in any) (any, error) {
	p, is := in.(*corev1.Pod)
	if !is {
		return in, nil
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}, nil
}

func (u *unbound) comes(object any) {
	if p, is := object.(metav1.Object); is {
		u.lock.Lock()
		defer u.lock.Unlock()
		u.waits[p.GetUID()] = true
	}
}

func (u *unbound) leaves(object any) {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	p, is := object.(metav1.Object)
	if !is {
		return
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	now := u.monotonic()
	delete(u.waits, p.GetUID())
	u.left[p.GetUID()] = now
	if now-u.swept < time.Minute {
		return
	}
	u.swept = now
	for uid, at := range u.left {
		if now-at > boundFor {
			delete(u.left, uid)
		}
	}
}

func (u *unbound) had(uid types.UID) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	at, left := u.left[uid]
	return left && u.monotonic()-at <= boundFor || u.waits[uid]
}
