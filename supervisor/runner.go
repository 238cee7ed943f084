//go:build linux

package supervisor

import (
	"context"
	"sync/atomic"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// runner carries out what is decided. Whatever takes time is done in a goroutine, and its result comes back as an event. Only the loop
// calls it; of the state it keeps nothing.
type runner struct {
	*inputs
	*workers
	payloads    *payloads
	prover      *prover
	foresight   *foresight
	kubelets    *kubelet.Launcher
	lease       *leaseWatch
	node        *nodeWatch
	child       *kubelet.Child // the newest, alive or not
	lastStarted *core.Version  // or tried
	starts      chan startResult
	question    question     // that is under way
	questions   atomic.Int64 // that have not ended, those that were given up among them
	parking
}

// parking is what waits at the lock of the kubelet that runs.
type parking struct {
	parked     *kubelet.Child // nil = nothing does
	parks      chan parkEnded
	cancelPark context.CancelFunc // of a kubelet that is on its way to the lock
}

// A question is carried out in a goroutine. It can be given up: then it ends soon, and its answer is dropped.
type question struct {
	end     context.CancelFunc
	answers chan core.Event
}

// carryOut starts the step's action. Its result comes back as an event. It returns true where nothing is left to do.
func (r *runner) carryOut(life lifetimes, s *core.State, step core.Step) (over bool) {
	if s.Stopping || s.Frozen {
		r.killParked(s)
	}
	if _, over := step.Do.(core.Exit); over {
		return true
	}
	r.lease.turn(step.WatchLease)
	if step.GaveUp {
		r.giveUpQuestion()
	}
	if step.LookAtNode {
		r.node.ask(s.OnTrial())
	}
	crashPoint("before", step.Do)
	switch do := step.Do.(type) {
	case core.Save:
		keep := versionsInUse(s, do.Durable)
		r.answer(life.over, do, func() core.Event {
			return core.Saved{Err: r.payloads.saves.doThen(func() error { return r.payloads.save(do.Durable) },
				func() { r.payloads.collect(do.Durable, keep) })}
		})
	case core.Prove:
		r.answerQuestion(life, do, func(ctx context.Context) core.Event { return r.prover.prove(ctx, do) })
	case core.Foresee:
		r.answerQuestion(life, do, func(ctx context.Context) core.Event { return r.foresight.foresee(ctx, do) })
	case core.Ask:
		r.answerQuestion(life, do, func(ctx context.Context) core.Event { return r.prover.ask(ctx, do) })
	case core.Merge:
		r.answer(life.over, do, func() core.Event { return r.payloads.merge(do) })
	case core.Blame:
		r.answerQuestion(life, do, func(ctx context.Context) core.Event { return r.prover.blame(ctx, do) })
	case core.Stop:
		if do.Looked {
			r.foresight.compareLost(life.over)
		}
		child := r.child
		r.spawn(func() { // answered by the child's own exit
			if do.Hung != "" {
				child.Dump(do.Hung)
			} else {
				child.Stop(r.StopTimeout)
				crashPoint("after", core.Stop{})
			}
		})
	case core.Park:
		r.park(life, s, do)
	case core.Unpark:
		r.unpark(life, s, do)
	case core.SetAside:
		r.answer(life.over, do, func() core.Event {
			return core.FilesSetAside{Err: setAside(kubeletconfig.RootDir(r.Arguments), do.Files)}
		})
	case core.WriteBack:
		r.answer(life.over, do, func() core.Event { return core.LimitsWrittenBack{Err: writeBack(life.over, do.Limits)} })
	case core.Start:
		r.start(life.over, s, do)
	}
	return false
}

// answer carries an action out in a goroutine, and brings its result.
func (r *runner) answer(ctx context.Context, do core.Action, carryOut func() core.Event) {
	r.spawn(func() {
		result := carryOut()
		crashPoint("after", do)
		r.send(ctx, result)
	})
}

// answerQuestion is answer for what can be given up.
func (r *runner) answerQuestion(life lifetimes, do core.Action, carryOut func(ctx context.Context) core.Event) {
	ctx, end := context.WithCancel(life.asked)
	answers := make(chan core.Event, 1)
	r.question = question{end, answers}
	r.questions.Add(1)
	r.spawn(func() {
		defer end()
		result := carryOut(ctx)
		crashPoint("after", do)
		r.questions.Add(-1)
		answers <- result
		if ctx.Err() != nil {
			r.send(life.over, core.Ticked{}) // a reload may wait for the end of what was given up
		}
	})
}

func (r *runner) giveUpQuestion() {
	if r.question.end != nil {
		r.question.end()
	}
	r.question = question{}
}

// killParked is for a stop and the host's shutdown: the kubelet that waits ends at once, whatever is under way, and before the one that
// runs. One that is being released no longer waits.
func (r *runner) killParked(s *core.State) {
	if r.cancelPark != nil {
		r.cancelPark()
	}
	if _, starting := s.Doing.(core.Start); !starting && r.parked != nil {
		r.parked.Kill()
	}
}
