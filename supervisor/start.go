//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// errRender marks a start that failed before there was anything to start.
var errRender = errors.New("making the effective configuration")

func newLauncher(o Options, watchdog time.Duration) *kubelet.Launcher {
	return kubelet.NewLauncher(kubelet.Settings{Path: o.Kubelet, Arguments: o.Arguments, RunDir: o.RunDir, Journal: o.Journal,
		Output:   o.Output,
		Watchdog: watchdog, Logger: o.Logger, AskRuntime: host.RuntimeAnswers, StartTimeout: o.StartTimeout, LockFile: lockFileOf(o)})
}

// startResult is what came of a start.
type startResult struct {
	do     core.Start
	child  *kubelet.Child
	lease  time.Duration // how long its Lease lasts, by its configuration
	err    error
	gone   bool                      // what had waited ended before it was released
	files  []kubeletconfig.StateFile // why there is neither: they are in the way
	limits []core.LimitSeen          // or these must be cared for before
}

// start carries out Start, which is answered by Started. All of it is done in a goroutine: it reads disks, and may have to wait for the end
// of another kubelet.
func (r *runner) start(ctx context.Context, s *core.State, do core.Start) {
	if !core.Same(r.lastStarted, do.Version) {
		r.kubelets.ResetDelay()
	}
	r.lastStarted = do.Version
	known := core.LocalChanged{Kubelet: s.OnDisk, Local: s.Local}
	limits, bootID := s.Limits, s.BootID
	r.spawn(func() {
		if now, err := r.lookLocal(); err == nil && now != known {
			r.send(ctx, now)
			r.send(ctx, core.Started{Err: errLocalChanged})
			return
		}
		var result startResult
		if do.Waits {
			result = r.releaseParked(do)
		} else {
			result = r.launch(do, func(file string) []core.LimitSeen { return r.limitsBefore(ctx, do, file, limits, bootID) })
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

// launch starts the kubelet, after any that is left of the one before: behind a script that did not become the kubelet, the end of the
// child is not the end of the kubelet. Before it, limits looks at what the file is going to limit.
func (r *runner) launch(do core.Start, limits func(file string) []core.LimitSeen) startResult {
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
	return startResult{do: do, child: child, lease: kubeletconfig.LeaseDuration(r.Arguments, cmp.Or(file, r.arguments.Config)), err: err}
}

// onStarted notes the kubelet that was started and gives the answer to Start; for one that could not be, its error and a backoff.
func (l *loop) onStarted(ctx context.Context, b startResult) core.Started {
	switch {
	case len(b.files) > 0:
		return core.Started{InTheWay: b.files}
	case len(b.limits) > 0:
		return core.Started{Limits: b.limits}
	case b.gone:
		l.runner.parked = nil
		return core.Started{Gone: true}
	}
	l.log.line(&l.state, zap.InfoLevel, kubeletStarting, b.do.Version, "starting the kubelet with "+core.Describe(b.do.Version),
		zap.Bool("onTrial", b.do.OnTrial))
	if b.err != nil {
		return core.Started{Err: b.err, Unrenderable: errors.Is(b.err, errRender), NoRoom: kubelet.IsNoRoom(b.err),
			Delay: l.runner.kubelets.Delay()}
	}
	crashPoint("after", b.do)
	l.runner.child = b.child
	l.prover.effectives.begin(core.ContentOr(b.do.Version, b.do.Local), b.do.Kubelet)
	if b.do.Waits {
		l.runner.parked = nil
	}
	l.record.started(b.child.Process())
	crashPoint("recorded", b.do)
	l.api.lease.newChild(b.lease)
	l.api.node.newChild(core.ContentOr(b.do.Version, b.do.Local))
	l.spawn(func() { l.attend(ctx, b.child) })
	return core.Started{Locked: b.child.Locked()}
}

// attend waits for the end of a child, and reports to the loop what is seen of it until then.
func (l *loop) attend(ctx context.Context, child *kubelet.Child) {
	child.Attend(ctx, func(seen kubelet.Event) { l.send(ctx, eventOf(seen)) })
}

// eventOf turns a kubelet's event into an event of the core.
func eventOf(seen kubelet.Event) core.Event {
	switch seen := seen.(type) {
	case kubelet.Healthy:
		return core.Healthy{}
	case kubelet.NotInUse:
		return core.NotInUse(seen)
	case kubelet.Unhealthy:
		return core.Unhealthy{Words: seen.Words}
	case kubelet.PortSeen:
		return core.PortSeen(seen)
	case kubelet.Hung:
		return core.Hung{Words: seen.Words}
	case kubelet.Exited:
		return core.ChildExited(seen)
	}
	return core.Ticked{}
}
