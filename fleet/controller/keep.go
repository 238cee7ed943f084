package controller

import (
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

// ensure makes the revisions and variants that the plan needs, and those that are assigned to nodes and were changed or deleted. again means that a
// refusal is new or over, so that a new plan has to be made.
func (o *ownedObjects) ensure(ctx context.Context, w *rollout.World, plan *rollout.Plan) (again bool, err error) {
	var attempts []attempt
	for i := range plan.Revisions {
		r := &plan.Revisions[i]
		attempts = append(attempts, attempt{o.refusedRevisions, r.Pool, r.ObjectName(), func() error { return o.ensureRevision(ctx, r) }})
	}
	for _, v := range slices.Concat(plan.Variants, rollout.Repair(*w)) {
		attempts = append(attempts, attempt{o.refusedVariants, v.Pool, v.Name, func() error {
			if o.sound(v.Name) {
				return nil
			}
			return o.ensureVariant(ctx, &v)
		}})
	}
	slices.SortStableFunc(attempts, longestWaiting)
	for _, a := range attempts {
		news, err := a.refused.try(ctx, a)
		if again = again || news; err != nil {
			return again, err
		}
	}
	return again, nil
}

func (o *ownedObjects) ensureRevision(ctx context.Context, r *rollout.Revision) error {
	data, err := r.Data()
	if err != nil {
		return fmt.Errorf("writing revision %s: %w", r.ObjectName(), err)
	}
	object := &appsv1.ControllerRevision{ObjectMeta: objectMeta(r.Pool, r.ObjectName()), Revision: r.Number, Data: runtime.RawExtension{Raw: data}}
	if r.Cause != "" {
		object.Annotations = map[string]string{"kubernetes.io/change-cause": r.Cause}
	}
	var there appsv1.ControllerRevision
	stored, err := o.maker.make(ctx, making{object, &there, func() bool { return !rollout.ReadRevision(r.Pool, object.Name, there.Data.Raw).Tampered },
		o.refusedRevisions.all[object.Name].altered})
	if err != nil {
		return fmt.Errorf("keeping revision %s: %w", r.ObjectName(), err)
	}
	o.madeRevisions[object.Name] = made[appsv1.ControllerRevision]{stored.(*appsv1.ControllerRevision), o.monotonic()}
	return nil
}

func (o *ownedObjects) ensureVariant(ctx context.Context, v *rollout.Variant) error {
	immutable := true
	object := &corev1.ConfigMap{ObjectMeta: objectMeta(v.Pool, v.Name), Data: map[string]string{v.Key: v.Payload}, Immutable: &immutable}
	var there corev1.ConfigMap
	stored, err := o.maker.make(ctx, making{object, &there, func() bool { return !rollout.Tampered(v.Pool, v.Name, there.Data) },
		o.refusedVariants.all[object.Name].altered})
	if err != nil {
		return fmt.Errorf("keeping ConfigMap %s: %w", v.Name, err)
	}
	o.madeVariants[object.Name] = made[corev1.ConfigMap]{stored.(*corev1.ConfigMap), o.monotonic()}
	return nil
}

// managedByLabel is the label with the program that made an object.
const managedByLabel = "app.kubernetes.io/managed-by"

// objectMeta has no owner, because otherwise the deletion of a pool would delete what nodes run.
func objectMeta(pool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rollout.Namespace, Name: name, Labels: map[string]string{PoolLabel: pool, managedByLabel: Name}}
}

// isOurs reports whether this controller has made an object, which has both of its labels and a name of its form. Nothing else is ever deleted
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
