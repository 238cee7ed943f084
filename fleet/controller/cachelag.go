package controller

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// kind is a kind whose cache has to be complete, and how it is listed.
type kind struct {
	list    schema.GroupVersionKind
	options []client.ListOption
}

var (
	nodeKind     = kind{corev1.SchemeGroupVersion.WithKind("NodeList"), nil}
	poolKind     = kind{v1alpha1.GroupVersion().WithKind("KubeletPoolList"), nil}
	budgetKind   = kind{v1alpha1.GroupVersion().WithKind("KubeletRolloutBudgetList"), nil}
	mapKind      = kind{corev1.SchemeGroupVersion.WithKind("ConfigMapList"), []client.ListOption{inKubeletConfig}}
	revisionKind = kind{appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"),
		[]client.ListOption{inKubeletConfig, client.MatchingLabelsSelector{Selector: ours}}}
)

// caches knows whether the caches have what the API server has.
type caches struct {
	cached, live client.Reader
	watches      *watchErrors
	// trusted is how many watches had failed when the caches were last found to be complete; with -1 they have to be compared.
	trusted int64
}

// watchErrors counts the lists and watches that have failed.
type watchErrors struct {
	count atomic.Int64
	log   logr.Logger
}

// handle is called for each list or watch that fails. The caches are compared again after it.
func (w *watchErrors) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	w.count.Add(1)
	if apierrors.IsNotFound(err) {
		w.log.Info("the API server does not have this kind, so nothing is done: deploy/manifests/controller/crd.yaml defines it",
			"kind", reflector.TypeDescription(), "error", err.Error())
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}

// distrust has the caches compared again before the next decision.
func (c *caches) distrust() { c.trusted = -1 }

// ensureFresh compares the caches with live lists where there is reason to: at the start, and after a watch has failed. It fails where a cache is
// behind, or where the API server does not answer.
func (c *caches) ensureFresh(ctx context.Context) error {
	failed := c.watches.count.Load()
	if c.trusted == failed {
		return nil
	}
	for _, each := range []struct {
		kind kind
		list client.ObjectList
	}{{nodeKind, &corev1.NodeList{}}, {poolKind, &v1alpha1.KubeletPoolList{}},
		{budgetKind, &v1alpha1.KubeletRolloutBudgetList{}}, {mapKind, &corev1.ConfigMapList{}},
		{revisionKind, &appsv1.ControllerRevisionList{}}} {
		if err := c.compare(ctx, each.kind, each.list); err != nil {
			return err
		}
	}
	c.trusted = failed
	return nil
}

// compare fails if a cache is behind what the API server has now: the list is live, because its resourceVersion is unset.
func (c *caches) compare(ctx context.Context, k kind, cached client.ObjectList) error {
	now, at, err := c.listLive(ctx, k)
	if err != nil {
		return fmt.Errorf("listing %s: %w", k.list.Kind, err)
	}
	if err := c.cached.List(ctx, cached, append([]client.ListOption{client.UnsafeDisableDeepCopy}, k.options...)...); err != nil {
		return fmt.Errorf("reading the cache of %s: %w", k.list.Kind, err)
	}
	versions := map[types.UID]string{}
	var old string
	err = meta.EachListItem(cached, func(object runtime.Object) error {
		o, err := meta.Accessor(object)
		if err == nil {
			versions[o.GetUID()] = o.GetResourceVersion()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the cache of %s: %w", k.list.Kind, err)
	}
	for _, o := range now {
		if version, is := versions[o.uid]; !is || newer(o.version, version) {
			return fmt.Errorf("the cache does not have the newest version of %s %s", k.list.Kind, o.name)
		}
		delete(versions, o.uid)
	}
	for uid, version := range versions {
		if !newer(version, at) {
			old = string(uid)
		}
	}
	if old != "" {
		return fmt.Errorf("the cache of %s has an object that is deleted, with uid %s", k.list.Kind, old)
	}
	return nil
}

// listed is what is kept of an object that was listed.
type listed struct {
	uid           types.UID
	name, version string
}

// pageSize limits the objects of one request, because the metadata of 5,000 Nodes are tens of MiB.
const pageSize = 500

// listLive lists what the API server has now, and returns the resourceVersion of the list.
func (c *caches) listLive(ctx context.Context, k kind) (all []listed, at string, err error) {
	for next := ""; ; {
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(k.list)
		if err := c.live.List(ctx, &page, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, k.options...)...); err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			o := &page.Items[i]
			all = append(all, listed{o.UID, o.Name, o.ResourceVersion})
		}
		if at == "" {
			at = page.ResourceVersion
		}
		if next = page.Continue; next == "" {
			return all, at, nil
		}
	}
}

// confirmVanished asks for Nodes that are no longer in the cache. vanished are their names, by UID. It fails if one still exists.
func (c *caches) confirmVanished(ctx context.Context, vanished map[types.UID]string) error {
	if len(vanished) > 8 {
		return c.compare(ctx, nodeKind, &corev1.NodeList{})
	}
	for uid, name := range vanished {
		object := metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		err := c.live.Get(ctx, types.NamespacedName{Name: name}, &object)
		switch {
		case apierrors.IsNotFound(err), err == nil && object.UID != uid:
		case err != nil:
			return fmt.Errorf("checking whether Node %s still exists: %w", name, err)
		default:
			return fmt.Errorf("node %s still exists, and the cache does not have it", name)
		}
	}
	return nil
}
