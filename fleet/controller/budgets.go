package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// countsEvery is the shortest time between two writes of a budget's status if only numbers have changed.
const countsEvery = 10 * time.Second

// budgetStatuses reads the KubeletRolloutBudgets, and writes their statuses.
type budgetStatuses struct {
	writer    writer
	monotonic func() time.Duration
	log       logr.Logger
	refused   *refusals // by the name of the budget
	read      map[string]readBudget
}

func newBudgetStatuses(p parts) *budgetStatuses {
	return &budgetStatuses{writer: p.writer, monotonic: p.monotonic, log: p.log, refused: newRefusals(p, refusedFirst, refusedFor)}
}

// readBudget is a budget, read once for each version of it.
type readBudget struct {
	object  *v1alpha1.KubeletRolloutBudget
	version string
	budget  rollout.Budget
	// wrote is when its status was last written, if written is set.
	wrote   time.Duration
	written bool
}

// readAll reads the budgets. A budget that is being deleted still applies until its finalizers are removed.
func (s *budgetStatuses) readAll(cached []v1alpha1.KubeletRolloutBudget) []rollout.Budget {
	read := make(map[string]readBudget, len(cached))
	budgets := make([]rollout.Budget, 0, len(cached))
	for i := range cached {
		object := &cached[i]
		version := fmt.Sprint(object.UID, object.Generation)
		known, is := s.read[object.Name]
		if !is || known.version != version {
			known.version, known.budget = version, rollout.ReadBudget(object, time.LoadLocation)
		}
		known.object, known.budget.Status = object, object.Status
		read[object.Name] = known
		budgets = append(budgets, known.budget)
	}
	s.read = read
	return budgets
}

// write writes the statuses of budgets that change, and returns in how long the next one is due. No decision depends on them, so a refused one delays
// nothing.
func (s *budgetStatuses) write(ctx context.Context, plan *rollout.Plan) (later time.Duration) {
	maps.DeleteFunc(s.refused.all, func(name string, _ refusal) bool {
		_, changes := plan.Budgets[name]
		return !changes
	})
	for _, name := range slices.Sorted(maps.Keys(plan.Budgets)) {
		known, status := s.read[name], plan.Budgets[name]
		if wait := s.due(name, &status); wait > 0 {
			later = sooner(later, wait)
			continue
		}
		known.wrote, known.written = s.monotonic(), true
		s.read[name] = known
		err := s.writeOne(ctx, known.object, status)
		switch {
		case err == nil, apierrors.IsConflict(err):
			s.refused.forget(name)
		case s.refused.note(name, err):
			s.log.Error(err, "the status of a KubeletRolloutBudget was refused", "budget", name)
		}
		later = sooner(later, statusEvery)
		if errors.Is(err, context.DeadlineExceeded) {
			break // the others would hang as well, while the pools wait
		}
	}
	return later
}

// due is in how long the status may be written.
func (s *budgetStatuses) due(name string, status *v1alpha1.KubeletRolloutBudgetStatus) time.Duration {
	known, wait := s.read[name], time.Duration(0)
	if known.written {
		every := statusEvery
		if old := &known.object.Status; old.ObservedGeneration == status.ObservedGeneration && slices.Equal(old.Conditions, status.Conditions) {
			every = countsEvery
		}
		wait = known.wrote + every - s.monotonic()
	}
	if refused, is := s.refused.all[name]; is {
		wait = max(wait, refused.due-s.monotonic())
	}
	return max(0, wait)
}

// writeOne is a compare-and-swap, because other programs may have conditions there. The answer is compared, because what a policy removes would
// otherwise be written again and again.
func (s *budgetStatuses) writeOne(ctx context.Context, object *v1alpha1.KubeletRolloutBudget, status v1alpha1.KubeletRolloutBudgetStatus) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	bare := func(status v1alpha1.KubeletRolloutBudgetStatus) *v1alpha1.KubeletRolloutBudget {
		return &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}, Status: status}
	}
	changed := bare(status)
	if err := s.writer.Status().Patch(ctx, changed, client.MergeFromWithOptions(bare(object.Status), client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(status, changed.Status) {
		return altered{"what was stored has another status: a policy changes it, or the definition of KubeletRolloutBudgets is of another version than the controller"}
	}
	return nil
}
