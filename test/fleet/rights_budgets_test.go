//go:build e2e

package fleet

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const budgetName = "rights-budget"

func budgetOf(name string) *v1alpha1.KubeletRolloutBudget {
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.Selector.MatchLabels = map[string]string{poolLabel: "rights-of-nobody"}
	return b
}

// budgetReady is a status with the controller's condition.
func budgetReady(reason string) string {
	return fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, reason)
}

// approved is somebody's own condition. It is applied, because the controller may write its own at any time.
const approved = `{"apiVersion":"kubelet-supervisor.io/v1alpha1","kind":"KubeletRolloutBudget","status":{"conditions":[` +
	`{"type":"example.com/Approved","status":"True","reason":"a","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

func (r *rights) approve(budget client.Object) act {
	return func(who *person) error {
		patch := client.RawPatch(types.ApplyPatchType, []byte(approved))
		return who.Status().Patch(r.t.Context(), budget.DeepCopyObject().(client.Object), patch, client.DryRunAll, client.FieldOwner("approver"))
	}
}

func (r *rights) actsOnBudgets() map[string]act {
	budget := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: budgetName}}
	frozen := budgetOf("rights-frozen")
	frozen.Spec.Frozen = true
	return map[string]act{
		"make a budget":                            r.create(frozen),
		"freeze a budget":                          r.merge(budget, `{"spec":{"frozen":true}}`),
		"give a budget an owner":                   r.merge(budget, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gone","uid":"1"}]}}`),
		"delete a budget":                          r.delete(budget),
		"write a budget's `Ready`":                 r.merge(budget, budgetReady("b"), "status"),
		"remove a budget's `Ready`":                r.merge(budget, `{"status":{"conditions":[]}}`, "status"),
		"write another field of a budget's status": r.merge(budget, `{"status":{"observedGeneration":77}}`, "status"),
		"write a budget's `example.com/Approved`":  r.approve(budget),
	}
}

// budgetStatus gives budgets a status where their definition has none yet: first as a part of the object, which asks for the verb then, too,
// and then as a subresource, with the condition of the controller.
func (r *rights) budgetStatus(people map[string]*person) {
	r.t.Helper()
	r.place(budgetOf(budgetName))
	budget := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: budgetName}}
	subresource, err := r.f.Kubectl(r.t.Context(), "get", "crd", "kubeletrolloutbudgets.kubelet-supervisor.io", "-o", "jsonpath={.spec.versions[0].subresources.status}")
	if err != nil {
		r.t.Fatal(err)
	}
	if subresource == "" {
		r.define(`{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`)
		r.await("the status is a part of the object", func() bool {
			return cluster.RefusedBy(r.merge(budget, budgetReady("a"))(people["pool writer"])) == "policy"
		})
		if err := r.merge(budget, budgetReady("a"))(people["operator"]); err != nil {
			r.t.Errorf("the operator writes a status that is a part of the object: %v", err)
		}
		r.define(`{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}`)
	}
	r.await("the status is a subresource", func() bool {
		patch := client.RawPatch(types.MergePatchType, []byte(budgetReady("a")))
		err := people["controller"].Status().Patch(r.t.Context(), budget.DeepCopy(), patch)
		if err != nil && !apierrors.IsNotFound(err) {
			r.t.Fatal(err)
		}
		return err == nil
	})
}

func (r *rights) define(change string) {
	r.t.Helper()
	if _, err := r.f.Kubectl(r.t.Context(), "patch", "crd", "kubeletrolloutbudgets.kubelet-supervisor.io", "--type=json", "-p", "["+change+"]"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rights) await(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); wait(r.t.Context(), 100*time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain until %s", what)
		}
	}
}
