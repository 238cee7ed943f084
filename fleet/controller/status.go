package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// write writes each status that changes, at most once a second. written are the pools whose Nodes may be patched: those whose status is written, and
// those whose status waits for its second with changed numbers only. later is in how long the next status is due. An error is one that is not an answer
// about a pool.
func (s *poolStatuses) write(ctx context.Context, w *rollout.World, plan *rollout.Plan) (later time.Duration, written map[string]bool, err error) {
	written = map[string]bool{}
	maps.DeleteFunc(s.refused.all, func(name string, _ refusal) bool { // no longer needed
		_, changes := plan.Status[name]
		return !w.Mute[name] && !changes
	})
	for _, name := range slices.Sorted(maps.Keys(plan.Status)) {
		known, status := s.read[name], plan.Status[name]
		if apiequality.Semantic.DeepEqual(known.object.Status, status) {
			written[name] = true
			s.refused.forget(name)
			continue
		}
		if w.Mute[name] {
			continue
		}
		if wait := s.due(known.object.UID); wait > 0 {
			later = sooner(later, wait)
			written[name] = !decisive(&known.object.Status, &status) && !tells(plan, name)
			continue
		}
		failure := s.writeOne(ctx, known.object, status)
		switch {
		case failure == nil:
			written[name] = true
			s.refused.forget(name)
			s.announce(plan, name)
		case apierrors.IsConflict(failure), apierrors.IsNotFound(failure):
			s.refused.forget(name)
			later = sooner(later, time.Millisecond) // it was changed: decide again
		case answered(ctx, failure): // the other pools go on, at once
			if s.refused.note(name, failure) {
				s.log.Error(failure, "the status of a KubeletPool was refused, and nothing is done for it", "pool", name)
			}
			later = sooner(later, time.Millisecond)
		default:
			err = errors.Join(err, fmt.Errorf("writing the status of KubeletPool %s: %w", name, failure))
		}
	}
	return later, written, err
}

// writeOne is a compare-and-swap. It returns an error of type altered if what was stored is not what was sent.
func (s *poolStatuses) writeOne(ctx context.Context, object *v1alpha1.KubeletPool, status v1alpha1.KubeletPoolStatus) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	changed, patch := statusPatch(object, status)
	s.wrote[object.UID] = s.monotonic()
	err := s.writer.Status().Patch(ctx, changed, patch)
	switch {
	case err == nil:
		s.answered(changed)
		return differsInStatus(&status, &changed.Status)
	case !errors.Is(err, errFenced):
		// Only the API server knows whether it arrived, and whether another write was faster.
		var now v1alpha1.KubeletPool
		if s.live.Get(ctx, types.NamespacedName{Name: object.Name}, &now) == nil && now.UID == object.UID {
			s.answered(&now)
		}
	}
	return err
}

// differsInStatus compares a status as it was sent with the one that was stored, because the next decision depends on it.
func differsInStatus(sent, stored *v1alpha1.KubeletPoolStatus) error {
	if apiequality.Semantic.DeepEqual(sent, stored) {
		return nil
	}
	var names []string
	a, b := reflect.ValueOf(sent).Elem(), reflect.ValueOf(stored).Elem()
	for i := range a.NumField() {
		if !apiequality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, "status."+name)
		}
	}
	return altered{"what was stored has another " + strings.Join(names, ", ") + ": a policy changes it, or the definition of KubeletPools is of another version than the controller"}
}

// statusPatch is the patch to that status, which applies only to this version of the pool. Lists that do not change are left out before the two are
// compared as JSON, because stops and failures are most of a status, and would cost a MiB of garbage each time.
func statusPatch(object *v1alpha1.KubeletPool, status v1alpha1.KubeletPoolStatus) (changed *v1alpha1.KubeletPool, patch client.Patch) {
	old := object.Status
	leaveOutEqual(&old.Stops, &status.Stops)
	leaveOutEqual(&old.Failures, &status.Failures)
	leaveOutEqual(&old.Revisions, &status.Revisions)
	leaveOutEqual(&old.Cohorts, &status.Cohorts)
	bare := func(status v1alpha1.KubeletPoolStatus) *v1alpha1.KubeletPool {
		return &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}, Status: status}
	}
	return bare(status), client.MergeFromWithOptions(bare(old), client.MergeFromWithOptimisticLock{})
}

func leaveOutEqual[T any](old, list *[]T) {
	if apiequality.Semantic.DeepEqual(*old, *list) {
		*old, *list = nil, nil
	}
}

// decisive reports whether what is done with nodes depends on the change, so that it has to be written first. Numbers and messages may wait.
func decisive(old, status *v1alpha1.KubeletPoolStatus) bool {
	return !apiequality.Semantic.DeepEqual(decision(old), decision(status))
}

func decision(of *v1alpha1.KubeletPoolStatus) v1alpha1.KubeletPoolStatus {
	s := *of.DeepCopy()
	s.Nodes, s.Cohorts = v1alpha1.NodeCounts{Conflict: s.Nodes.Conflict}, nil
	if s.Wave != nil {
		s.Wave = &v1alpha1.WaveStatus{Number: s.Wave.Number}
	}
	for i := range s.Revisions {
		s.Revisions[i].Proven = 0
	}
	for i := range s.Conditions {
		s.Conditions[i].Message, s.Conditions[i].LastTransitionTime = "", metav1.Time{}
		if c := &s.Conditions[i]; c.Type == v1alpha1.ConditionProgressing && c.Reason != rollout.ReasonHeld {
			c.Status, c.Reason = "", ""
		}
	}
	return s
}

// tells reports whether there are events of the pool. They are recorded when its status is written.
func tells(plan *rollout.Plan, pool string) bool {
	return slices.ContainsFunc(plan.Events, func(e rollout.Event) bool { return e.Pool == pool && e.Node == "" })
}

// announce records the events of a pool, whose status has been written.
func (s *poolStatuses) announce(plan *rollout.Plan, pool string) {
	for _, e := range plan.Events {
		if e.Pool == pool && e.Node == "" {
			s.events.Event(s.read[pool].object, eventType(e.Warning), e.Reason, e.Message)
			s.log.Info(e.Message, "pool", pool, "event", e.Reason)
			if e.Reason == rollout.EventRolloutStopped {
				s.metrics.stopped(s.verdicts.stopped(pool))
			}
		}
	}
}
