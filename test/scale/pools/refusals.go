//go:build linux

package pools

import (
	"context"
	"errors"
	"net/http"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const conflict = http.StatusConflict

// refusals rolls out revisions that a puppet refuses when half of them have heard of it.
func (r *rolling) refusals(ctx context.Context) error {
	for i := range r.options.Refusals {
		if err := r.noted.readOn(); err != nil {
			return err
		}
		began := time.Now()
		r.crew.refuseAfter(len(r.crew.puppets) / 2)
		if err := r.setMaxPods(ctx, 400+i); err != nil {
			return err
		}
		if err := r.await(ctx, v1alpha1.ConditionStalled, rollout.ReasonStopped); err != nil {
			return err
		}
		pause(ctx, tail)
		if err := r.noted.readOn(); err != nil {
			return err
		}
		verdict, err := r.verdict(began)
		if err != nil {
			return err
		}
		r.rollout.Refusals = append(r.rollout.Refusals, refusalOf(since(r.noted.assignments, began), verdict))
	}
	pause(ctx, r.options.Trial) // what began last ends
	return nil
}

// verdict is when the API server had answered the PATCH with which the refusal came to the Node: nobody had to know it before.
func (r *rolling) verdict(began time.Time) (at time.Time, err error) {
	for name, p := range r.crew.puppets {
		for _, s := range p.since(began) {
			if s.reason != nodev1.ReasonRefused {
				continue
			}
			for _, w := range since(r.noted.words, s.wanted.Truncate(time.Microsecond)) { // the log has no more digits
				if w.name == name && w.done() && !w.received.After(s.acknowledged) {
					at = w.answered
				}
			}
		}
	}
	if at.IsZero() {
		err = errors.New("the audit log has no verdict")
	}
	return at, err
}

// refusalOf looks at the first PATCH of each Node. By a second one it is taken back.
func refusalOf(patches []request, verdict time.Time) (f Refusal) {
	seen := map[string]bool{}
	for _, p := range patches {
		if seen[p.name] || !p.done() {
			continue
		}
		seen[p.name] = true
		f.Assigned++
		if p.received.After(verdict) {
			f.After++
			f.Last = max(f.Last, p.received.Sub(verdict))
		}
	}
	return f
}
