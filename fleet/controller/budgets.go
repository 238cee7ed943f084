package controller

import (
	"fmt"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// budgetView is the KubeletRolloutBudgets as this process knows them.
type budgetView map[string]readBudget

// readBudget is a budget, read once for each version of it.
type readBudget struct {
	version string
	budget  rollout.Budget
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
			known = readBudget{version, rollout.ReadBudget(object, time.LoadLocation)}
		}
		read[object.Name] = known
		budgets = append(budgets, known.budget)
	}
	*v = read
	return budgets
}
