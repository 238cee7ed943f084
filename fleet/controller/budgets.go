package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// countsEvery is how often the status of a budget is written at most where only numbers have changed.
const countsEvery = 10 * time.Second

// budgetView is the KubeletRolloutBudgets as this process knows them.
type budgetView map[string]readBudget

// readBudget is a budget, read once for each version of it.
type readBudget struct {
	object  *v1alpha1.KubeletRolloutBudget
	version string
	budget  rollout.Budget
	// wrote is when its status was written last, where written is set.
	wrote   time.Duration
	written bool
}

// readAll are the budgets. One that is being deleted still holds: who wants it gone lets its finalizers end.
func (v *budgetView) readAll(cached []v1alpha1.KubeletRolloutBudget) []rollout.Budget {
	read := make(budgetView, len(cached))
	budgets := make([]rollout.Budget, 0, len(cached))
	for i := range cached {
		object := &cached[i]
		version := fmt.Sprint(object.UID, object.Generation)
		known, is := (*v)[object.Name]
		if !is || known.version != version {
			known.version, known.budget = version, rollout.ReadBudget(object, time.LoadLocation)
		}
		known.object, known.budget.Status = object, object.Status
		read[object.Name] = known
		budgets = append(budgets, known.budget)
	}
	*v = read
	return budgets
}

// writeBudgets writes the statuses of budgets that change, and gives when the next one is due. Nothing rests on them: one that the API server does not
// take holds up nobody.
func (c *Controller) writeBudgets(ctx context.Context, plan *rollout.Plan) (later time.Duration) {
	maps.DeleteFunc(c.refusedBudgets.all, func(name string, _ refusal) bool {
		_, changes := plan.Budgets[name]
		return !changes
	})
	for _, name := range slices.Sorted(maps.Keys(plan.Budgets)) {
		known, status := c.budgets[name], plan.Budgets[name]
		if wait := c.budgetDue(name, &status); wait > 0 {
			later = sooner(later, wait)
			continue
		}
		known.wrote, known.written = c.monotonic(), true
		c.budgets[name] = known
		err := c.writeBudget(ctx, known.object, status)
		switch {
		case err == nil, apierrors.IsConflict(err):
			c.refusedBudgets.forget(name)
		case c.refusedBudgets.note(name, err):
			c.log.Error(err, "the status of a KubeletRolloutBudget was refused", "budget", name)
		}
		later = sooner(later, statusEvery)
		if errors.Is(err, context.DeadlineExceeded) {
			break // the others would hang as well, and the pools wait
		}
	}
	return later
}

// budgetDue is when the status may be written.
func (c *Controller) budgetDue(name string, status *v1alpha1.KubeletRolloutBudgetStatus) time.Duration {
	known, wait := c.budgets[name], time.Duration(0)
	if known.written {
		every := statusEvery
		if old := &known.object.Status; old.ObservedGeneration == status.ObservedGeneration && slices.Equal(old.Conditions, status.Conditions) {
			every = countsEvery
		}
		wait = known.wrote + every - c.monotonic()
	}
	if refused, is := c.refusedBudgets.all[name]; is {
		wait = max(wait, refused.due-c.monotonic())
	}
	return max(0, wait)
}

// writeBudget is a compare-and-swap: other programs have conditions there, too. The answer is compared: else what a policy strips would be written for
// ever.
func (c *Controller) writeBudget(ctx context.Context, object *v1alpha1.KubeletRolloutBudget, status v1alpha1.KubeletRolloutBudgetStatus) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	bare := func(status v1alpha1.KubeletRolloutBudgetStatus) *v1alpha1.KubeletRolloutBudget {
		return &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}, Status: status}
	}
	changed := bare(status)
	if err := c.writer.Status().Patch(ctx, changed, client.MergeFromWithOptions(bare(object.Status), client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(status, changed.Status) {
		return altered{"what was stored has another status: a policy changes it, or the definition of KubeletRolloutBudgets is of another version than the controller"}
	}
	return nil
}
