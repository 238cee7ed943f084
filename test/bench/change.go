//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	sectionChange = "change"
	deadlyName    = "deadly payload"
	sleptWords    = "Failed to ApplyOOMScoreAdj" // the kubelet's
	heldName      = "healthz port that somebody else holds"
	heldPort      = 6443 // the API server's
)

// bare restarts a kubelet that has no supervisor, half of the rounds: it is called twice. The first restart is not counted: it may
// find a Node that is new, and a program that is not in memory.
func (b *bench) bare(ctx context.Context) error {
	kubelet, err := b.kubeletProcess()
	if err != nil {
		return err
	}
	if _, err := b.health.awaitUp(ctx); err != nil {
		return err
	}
	for round := range 1 + (b.Rounds+1)/2 {
		if err := settled(ctx, b.Settle); err != nil {
			return err
		}
		begin := time.Now()
		if err := b.end(kubelet); err != nil {
			return err
		}
		stopped := time.Since(begin)
		if kubelet, err = b.kubeletProcess(); err != nil {
			return err
		}
		up, err := b.upAgain(ctx, begin)
		if err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		b.bareStop.addTime(stopped)
		b.bareRestart.addTime(up.Sub(begin))
		b.bareUnhealthy.addTime(b.health.down(begin))
	}
	if log, err := kubelet.LogFrom(0); err != nil || strings.Contains(log, sleptWords) {
		return errors.Join(err, fmt.Errorf("the kubelet said %q, so it slept at its start, and the unit is none; %s",
			sleptWords, cluster.KubeletOOMScore()))
	}
	return b.end(kubelet)
}

// upAgain waits until the kubelet is healthy again, after a restart since begin that is sure to come.
func (b *bench) upAgain(ctx context.Context, begin time.Time) (up time.Time, err error) {
	err = await(ctx, "the kubelet is healthy again", func() error {
		last := b.health.last()
		if up = last.at; !last.healthy || up.Before(begin) {
			return fmt.Errorf("healthy is %t since %s", last.healthy, last.at.Format(time.TimeOnly))
		}
		return nil
	})
	return up, err
}

// recover measures the way back from a deadly payload, after which the kubelet is healthy since up.
func (k *change) recover(began, up time.Time, log string) error {
	lines := ownLines(log)
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i].Words, startingWords) {
			k.recovered.addTime(up.Sub(began))
			k.back.addTime(up.Sub(lines[i].Time.Time))
			return nil
		}
	}
	return fmt.Errorf("the supervisor's log has no %q: %s", startingWords, log)
}

// changes makes all kinds of changes, round by round, of each kind as often.
func (b *bench) changes(ctx context.Context) error {
	kinds := b.kinds()
	for _, k := range kinds {
		b.rows(k)
	}
	supervisor, err := b.supervisorProcess("changes", b.node.kubelet())
	if err != nil {
		return err
	}
	if err := b.node.awaitNode(ctx, "local, and that it is ready", func(v view) bool { return v.local() && v.ready }); err != nil {
		return err
	}
	var traces []trace
	for round := range b.Rounds {
		if err := b.cleared(func(context.Context) error { return settled(ctx, b.Settle) })(ctx); err != nil {
			return err
		}
		for _, k := range kinds {
			if k.name == deadlyName && round >= (b.Rounds+1)/2 {
				continue // each takes ten times as long as the others
			}
			t, err := b.make(ctx, supervisor, k)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", k.name, round+1, err)
			}
			if k == kinds[0] {
				traces = append(traces, t)
			}
		}
	}
	b.result.Trace = medianTrace(traces).phases()
	if err := b.heldPort(ctx); err != nil {
		return fmt.Errorf("%s: %w", heldName, err)
	}
	return b.end(supervisor)
}

// heldPort assigns a configuration whose kubelet never answers, for its healthz port is taken, and waits until the last known good one
// (here local) is healthy again, or until that took too long.
func (b *bench) heldPort(ctx context.Context) error {
	row := b.result.row(sectionChange, heldName+": until the last known good one is healthy again", "ms").within(15_000, "15 s")
	nothing := func(context.Context) error { return nil }
	if err := b.cleared(nothing)(ctx); err != nil {
		return err
	}
	if _, err := b.node.write(ctx, "bench-held", b.node.payload(good)+fmt.Sprintf("healthzPort: %d\n", heldPort)); err != nil {
		return err
	}
	if _, err := b.health.awaitUp(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := b.node.assign(ctx, "bench-held"); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, b.GiveUp)
	defer cancel()
	up, err := b.upAgain(waiting, began)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		row.AtLeast = true
		row.addTime(b.GiveUp)
	default:
		row.addTime(up.Sub(began))
	}
	if err := b.cleared(nothing)(ctx); err != nil {
		return err
	}
	_, err = b.health.awaitUp(ctx)
	return err
}

// make makes one change and measures it.
func (b *bench) make(ctx context.Context, supervisor *process, k *change) (t trace, err error) {
	if err := k.prepare(ctx); err != nil {
		return t, err
	}
	watch, err := b.node.watch(ctx)
	if err != nil {
		return t, err
	}
	defer watch.Stop()
	if _, err := b.health.awaitUp(ctx); err != nil {
		return t, err
	}
	logged := supervisor.LogSize()
	began := time.Now()
	seen, err := k.do(ctx)
	if err != nil {
		return t, err
	}
	answered := time.Now()
	at, err := watch.await(ctx, k.name, seen)
	if err != nil {
		return t, err
	}
	pause := b.Settle
	if k.starts == 0 {
		pause /= 3 // no kubelet to let alone, only a start to see that should not come
	}
	log, err := b.quiet(ctx, supervisor, logged, pause)
	if err != nil {
		return t, err
	}
	k.latency.addTime(at.Sub(began))
	k.unhealthy.addTime(b.health.down(began))
	k.restarts.add(float64(strings.Count(log, startingWords)))
	if k.recovered != nil {
		err = k.recover(began, b.health.last().at, log)
	}
	return trace{began: began, answered: answered, ended: at, end: "the Node names it active", took: at.Sub(began), lines: ownLines(log),
		down: b.health.changesSince(began)}, err
}

// quiet waits until the kubelet that was started last is healthy, by the supervisor's log and by the polls, and a while longer. It
// gives what was logged.
func (b *bench) quiet(ctx context.Context, supervisor *process, logged int64, pause time.Duration) (log string, err error) {
	err = await(ctx, "the kubelet that was started last is healthy", func() (err error) {
		if log, err = supervisor.LogFrom(logged); err != nil {
			return err
		}
		if strings.LastIndex(log, startingWords) > strings.LastIndex(log, healthyWords) || !b.health.last().healthy {
			return fmt.Errorf("it is not yet")
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := settled(ctx, pause); err != nil {
		return "", err
	}
	return supervisor.LogFrom(logged)
}
