//go:build linux

package supervisor

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// ErrUsage marks errors that a person has to correct on the command line.
var ErrUsage = errors.New("usage")

// loop is the imperative shell. Its run method owns the state; every other goroutine brings it events.
type loop struct {
	*inputs
	*workers
	state     core.State
	due       time.Duration      // when the next decision is, though nothing happens; negative: never
	observers []decisionObserver // in this order, before the action begins
	runner    *runner
	payloads  *payloads
	prover    *prover
	foresight *foresight
	watches   *watches
	api       *apiSession
	nextStart *nextStart
	log       *decisionLog
	record    recorder
	metrics   *metrics.Metrics // nil where they are not asked for
	manager   *systemd.Manager
	idle      idle
	reload    reload

	foundWaiting bool // an earlier supervisor left a kubelet behind that waits at the lock
}

// lifetimes are the two ends of a supervisor.
type lifetimes struct {
	asked context.Context // ends with the request to stop
	over  context.Context // ends when the kubelet is stopped, and the loop's goroutines may end too
}

// Run runs a supervisor, and the kubelet as its child, until ctx ends and the kubelet is stopped: then it returns nil. It returns ErrUsage
// where the run folder cannot be used, ErrAnother where another supervisor has one of the folders, ErrNextStart where systemd has to start
// the kubelet with another command line, and else why a kubelet that was left behind could not be stopped. A process calls it at most once.
func Run(ctx context.Context, o Options) error {
	l, err := newLoop(o)
	if err != nil {
		return err
	}
	defer l.close()
	return l.live(ctx)
}

func (l *loop) live(ctx context.Context) error {
	// The loop's goroutines end after it, so that a last report can still be published.
	over, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer l.manager.Flush()
	defer l.tasks.Wait()
	defer stop()
	go l.manager.Run(over)
	l.spawn(func() { l.manager.Feed(over) })
	l.manager.Starting(l.StopTimeout)
	first := l.resume
	if !l.takeOver() {
		first = l.begin
		if err := l.clearAway(ctx.Done()); err != nil {
			return err
		}
		collectLost(l.Handover)
		if ctx.Err() != nil {
			return nil // asked to stop before there was a kubelet
		}
	}
	l.run(lifetimes{asked: ctx, over: over}, first)
	return errors.Join(l.clearAway(nil), l.nextStart.superseded) // behind a script, the end of our child is not that of the kubelet
}

// clearAway stops a kubelet that was left behind. That can take long, so the watchdog is answered until then, and a stop is heard: it is
// what is being done.
func (l *loop) clearAway(stopAsked <-chan struct{}) error {
	done := make(chan error, 1)
	go func() {
		waited, err := stopLeftOvers(l.Options, l.runner.kubelets)
		l.foundWaiting = waited
		done <- err
	}()
	for {
		select {
		case err := <-done:
			return err
		case <-l.manager.Pulse:
		case <-stopAsked:
			stopAsked = nil
			l.manager.Stopping(2 * l.StopTimeout)
		}
	}
}

// begin is the first decision of a supervisor that starts.
func (l *loop) begin(life lifetimes) core.LocalChanged {
	booted := l.boot()
	if l.payloads.store != nil {
		collectAsides(kubeletconfig.RootDir(l.Arguments), booted.Disk.Asides) // of a supervisor that was killed before it did
	}
	l.handle(life, booted)
	return core.LocalChanged{Kubelet: booted.Kubelet, Local: booted.Local}
}

// run selects over events, after the first decision, until the core says Exit.
func (l *loop) run(life lifetimes, first func(lifetimes) core.LocalChanged) {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	quiet := time.NewTimer(l.idle.after)
	defer quiet.Stop()
	stopAsked := life.asked.Done()
	l.manager.Begin()
	seen := first(life)
	frozen := l.state.Frozen // handed over, perhaps
	l.spawn(func() { l.watches.watchLocal(life.over, seen) })
	l.spawn(func() {
		systemd.WatchShutdown(life.over, l.Logger, frozen, func(stopping bool) { l.send(life.over, core.HostStopping{CalledOff: !stopping}) })
	})
	l.spawn(func() { l.runner.kubelets.FollowOutput(life.over) })
	l.spawn(func() { l.watches.watchCluster(life.over) })
	told := l.state.Obstacles
	l.spawn(func() { l.watches.watchObstacles(life.over, told) })
	unit := l.state.Unit
	l.spawn(func() { l.watches.watchUnit(life.over, unit) })
	l.spawn(func() { l.api.run(life.over) })
	l.showMetrics(life.over)
	for {
		l.continueReload(life.over)
		l.arm(alarm)
		var event core.Event
		select {
		case event = <-l.events:
		case event = <-l.runner.question.answers:
			l.runner.question = question{}
		case <-alarm.C:
			event = core.Ticked{}
		case <-l.manager.Pulse:
			continue
		case <-quiet.C:
			l.spawn(l.idle.giveBack)
			continue
		case check := <-l.reload.checks:
			l.onChecked(check)
			continue
		case b := <-l.runner.starts:
			event = l.onStarted(life.over, b)
		case p := <-l.runner.parks:
			event = l.runner.onParked(p)
		case request := <-l.Requests:
			event = l.request(life.over, request)
		case better := <-l.nextStart.asked:
			event = l.nextStart.hear(better)
			if l.nextStart.superseded != nil {
				l.manager.Stopping(l.StopTimeout)
			}
		case <-stopAsked:
			stopAsked, event = nil, core.StopAsked{}
			l.manager.Stopping(l.StopTimeout)
		}
		if done := l.handle(life, event); done {
			return
		}
		quiet.Reset(l.idle.after)
	}
}

// arm sets the alarm for the next due time, from the step of the last decision.
func (l *loop) arm(alarm *time.Timer) {
	wait := time.Hour
	if l.due >= 0 {
		wait = max(0, l.due-steadyTime())
	}
	alarm.Reset(wait)
}

// handle decides about one event, tells the observers and carries the step out. It returns true when the loop is over.
func (l *loop) handle(life lifetimes, event core.Event) bool {
	d := decision{event: event, before: l.state}
	d.after, d.step = core.Decide(l.state, core.Moment{Now: steadyTime(), Wall: time.Now()}, event)
	d.shown, d.due = core.Report(d.after)
	l.state, l.due = d.after, d.step.Wake
	for _, o := range l.observers {
		o.observe(life.over, &d)
	}
	over := l.runner.carryOut(life, &l.state, d.step)
	l.record.observe(life.over, &d) // a run folder that hangs delays the next decision then, and not this action
	return over
}

// request turns a person's request into an event.
func (l *loop) request(ctx context.Context, request Request) core.Event {
	l.api.reconsider()
	if request == RetryNow {
		l.record.Generation++
		return core.Retry{}
	}
	if l.Successor != nil {
		l.beginReload(ctx)
	} else {
		l.record.Reloads++
	}
	changed, err := l.lookLocal()
	if err != nil {
		l.Logger.Warn("the kubelet or its local files cannot be read", zap.Error(err))
		return core.Ticked{}
	}
	return changed
}
