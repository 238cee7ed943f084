//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// errRender marks a start that failed before there was anything to start.
var errRender = errors.New("making the effective configuration")

func newLauncher(o Options, watchdog time.Duration) *kubelet.Launcher {
	return kubelet.NewLauncher(kubelet.Settings{Path: o.Kubelet, Arguments: o.Arguments, RunDir: o.RunDir, Journal: o.Journal, Output: o.Output,
		Watchdog: watchdog, Logger: o.Logger, AskRuntime: host.RuntimeAnswers, StartTimeout: o.StartTimeout, LockFile: lockFileOf(o)})
}

// startResult is what came of a start.
type startResult struct {
	do     decide.Start
	child  *kubelet.Child
	lease  time.Duration // how long its Lease lasts, by its configuration
	err    error
	gone   bool               // what had waited ended before it was let through
	files  []config.StateFile // why there is neither: they are in the way
	limits []decide.LimitSeen // or these are to be cared for before
}

// start carries out Start, which is answered by Started. All of it is done beside the loop: it reads disks, and may have to wait for the end
// of another kubelet.
func (r *runner) start(ctx context.Context, s *decide.State, do decide.Start) {
	if !decide.Same(r.lastStarted, do.Version) {
		r.kubelets.ResetDelay()
	}
	r.lastStarted = do.Version
	known := decide.LocalChanged{Kubelet: s.OnDisk, Local: s.Local}
	limits, bootID := s.Limits, s.BootID
	r.spawn(func() {
		if now, err := r.lookLocal(); err == nil && now != known {
			r.send(ctx, now)
			r.send(ctx, decide.Started{Err: errLocalChanged})
			return
		}
		var result startResult
		if do.Waits {
			result = r.releaseParked(do)
		} else {
			result = r.launch(do, func(file string) []decide.LimitSeen { return r.limitsBefore(ctx, do, file, limits, bootID) })
		}
		if result.child != nil {
			result.child.FallBackTo(r.payloads.configFileOf(do.Fallback))
		}
		select {
		case r.starts <- result:
		case <-ctx.Done():
		}
	})
}

// launch starts the kubelet, after any that is left of the one before: behind a script that did not become the kubelet, the end of the child
// is not the end of the kubelet. Before it, limits looks at what the file is going to limit.
func (r *runner) launch(do decide.Start, limits func(file string) []decide.LimitSeen) startResult {
	r.makeRunDir()
	file, err := r.payloads.render(do.Version, kubelet.EffectiveFile)
	if err != nil {
		return startResult{do: do, err: fmt.Errorf("%w: %w", errRender, err)}
	}
	if _, err := r.kubelets.StopLeftOvers(nil, r.StopTimeout); err != nil {
		return startResult{do: do, err: err}
	}
	if files := r.stateFilesInTheWay(do, file); len(files) > 0 {
		return startResult{do: do, files: files}
	}
	if seen := limits(file); len(seen) > 0 {
		return startResult{do: do, limits: seen}
	}
	child, err := r.kubelets.Start(kubelet.Spec{File: file, Lock: do.Lock})
	return startResult{do: do, child: child, lease: config.LeaseDuration(r.Arguments, cmp.Or(file, r.arguments.Config)), err: err}
}

// onStarted notes the kubelet that was started and gives the answer to Start; for one that could not be, its error and a backoff.
func (l *loop) onStarted(ctx context.Context, b startResult) decide.Started {
	switch {
	case len(b.files) > 0:
		return decide.Started{InTheWay: b.files}
	case len(b.limits) > 0:
		return decide.Started{Limits: b.limits}
	case b.gone:
		l.runner.parked = nil
		return decide.Started{Gone: true}
	}
	l.log.line(&l.state, zap.InfoLevel, kubeletStarting, b.do.Version, "starting the kubelet with "+decide.Describe(b.do.Version), zap.Bool("onTrial", b.do.OnTrial))
	if b.err != nil {
		return decide.Started{Err: b.err, Unrenderable: errors.Is(b.err, errRender), NoRoom: kubelet.IsNoRoom(b.err), Delay: l.runner.kubelets.Delay()}
	}
	crashPoint("after", b.do)
	l.runner.child = b.child
	l.prover.effectives.begin(decide.ContentOr(b.do.Version, b.do.Local), b.do.Kubelet)
	if b.do.Waits {
		l.runner.parked = nil
	}
	l.record.started(b.child.Process())
	crashPoint("recorded", b.do)
	l.api.lease.newChild(b.lease)
	l.api.node.newChild(decide.ContentOr(b.do.Version, b.do.Local))
	l.spawn(func() { l.attend(ctx, b.child) })
	return decide.Started{Locked: b.child.Locked()}
}

// attend waits for the end of a child, and tells the loop what is seen of it meanwhile.
func (l *loop) attend(ctx context.Context, child *kubelet.Child) {
	child.Attend(ctx, func(seen kubelet.Event) { l.send(ctx, eventOf(seen)) })
}

// eventOf is what a kubelet's event is in the words of the core.
func eventOf(seen kubelet.Event) decide.Event {
	switch seen := seen.(type) {
	case kubelet.Healthy:
		return decide.Healthy{}
	case kubelet.NotInUse:
		return decide.NotInUse(seen)
	case kubelet.Unhealthy:
		return decide.Unhealthy{Words: seen.Words}
	case kubelet.PortSeen:
		return decide.PortSeen(seen)
	case kubelet.Hung:
		return decide.Hung{Words: seen.Words}
	case kubelet.Exited:
		return decide.ChildExited(seen)
	}
	return decide.Ticked{}
}
