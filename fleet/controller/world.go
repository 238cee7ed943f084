package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// inKubeletConfig limits a list to the namespace of layers, revisions and variants.
var inKubeletConfig = client.InNamespace(rollout.Namespace)

// look builds the world that a decision is made from. It fails if anything that a decision needs is unknown.
func (c *Controller) look(ctx context.Context) (rollout.World, error) {
	if err := c.nodes.settle(ctx); err != nil {
		return rollout.World{}, err
	}
	w := rollout.World{Synced: true, Now: c.serverTime(), Seen: c.memory.seen, Gone: c.memory.gone, Clocks: c.memory.clocks,
		Denied: c.patcher.denied.look(c.monotonic()), Mute: c.pools.mute()}
	c.verdicts.look()
	err := c.lookAtNodes(ctx, &w)
	w.Elapsed = c.memory.elapsed(c.monotonic())
	if err != nil {
		return w, err
	}
	if w.Now.IsZero() {
		return w, errors.New("the API server has not reported its time yet")
	}
	var pools v1alpha1.KubeletPoolList
	var budgets v1alpha1.KubeletRolloutBudgetList
	var revisions appsv1.ControllerRevisionList
	var maps corev1.ConfigMapList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&pools, &budgets, &revisions, &maps, &pods} {
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		switch list {
		case &maps:
			options = append(options, inKubeletConfig)
		case &revisions:
			options = append(options, inKubeletConfig, client.MatchingLabelsSelector{Selector: ours})
		}
		if err := c.caches.cached.List(ctx, list, options...); err != nil {
			return w, fmt.Errorf("reading a cache: %w", err)
		}
	}
	w.Pools = c.pools.readAll(pools.Items, c.owned.readRevisions(revisions.Items))
	w.Budgets = c.budgets.readAll(budgets.Items)
	w.Drains = c.drains.findings(w.Nodes)
	c.owned.readVariants(maps.Items, w.Pools)
	w.Broken = c.owned.broken(w.Nodes)
	w.Layers = c.layers.readAll(ctx, c.caches.live, w.Pools, maps.Items, c.monotonic())
	w.Turned = c.failed.readAll(pods.Items, w.Nodes, c.unbound.had, c.memory.age+w.Elapsed)
	return w, nil
}

func (c *Controller) lookAtNodes(ctx context.Context, w *rollout.World) error {
	var list corev1.NodeList
	if err := c.caches.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading a cache: %w", err)
	}
	var lags string
	if w.Nodes, lags = c.nodes.readAll(list.Items); lags != "" {
		return fmt.Errorf("the cache has not had the newest version of Node %s for %v", lags, lagLimit)
	}
	return c.caches.confirmVanished(ctx, c.memory.vanished(c.nodes.read))
}
