package controller

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// refusal is that the API server has refused a revision or a variant that a pool needs: by a quota, a webhook, for want of a namespace. Such a
// pool waits and says so; the others go on.
type refusal struct {
	words string
	at    time.Duration
}

// refusedFor is when a pool's revision or variant is tried again.
const refusedFor = 10 * time.Second

// stands: it is too soon to try again.
func (c *Controller) stands(r refusal) bool { return c.monotonic()-r.at < refusedFor }

func (c *Controller) refusedPools() map[string]bool {
	pools := map[string]bool{}
	for pool, r := range c.refused {
		if c.stands(r) {
			pools[pool] = true
		}
	}
	return pools
}

// try keeps something of a pool. Only an error that is no answer of the API server's is everybody's.
func (c *Controller) try(pool string, refused map[string]refusal, keep func() error) error {
	if _, is := refused[pool]; is {
		return nil
	}
	err := keep()
	if !answered(err) {
		return err
	}
	if c.refused[pool].words != err.Error() {
		c.log.Error(err, "the pool waits", "pool", pool)
	}
	refused[pool] = refusal{err.Error(), c.monotonic()}
	return nil
}

// answered: it is the API server's own word, and not that somebody was faster.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err)
}

// hold replaces what was decided for pools that wait: their status says why, and is otherwise what it was.
func (c *Controller) hold(w *rollout.World, plan *rollout.Plan) {
	for pool, r := range c.refused {
		known, is := c.pools.read[pool]
		if !is {
			continue
		}
		status := *known.object.Status.DeepCopy()
		words := bounded.Text(r.words, 512)
		changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
			Reason: rollout.ReasonHeld, Message: words, ObservedGeneration: known.object.Generation, LastTransitionTime: metav1.NewTime(w.Now)})
		plan.Status[pool] = status
		plan.Events = slices.DeleteFunc(plan.Events, func(e rollout.Event) bool { return e.Pool == pool && e.Node == "" })
		if changed {
			plan.Events = append(plan.Events, rollout.Event{Pool: pool, Warning: true, Reason: rollout.EventRolloutHeld, Message: words})
		}
	}
}
