package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	sectionChange = "change"
	deadlyName    = "deadly payload"
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
	return []*change{
		{name: "good configuration", starts: 1, prepare: write("bench-good", good), do: assign("bench-good", edited)},
		{name: "in-place edit", starts: 1, prepare: nothing, do: func(ctx context.Context) (func(view) bool, error) {
			return edited, write("bench-good", good)(ctx)
		}},
		{name: "equal content", starts: 0, prepare: nothing, do: func(ctx context.Context) (_ func(view) bool, err error) {
			version, err = n.label(ctx, "bench-good")
			return edited, err
		}},
		{name: "removal", starts: 1, prepare: nothing, do: assign("", view.local)},
		{name: "refused payload", starts: 0, prepare: write("bench-refused", refused), do: assign("bench-refused", func(v view) bool {
			return v.failed("bench-refused", version, "Refused")
		})},
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
	supervisor, err := b.supervisorProcess("changes", nil, b.node.kubelet())
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
	return b.end(supervisor)
}

// rows makes the rows of a kind of change, and names the budgets.
func (b *bench) rows(k *change) {
	words := map[string]string{"refused payload": ": until the Node says so", deadlyName: ": until the Node says so", "removal": ": until the Node says local"}[k.name]
	if words == "" {
		words = ": until active names it"
	}
	k.latency = b.result.row(sectionChange, k.name+words, "ms").against(b.bareRestart)
	k.unhealthy = b.result.row(sectionChange, k.name+": kubelet not healthy", "ms").against(b.bareRestart)
	k.restarts = b.result.row(sectionChange, k.name+": kubelet starts", "")
	switch k.starts {
	case 1:
		k.latency.withinTimes(2, b.bareRestart)
		k.unhealthy.withinTimes(1.2, b.bareRestart)
	case 0:
		k.unhealthy.Reference = ""
	}
	k.restarts.within(k.starts, fmt.Sprint(k.starts))
	if k.name == deadlyName {
		k.recovered = b.result.row(sectionChange, k.name+": until the last known good one is healthy again", "ms").within(10_000, "10 s")
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
	logged := supervisor.logSize()
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
		if log, err = supervisor.logFrom(logged); err != nil {
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
	return supervisor.logFrom(logged)
}
