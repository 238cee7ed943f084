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

	// Budgets as multiples of the bare restart: between two assigned configurations, and from and to local.
	betweenTimes, betweenUnhealthy = 1.3, 0.75
	localTimes, localUnhealthy     = 2.2, 0.8
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
		return errors.Join(err, fmt.Errorf("the kubelet said %q, so it slept at its start, and the unit is none; %s", sleptWords, cluster.KubeletOOMScore()))
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

// A change is a kind of change, and what is measured of it.
type change struct {
	name   string
	starts float64 // of kubelets, that are allowed
	// Budgets of the latency and of the time without a healthy kubelet, as multiples of the bare restart; 0: none.
	times, timesUnhealthy float64
	// prepare makes everything but the last request; do makes it, and tells what the Node is to say then.
	prepare func(ctx context.Context) error
	do      func(ctx context.Context) (func(view) bool, error)

	latency, unhealthy, restarts *Row
	recovered, back              *Row // of a payload that is rolled back
}

// kinds are the changes in the order in which they are made in each round; each begins where the one before ended.
func (b *bench) kinds() []*change {
	n := b.node
	var version string
	write := func(name, kind string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			version, err = n.write(ctx, name, n.payload(kind))
			return err
		}
	}
	assign := func(name string, seen func(view) bool) func(context.Context) (func(view) bool, error) {
		return func(ctx context.Context) (func(view) bool, error) { return seen, n.assign(ctx, name) }
	}
	nothing := func(context.Context) error { return nil }
	edited := func(v view) bool { return v.runs("bench-good", version) }
	refusedSeen := func(v view) bool { return v.failed("bench-refused", version, "Refused") }
	return []*change{
		{name: "good configuration", starts: 1, times: localTimes, timesUnhealthy: localUnhealthy, prepare: write("bench-good", good), do: assign("bench-good", edited)},
		{name: "in-place edit", starts: 1, times: betweenTimes, timesUnhealthy: betweenUnhealthy, prepare: nothing, do: func(ctx context.Context) (func(view) bool, error) {
			return edited, write("bench-good", good)(ctx)
		}},
		{name: "equal content", starts: 0, prepare: nothing, do: func(ctx context.Context) (_ func(view) bool, err error) {
			version, err = n.label(ctx, "bench-good")
			return edited, err
		}},
		{name: "another configuration", starts: 1, times: betweenTimes, timesUnhealthy: betweenUnhealthy, prepare: write("bench-other", good),
			do: assign("bench-other", func(v view) bool { return v.runs("bench-other", version) })},
		{name: "removal", starts: 1, times: localTimes, timesUnhealthy: localUnhealthy, prepare: nothing, do: assign("", view.local)},
		{name: "refused payload", starts: 0, prepare: write("bench-refused", refused), do: assign("bench-refused", refusedSeen)},
		{name: "refused payload in a trial", starts: 1, prepare: func(ctx context.Context) error {
			if err := errors.Join(write("bench-good", good)(ctx), n.assign(ctx, "bench-good")); err != nil {
				return err
			}
			if err := n.awaitNode(ctx, "another configuration is on trial", edited); err != nil {
				return err
			}
			return write("bench-refused", refused)(ctx)
		}, do: assign("bench-refused", refusedSeen)},
		{name: deadlyName, starts: 4, prepare: b.cleared(write("bench-deadly", deadly)), do: assign("bench-deadly", func(v view) bool {
			return v.failed("bench-deadly", version, "RolledBack")
		})},
	}
}

// cleared removes the assignment, waits until the Node says so, and then prepares.
func (b *bench) cleared(prepare func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := b.node.assign(ctx, ""); err != nil {
			return err
		}
		if err := b.node.awaitNode(ctx, "nothing is assigned", view.local); err != nil {
			return err
		}
		return prepare(ctx)
	}
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

// rows makes the rows of a kind of change, and names the budgets.
func (b *bench) rows(k *change) {
	words := ": until active names it"
	switch {
	case k.name == "removal":
		words = ": until the Node says local"
	case k.times == 0 && k.name != "equal content":
		words = ": until the Node says so"
	}
	k.latency = b.result.row(sectionChange, k.name+words, "ms").against(b.bareRestart)
	k.unhealthy = b.result.row(sectionChange, k.name+": kubelet not healthy", "ms").against(b.bareRestart)
	k.restarts = b.result.row(sectionChange, k.name+": kubelet starts", "")
	switch {
	case k.times > 0:
		k.latency.withinTimes(k.times, b.bareRestart)
		k.unhealthy.withinTimes(k.timesUnhealthy, b.bareRestart)
	case strings.HasPrefix(k.name, "refused payload"):
		k.latency.within(150, "150 ms")
	}
	if k.starts == 0 {
		k.unhealthy.Reference = ""
	}
	k.restarts.within(k.starts, fmt.Sprint(k.starts))
	if k.name == deadlyName {
		k.recovered = b.result.row(sectionChange, k.name+": until the last known good one is healthy again", "ms").within(5_000, "5 s")
		k.back = b.result.row(sectionChange, k.name+": from the rollback's start of the kubelet until it is healthy", "ms").against(b.bareUnhealthy)
	}
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
	return trace{began: began, answered: answered, ended: at, end: "the Node names it active", took: at.Sub(began), lines: ownLines(log), down: b.health.changesSince(began)}, err
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
