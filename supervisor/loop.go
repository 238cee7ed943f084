//go:build linux

package supervisor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/metrics"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/systemd"
)

// ErrUsage marks errors that a person has to correct on the command line.
var ErrUsage = errors.New("usage")

// loop is the imperative shell. Its run method owns the state; every other goroutine brings it events.
type loop struct {
	Options
	arguments   config.Arguments
	store       *store.Store // nil when the state folder cannot be used
	unusable    error        // why
	preflight   *kubelet.Preflight
	events      chan decide.Event
	rewrite     chan struct{}  // a checkpoint is gone: what was downloaded last is to be written again
	tasks       sync.WaitGroup // every goroutine of the loop
	state       decide.State
	due         time.Duration  // when the next decision is, though nothing happens; negative: never
	child       *kubelet.Child // the newest, alive or not
	lease       *leaseWatch
	node        *nodeWatch
	kubelets    *kubelet.Launcher
	lastStarted *decide.Version // or tried
	manager     *systemd.Manager
	api         *apiSession
	record      *record
	metrics     *metrics.Metrics // nil where nobody asked for them
	keeper      keeper
	effectives  effectives
	lost        lostPods
	lostAfter   time.Duration
	preflights  atomic.Int64             // how many files they were given
	swaps       func() ([]string, error) // what the host swaps to; nil = [host.Swaps]
	saves       saves
	question    question                                                          // that is under way
	questions   atomic.Int64                                                      // that have not ended, those that were given up among them
	readPayload func(corev1.ConfigMapNodeConfigSource) (map[string]string, error) // of a checkpoint, off the disk
	begun       chan begun
	phases      []decide.EndedPhase // that the present decision has ended, and no line of the log has yet
	idle        idle
	parking

	reload reload
	nextStart
}

// lifetimes are the two ends of a supervisor.
type lifetimes struct {
	asked context.Context // ends with the request to stop
	over  context.Context // ends when the kubelet is stopped, and what runs beside the loop may end too
}

// Run is the supervisor's life: it returns nil once ctx has ended and the kubelet is stopped.
func Run(ctx context.Context, o Options) error {
	l, err := newLoop(o)
	if err != nil {
		return err
	}
	defer l.close()
	return l.live(ctx)
}

func (l *loop) live(ctx context.Context) error {
	// What runs beside the loop ends after it, so that a last report can still be published.
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
		l.collectLost()
		if ctx.Err() != nil {
			return nil // asked to stop before there was a kubelet
		}
	}
	l.run(lifetimes{asked: ctx, over: over}, first)
	return errors.Join(l.clearAway(nil), l.superseded) // behind a script, the end of our child is not that of the kubelet
}

// clearAway stops a kubelet that was left behind. That can take long, so the watchdog is answered meanwhile, and a stop is heard: it is what
// is being done.
func (l *loop) clearAway(stopAsked <-chan struct{}) error {
	done := make(chan error, 1)
	go func() {
		waited, err := stopLeftOvers(l.Options, l.kubelets)
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

// spawn runs a task that the loop waits for before it returns.
func (l *loop) spawn(task func()) {
	l.tasks.Add(1)
	go func() {
		defer l.tasks.Done()
		task()
	}()
}

// send brings an event to the loop unless it has ended.
func (l *loop) send(ctx context.Context, event decide.Event) {
	select {
	case l.events <- event:
	case <-ctx.Done():
	}
}

// begin is the first decision of a supervisor that starts.
func (l *loop) begin(life lifetimes) decide.LocalChanged {
	booted := l.boot()
	if l.store != nil {
		l.collectAsides(booted.Disk.Asides) // of a supervisor that was killed before it did
	}
	l.handle(life, booted)
	return decide.LocalChanged{Kubelet: booted.Kubelet, Local: booted.Local}
}

// run selects over events, after the first decision, until the core says Exit.
func (l *loop) run(life lifetimes, first func(lifetimes) decide.LocalChanged) {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	quiet := time.NewTimer(l.idle.after)
	defer quiet.Stop()
	stopAsked := life.asked.Done()
	l.manager.Begin()
	seen := first(life)
	frozen := l.state.Frozen // handed over, perhaps
	l.spawn(func() { l.watchLocal(life.over, seen) })
	l.spawn(func() {
		systemd.WatchShutdown(life.over, l.Logger, frozen, func(stopping bool) { l.send(life.over, decide.HostStopping{CalledOff: !stopping}) })
	})
	l.spawn(func() { l.kubelets.FollowOutput(life.over) })
	l.spawn(func() { l.watchCluster(life.over) })
	told := l.state.Obstacles
	l.spawn(func() { l.watchObstacles(life.over, told) })
	unit := l.state.Unit
	l.spawn(func() { l.watchUnit(life.over, unit) })
	l.spawn(func() { l.api.run(life.over) })
	l.showMetrics(life.over)
	for {
		l.continueReload(life.over)
		l.arm(alarm)
		var event decide.Event
		select {
		case event = <-l.events:
		case event = <-l.question.answers:
			l.question = question{}
		case <-alarm.C:
			event = decide.Ticked{}
		case <-l.manager.Pulse:
			continue
		case <-quiet.C:
			l.spawn(l.idle.giveBack)
			continue
		case check := <-l.reload.checks:
			l.hearCheck(check)
			continue
		case b := <-l.begun:
			event = l.hearBegun(life.over, b)
		case p := <-l.parks:
			event = l.hearParked(p)
		case request := <-l.Requests:
			event = l.request(life.over, request)
		case better := <-l.asked:
			event = l.hearNextStart(better)
		case <-stopAsked:
			stopAsked, event = nil, decide.StopAsked{}
			l.manager.Stopping(l.StopTimeout)
		}
		if done := l.handle(life, event); done {
			return
		}
		l.considerNextStart(life.over, event)
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

// handle decides about one event, carries the step out and offers the report. It returns true when the loop is over.
func (l *loop) handle(life lifetimes, event decide.Event) bool {
	state, step := decide.Decide(l.state, decide.Moment{Now: steadyTime(), Wall: time.Now()}, event)
	l.logDecision(event, step)
	l.logWarning(event, state.Warning)
	l.metrics.Decided(&l.state, &state, event, &step)
	l.state = state
	l.due = step.Wake
	if exited, is := event.(decide.ChildExited); is {
		l.record.ended(&l.state, exited)
	}
	if _, is := event.(decide.Healthy); is {
		if restart := l.lost.take(); restart > 0 {
			l.spawn(func() { l.countLost(life.over, restart) })
		}
	}
	if state.Stopping || state.Frozen {
		l.killParked()
	}
	_, over := step.Do.(decide.Exit)
	if !over {
		l.carryOut(life, step)
	}
	shown, due := decide.Report(state)
	if due && (shown.Observed != nil || state.NodeGone || state.Stopping) { // else it may not be about what the Node shows as observed
		l.api.offer(shown)
	}
	for _, e := range step.Events {
		l.api.event(e)
	}
	l.saveRecord()
	l.tellManager(shown)
	return over
}

// carryOut starts the step's action. Its result comes back as an event.
func (l *loop) carryOut(life lifetimes, step decide.Step) {
	l.lease.turn(step.WatchLease)
	if step.GaveUp {
		l.giveUpQuestion()
	}
	if step.LookAtNode {
		l.node.ask(l.state.OnTrial())
	}
	crashPoint("before", step.Do)
	switch do := step.Do.(type) {
	case decide.Save:
		keep := l.versionsInUse(do.Durable)
		l.answer(life.over, do, func() decide.Event {
			return decide.Saved{Err: l.saves.doThen(func() error { return l.save(do.Durable) }, func() { l.collect(do.Durable, keep) })}
		})
	case decide.Prove:
		l.answerQuestion(life, do, func(ctx context.Context) decide.Event { return l.prove(ctx, do) })
	case decide.Foresee:
		l.answerQuestion(life, do, func(ctx context.Context) decide.Event { return l.foresee(ctx, do) })
	case decide.Ask:
		l.answerQuestion(life, do, func(ctx context.Context) decide.Event { return l.ask(ctx, do) })
	case decide.Merge:
		l.answer(life.over, do, func() decide.Event { return l.merge(do) })
	case decide.Blame:
		l.answerQuestion(life, do, func(ctx context.Context) decide.Event { return l.blame(ctx, do) })
	case decide.Stop:
		if do.Looked {
			l.compareLost(life.over)
		}
		child := l.child
		l.spawn(func() { // answered by the child's own exit
			if do.Hung != "" {
				child.Dump(do.Hung)
			} else {
				child.Stop(l.StopTimeout)
				crashPoint("after", decide.Stop{})
			}
		})
	case decide.Park:
		l.park(life, do)
	case decide.Unpark:
		l.unpark(life, do)
	case decide.SetAside:
		l.answer(life.over, do, func() decide.Event { return decide.FilesSetAside{Err: l.setAside(do.Files)} })
	case decide.WriteBack:
		l.answer(life.over, do, func() decide.Event { return decide.LimitsWrittenBack{Err: writeBack(life.over, do.Limits)} })
	case decide.Start:
		l.start(life.over, do)
	}
}

// answer carries an action out beside the loop, and brings its result.
func (l *loop) answer(ctx context.Context, do decide.Action, carryOut func() decide.Event) {
	l.spawn(func() {
		result := carryOut()
		crashPoint("after", do)
		l.send(ctx, result)
	})
}

// request turns a person's request into an event.
func (l *loop) request(ctx context.Context, request Request) decide.Event {
	l.api.reconsider()
	if request == RetryNow {
		l.record.Generation++
		return decide.Retry{}
	}
	if l.Successor != nil {
		l.beginReload(ctx)
	} else {
		l.record.Reloads++
	}
	changed, err := l.lookLocal()
	if err != nil {
		l.Logger.Warn("the kubelet or its local files cannot be read", zap.Error(err))
		return decide.Ticked{}
	}
	return changed
}
