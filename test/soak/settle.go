//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// settle waits until the node is healthy and the Node says the truth, checks that it is the whole truth, and notes it.
func (s *soaker) settle(ctx context.Context, steps, mending []step, before world) error {
	all := append(append([]step{}, steps...), mending...)
	begin := time.Now()
	excused := s.ledger.round(s.truth, before, all, begin)
	if err := s.service.rested(ctx); err != nil {
		return err
	}
	if err := await(ctx, healthyWithin, "healthy again after the last fault", func() error { return s.checkHealthy(ctx) }); err != nil {
		return err
	}
	healthy := time.Since(begin)
	want := expect(s.truth, before, steps, situation{s.pods.running(), s.consent != nil, s.consent != nil && s.pods.renewed(s.held.Losses)})
	if slices.ContainsFunc(steps, func(s step) bool { return s.harm == taken }) {
		s.pods.uncounted = true // a kubelet may have been started while the pages were away: one that is made again now would not have room
	}
	if slices.ContainsFunc(steps, func(s step) bool { return s.harm == taken || s.pod != "" }) {
		want.losses = -1 // a look may have counted the pod whose pages were away, or that comes or goes
	}
	v, err := s.awaitTruth(ctx, want, excused)
	if err != nil {
		return err
	}
	switch back, err := s.takeBack(ctx, v); {
	case err != nil:
		return err
	case back:
		if v, err = s.awaitTruth(ctx, want, excused); err != nil {
			return err
		}
	}
	truth := time.Since(begin)
	s.figures.settled(all, healthy, truth)
	if hugePodMayEnd(steps) {
		s.pods.mayLose = hugePod
	}
	if err := s.pods.settle(ctx, s.plan.world, v.active, s.consent.spentBy(v)); err != nil {
		return err
	}
	s.endConsent(v)
	started := s.service.log.starts
	if err := s.checkStarts(want, steps, excused); err != nil {
		return err
	}
	s.truth = v.truth
	s.ledger.acquit(v.active)
	return s.checkGrowth(sample{
		Second: int(time.Since(s.figures.begin).Seconds()), Healthy: milliseconds(healthy), True: milliseconds(truth), Starts: s.service.log.starts - started,
	})
}

// awaitTruth waits for the expected truth, which then has to hold for a while. A good configuration that may have been rejected for
// what was done to its kubelets is asked for again, once.
func (s *soaker) awaitTruth(ctx context.Context, want expectation, excused bool) (view, error) {
	var since time.Time
	var v view
	err := await(ctx, trueWithin, fmt.Sprintf("the Node says the truth: %+v", want), func() error {
		var err error
		if v, err = s.node.view(ctx); err == nil {
			err = s.checkAny(ctx, v, want)
		}
		if err != nil {
			since = time.Time{}
			if excused && v.stuck(want) {
				excused = false
				s.figures.retries++
				s.ledger.acquit(v.assigned)
				s.ledger.acquit(v.lastKnownGood)
				return errors.Join(err, s.node.change(ctx, step{retry: true}, world{}))
			}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < steadyFor {
			return errors.New("true, for a moment so far")
		}
		return nil
	})
	return v, err
}

// stuck: rejected, as only somebody's word can change.
func (v view) stuck(want expectation) bool {
	switch reason := v.condition.Reason; {
	case v.observed != want.observed:
		return false
	case reason == "Rejected" && want.reason == "Active", reason == "LastKnownGoodFailed":
		return true
	default: // behind an error of the assignment
		return reason == want.reason && (v.assigned.quality == good || v.assigned.quality == harmful) && v.active != v.assigned
	}
}

// checkAny: one of the things that may come has come.
func (s *soaker) checkAny(ctx context.Context, v view, want expectation) error {
	err := s.check(ctx, v, want)
	if err != nil && want.otherwise != nil && s.check(ctx, v, *want.otherwise) == nil {
		return nil
	}
	return err
}

func (s *soaker) check(ctx context.Context, v view, want expectation) error {
	if unmet := want.unmet(v.truth, v.observed, v.condition.Reason, v.config.Error); unmet != "" {
		return fmt.Errorf("%s: %+v, observed %q, %s: %s, error %q", unmet, v.truth, v.observed, v.condition.Reason, v.condition.Message, v.config.Error)
	}
	if !v.ready {
		return errors.New("the Node is not Ready")
	}
	if err := v.checkHold(want); err != nil {
		return err
	}
	if err := s.checkHealthy(ctx); err != nil {
		return err
	}
	return s.checkTruth(ctx, v)
}

// checkStarts compares the number of kubelets that were started with what the step makes necessary.
func (s *soaker) checkStarts(want expectation, steps []step, excused bool) error {
	if err := s.service.log.follow(); err != nil {
		return err
	}
	made := s.service.log.starts - s.starts
	s.starts = s.service.log.starts
	if excused || want.starts == nil {
		return nil
	}
	s.figures.counted++
	for _, starts := range want.starts {
		if made == starts {
			return nil
		}
	}
	return fmt.Errorf("%d kubelets were started by %q, want %v", made, steps, want.starts)
}

// checkGrowth compares the supervisor's size with that at the first quiescent moment of its life, and notes it in the sample.
func (s *soaker) checkGrowth(note sample) error {
	z, err := s.measure()
	if err != nil {
		return err
	}
	if z.Life != s.first.Life {
		s.first = z
	}
	note.Round, note.size, note.Pods = s.plan.rounds, z, len(s.pods.known)
	s.figures.samples = append(s.figures.samples, note)
	if what := grown(s.first, z); what != "" {
		return fmt.Errorf("growth: %s", what)
	}
	return compareGoroutines(s.service.log.goroutines)
}

// await polls until seen returns nil; the error has what was seen last.
func await(ctx context.Context, patience time.Duration, description string, seen func() error) error {
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s; last seen: %w", description, patience, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
