package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// decide makes a plan of which all is there that it needs. What the API server refuses becomes part of the world, and it is decided once more.
func (c *Controller) decide(ctx context.Context, w *rollout.World) (rollout.Plan, error) {
	kept := map[string]bool{}
	for {
		began := c.monotonic()
		plan := rollout.Decide(*w)
		c.metrics.decided(c.monotonic() - began)
		again, err := c.keep(ctx, w, &plan, kept)
		if err != nil {
			return plan, err
		}
		if plan.Full { // what was refused a while ago, and has no room in this plan, is refused still as far as anybody knows
			again = c.refusedRevisions.tell(w.RefusedRevisions) || again
			again = c.refusedVariants.tell(w.RefusedVariants) || again
		}
		if !again {
			c.refusedRevisions.forget(w.RefusedRevisions)
			c.refusedVariants.forget(w.RefusedVariants)
			return plan, nil
		}
	}
}

// keep makes the revisions and variants that the plan needs, and those that nodes name and that are no longer what they were, but for what the
// world says is refused. again: more was refused.
func (c *Controller) keep(ctx context.Context, w *rollout.World, plan *rollout.Plan, kept map[string]bool) (again bool, err error) {
	for i := range plan.Revisions {
		r := &plan.Revisions[i]
		refused, err := c.try(r.ObjectName(), r.Pool, kept, c.refusedRevisions, w.RefusedRevisions, func() error { return c.keepRevision(ctx, r) })
		if again = again || refused; err != nil {
			return again, err
		}
	}
	for _, v := range slices.Concat(plan.Variants, rollout.Repair(*w)) {
		if c.kept.sound(v.Name) {
			continue
		}
		refused, err := c.try(v.Name, v.Pool, kept, c.refusedVariants, w.RefusedVariants, func() error { return c.keepVariant(ctx, &v) })
		if again = again || refused; err != nil {
			return again, err
		}
	}
	return again, nil
}

// try keeps something, once in a turn. Only an error that is no answer of the API server's is everybody's.
func (c *Controller) try(name, pool string, kept map[string]bool, all refusals, standing map[string]string, keep func() error) (refused bool, err error) {
	if kept[name] || standing[name] != "" {
		return false, nil
	}
	err = keep()
	switch {
	case err == nil:
		kept[name] = true
		delete(all, name)
		return false, nil
	case !answered(err):
		return false, err
	}
	if all.note(name, err, c.monotonic()) {
		c.log.Error(err, "who needs it waits", "pool", pool)
	}
	standing[name] = all[name].words
	return true, nil
}

func (c *Controller) keepRevision(ctx context.Context, r *rollout.Revision) error {
	data, err := r.Data()
	if err != nil {
		return fmt.Errorf("writing revision %s: %w", r.ObjectName(), err)
	}
	object := &appsv1.ControllerRevision{ObjectMeta: keptMeta(r.Pool, r.ObjectName()), Revision: r.Number, Data: runtime.RawExtension{Raw: data}}
	if r.Cause != "" {
		object.Annotations = map[string]string{"kubernetes.io/change-cause": r.Cause}
	}
	var there appsv1.ControllerRevision
	if err := c.create(ctx, object, &there, func() bool { return !rollout.ReadRevision(r.Pool, object.Name, there.Data.Raw).Tampered }); err != nil {
		return fmt.Errorf("keeping revision %s: %w", r.ObjectName(), err)
	}
	c.kept.madeRevisions[object.Name] = made[appsv1.ControllerRevision]{object, c.monotonic()}
	return nil
}

func (c *Controller) keepVariant(ctx context.Context, v *rollout.Variant) error {
	immutable := true
	object := &corev1.ConfigMap{ObjectMeta: keptMeta(v.Pool, v.Name), Data: map[string]string{v.Key: v.Payload}, Immutable: &immutable}
	var there corev1.ConfigMap
	if err := c.create(ctx, object, &there, func() bool { return !rollout.Tampered(v.Pool, v.Name, there.Data) }); err != nil {
		return fmt.Errorf("keeping ConfigMap %s: %w", v.Name, err)
	}
	c.kept.madeVariants[object.Name] = made[corev1.ConfigMap]{object, c.monotonic()}
	return nil
}

// keptMeta has no owner: deleting a pool would take what nodes run.
func keptMeta(pool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rollout.Namespace, Name: name, Labels: map[string]string{PoolLabel: pool, "app.kubernetes.io/managed-by": Name}}
}

// create makes an object. One of the same name that is not the same, as the cache or the API server has it, is deleted first.
func (c *Controller) create(ctx context.Context, object, there client.Object, same func() bool) error {
	request, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := c.writer.Create(request, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.live.Get(request, client.ObjectKeyFromObject(object), there); err != nil {
		return err
	}
	if same() && there.GetLabels()[PoolLabel] == object.GetLabels()[PoolLabel] {
		return nil // made before, and the answer was lost
	}
	c.log.Info("an object is not what its name says, and is made anew", "name", there.GetName())
	if err := c.delete(ctx, there); err != nil {
		return err
	}
	request, cancelAgain := context.WithTimeout(ctx, requestTime)
	defer cancelAgain()
	return c.writer.Create(request, object)
}

// delete deletes exactly the version that was looked at.
func (c *Controller) delete(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := c.writer.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err)
}
