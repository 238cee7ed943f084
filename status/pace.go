package status

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	passingPause = 10 * time.Second // between a patch and one that says only what goes on
	flipPause    = time.Minute      // between patches of a Node that goes back and forth between the same two states
)

// flips are the newest states that were published, the newest last: a kubelet that is restarted again and again has two, in turns.
type flips []Report

const mostFlips = 3

func (f flips) with(r Report) flips {
	if last := len(f) - 1; last >= 0 && sameState(f[last], r) {
		f = f[:last]
	}
	f = append(f, r)
	return f[max(0, len(f)-mostFlips):]
}

// continuedBy reports whether r is the third change between the same two states, or repeats the second one with
// another message. An edit has another resourceVersion, and is none. A new verdict and words about approvals are none
// either. A verdict that the Node has shown already, with the same failure, is not new: a kubelet that crash-loops at
// the same time hides it, and shows it again, each time.
func (f flips) continuedBy(r Report) bool {
	if len(f) < mostFlips || !sameState(f[0], f[2]) {
		return false
	}
	isNew := r.Condition.Status == corev1.ConditionFalse && !slices.ContainsFunc(f, func(shown Report) bool {
		return sameState(shown, r) && reflect.DeepEqual(shown.Status.Failure, r.Status.Failure)
	})
	return !isNew && (sameState(f[1], r) || sameState(f[2], r))
}

func sameState(a, b Report) bool {
	return sameVerdict(a, b) && reflect.DeepEqual(a.Config, b.Config) &&
		a.Status.Approval == b.Status.Approval && reflect.DeepEqual(a.Status.Hold, b.Status.Hold)
}

// notBefore says when a report may be published: a verdict and what speaks of another assignment at once. One edit of a ConfigMap moves
// the pointers of every Node that is assigned it, so that alone can wait (Options.MovesEvery). The mutex is held.
func (p *Publisher) notBefore(r Report) time.Time {
	shown, every := p.acknowledged, p.options.MovesEvery
	switch {
	case shown == nil, every == 0, p.flushing, !reflect.DeepEqual(shown.Observed, r.Observed), shown.Status.Retry != r.Status.Retry:
	case r.Gist != "" && r.Gist == shown.Gist && sameVerdict(r, *shown):
		if p.moveAt.IsZero() {
			p.moveAt = later(time.Now(), p.patched.Add(every)).Add(rand.N(every))
		}
		return p.moveAt
	case p.flips.continuedBy(r):
		return p.patched.Add(flipPause)
	case r.Passing:
		return p.patched.Add(passingPause)
	}
	return time.Time{}
}

func sameVerdict(a, b Report) bool {
	return a.Condition.Status == b.Condition.Status && a.Condition.Reason == b.Condition.Reason && a.Config.Error == b.Config.Error
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner gives the earlier of two times; zero as the first one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
