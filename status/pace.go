package status

import (
	"math/rand/v2"
	"reflect"
	"time"
)

// passingPause is between a patch and one that says only what goes on.
const passingPause = 10 * time.Second

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

// sooner gives the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
