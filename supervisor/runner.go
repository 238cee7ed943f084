//go:build linux

package supervisor

import (
	"context"
	"sync/atomic"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// runner carries out what is decided. Whatever takes time is done beside the loop, and its result comes back as an event. Only the loop calls
// it; of the state it keeps nothing.
type runner struct {
	*inputs
	*workers
	payloads    *payloads
	prover      *prover
	foresight   *foresight
	kubelets    *kubelet.Launcher
	lease       *leaseWatch
	node        *nodeWatch
	child       *kubelet.Child  // the newest, alive or not
	lastStarted *decide.Version // or tried
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

// A question is carried out beside the loop. It can be given up: then it ends soon, and its answer is heard by nobody.
type question struct {
	end     context.CancelFunc
	answers chan decide.Event
}

// carryOut starts the step's action. Its result comes back as an event. It is true where nothing is to be done any more.
func (r *runner) carryOut(life lifetimes, s *decide.State, step decide.Step) (over bool) {
	if s.Stopping || s.Frozen {
		r.killParked(s)
	}
	if _, over := step.Do.(decide.Exit); over {
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
	case decide.Save:
		keep := versionsInUse(s, do.Durable)
		r.answer(life.over, do, func() decide.Event {
			return decide.Saved{Err: r.payloads.saves.doThen(func() error { return r.payloads.save(do.Durable) }, func() { r.payloads.collect(do.Durable, keep) })}
		})
	case decide.Prove:
		r.answerQuestion(life, do, func(ctx context.Context) decide.Event { return r.prover.prove(ctx, do) })
	case decide.Foresee:
		r.answerQuestion(life, do, func(ctx context.Context) decide.Event { return r.foresight.foresee(ctx, do) })
	case decide.Ask:
		r.answerQuestion(life, do, func(ctx context.Context) decide.Event { return r.prover.ask(ctx, do) })
	case decide.Merge:
		r.answer(life.over, do, func() decide.Event { return r.payloads.merge(do) })
	case decide.Blame:
		r.answerQuestion(life, do, func(ctx context.Context) decide.Event { return r.prover.blame(ctx, do) })
	case decide.Stop:
		if do.Looked {
			r.foresight.compareLost(life.over)
		}
		child := r.child
		r.spawn(func() { // answered by the child's own exit
			if do.Hung != "" {
				child.Dump(do.Hung)
			} else {
				child.Stop(r.StopTimeout)
				crashPoint("after", decide.Stop{})
			}
		})
	case decide.Park:
		r.park(life, s, do)
	case decide.Unpark:
		r.unpark(life, s, do)
	case decide.SetAside:
		r.answer(life.over, do, func() decide.Event { return decide.FilesSetAside{Err: setAside(config.RootDir(r.Arguments), do.Files)} })
	case decide.WriteBack:
		r.answer(life.over, do, func() decide.Event { return decide.LimitsWrittenBack{Err: writeBack(life.over, do.Limits)} })
	case decide.Start:
		r.start(life.over, s, do)
	}
	return false
}

// answer carries an action out beside the loop, and brings its result.
func (r *runner) answer(ctx context.Context, do decide.Action, carryOut func() decide.Event) {
	r.spawn(func() {
		result := carryOut()
		crashPoint("after", do)
		r.send(ctx, result)
	})
}

// answerQuestion is answer for what can be given up.
func (r *runner) answerQuestion(life lifetimes, do decide.Action, carryOut func(ctx context.Context) decide.Event) {
	ctx, end := context.WithCancel(life.asked)
	answers := make(chan decide.Event, 1)
	r.question = question{end, answers}
	r.questions.Add(1)
	r.spawn(func() {
		defer end()
		result := carryOut(ctx)
		crashPoint("after", do)
		r.questions.Add(-1)
		answers <- result
		if ctx.Err() != nil {
			r.send(life.over, decide.Ticked{}) // a reload may wait for the end of what was given up
		}
	})
}

func (r *runner) giveUpQuestion() {
	if r.question.end != nil {
		r.question.end()
	}
	r.question = question{}
}

// killParked is for a stop and the host's shutdown: the kubelet that waits ends at once, whatever is under way, and before the one that runs.
// One that is being let through waits no more.
func (r *runner) killParked(s *decide.State) {
	if r.cancelPark != nil {
		r.cancelPark()
	}
	if _, starting := s.Doing.(decide.Start); !starting && r.parked != nil {
		r.parked.Kill()
	}
}
