package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// decide makes a plan of which all is there that it needs. What the API server takes or refuses becomes part of the world, and it is decided once
// more.
func (c *Controller) decide(ctx context.Context, w *rollout.World) (rollout.Plan, error) {
	c.refusedRevisions.begin(c.monotonic())
	c.refusedVariants.begin(c.monotonic())
	for {
		w.RefusedRevisions, w.RefusedVariants = c.refusedRevisions.words(), c.refusedVariants.words()
		began := c.monotonic()
		plan := rollout.Decide(*w)
		c.metrics.decided(c.monotonic() - began)
		again, err := c.keep(ctx, w, &plan)
		if err != nil || !again {
			c.refusedRevisions.end(err == nil)
			c.refusedVariants.end(err == nil)
			return plan, err
		}
	}
}

// keep makes the revisions and variants that the plan needs, and those that nodes name and that are no longer what they were. again: the world is
// another one with that.
func (c *Controller) keep(ctx context.Context, w *rollout.World, plan *rollout.Plan) (again bool, err error) {
	var attempts []attempt
	for i := range plan.Revisions {
		r := &plan.Revisions[i]
		attempts = append(attempts, attempt{&c.refusedRevisions, r.Pool, r.ObjectName(), func() error { return c.keepRevision(ctx, r) }})
	}
	for _, v := range slices.Concat(plan.Variants, rollout.Repair(*w)) {
		attempts = append(attempts, attempt{&c.refusedVariants, v.Pool, v.Name, func() error {
			if c.kept.sound(v.Name) {
				return nil
			}
			return c.keepVariant(ctx, &v)
		}})
	}
	slices.SortStableFunc(attempts, longestWaiting)
	for _, a := range attempts {
		news, err := c.try(ctx, a)
		if again = again || news; err != nil {
			return again, err
		}
	}
	return again, nil
}

// attempt is to make or delete something of a pool.
type attempt struct {
	refused    *refusals
	pool, name string
	do         func() error
}

func longestWaiting(a, b attempt) int {
	return cmp.Compare(a.refused.since(a.name), b.refused.since(b.name))
}

// try does that, once in a turn, unless it was refused a moment ago. Only an error that is no answer of the API server's is everybody's.
func (c *Controller) try(ctx context.Context, a attempt) (news bool, err error) {
	if !a.refused.tries(a.name, c.monotonic()) {
		return false, nil
	}
	switch err := a.do(); {
	case err == nil:
		return a.refused.forget(a.name), nil
	case !answered(ctx, err):
		return false, err
	default:
		if news = a.refused.note(a.name, err, c.monotonic()); news {
			c.log.Error(err, "the API server refuses the request, and the controller tries again later", "pool", a.pool)
		}
		return news, nil
	}
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
	stored, err := c.make(ctx, making{object, &there, func() bool { return !rollout.ReadRevision(r.Pool, object.Name, there.Data.Raw).Tampered },
		c.refusedRevisions.all[object.Name].altered})
	if err != nil {
		return fmt.Errorf("keeping revision %s: %w", r.ObjectName(), err)
	}
	c.kept.madeRevisions[object.Name] = made[appsv1.ControllerRevision]{stored.(*appsv1.ControllerRevision), c.monotonic()}
	return nil
}

func (c *Controller) keepVariant(ctx context.Context, v *rollout.Variant) error {
	immutable := true
	object := &corev1.ConfigMap{ObjectMeta: keptMeta(v.Pool, v.Name), Data: map[string]string{v.Key: v.Payload}, Immutable: &immutable}
	var there corev1.ConfigMap
	stored, err := c.make(ctx, making{object, &there, func() bool { return !rollout.Tampered(v.Pool, v.Name, there.Data) },
		c.refusedVariants.all[object.Name].altered})
	if err != nil {
		return fmt.Errorf("keeping ConfigMap %s: %w", v.Name, err)
	}
	c.kept.madeVariants[object.Name] = made[corev1.ConfigMap]{stored.(*corev1.ConfigMap), c.monotonic()}
	return nil
}

// managedByLabel names who made an object.
const managedByLabel = "app.kubernetes.io/managed-by"

// keptMeta has no owner: deleting a pool would take what nodes run.
func keptMeta(pool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rollout.Namespace, Name: name, Labels: map[string]string{PoolLabel: pool, managedByLabel: Name}}
}

// isOurs says whether this controller has made an object, by all that it gives one: both labels, and the name. Nothing else is ever deleted
// (rule 24).
func isOurs(object client.Object) bool {
	pool := object.GetLabels()[PoolLabel]
	if pool == "" || object.GetLabels()[managedByLabel] != Name || object.GetNamespace() != rollout.Namespace {
		return false
	}
	switch object.(type) {
	case *corev1.ConfigMap:
		return rollout.IsVariantOf(pool, object.GetName())
	case *appsv1.ControllerRevision:
		return rollout.IsRevisionOf(pool, object.GetName())
	}
	return false
}
