//go:build linux

package supervisor

import (
	"context"
	"errors"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// lockFile is below STATE_DIR: a RUN_DIR that is removed and made anew would be another lock, and let two kubelets through.
const lockFile = "kubelet.lock"

// lockFileOf is what kubelets with a configuration of ours hold while they live; empty where the administrator has a lock of his own, or
// where the kubelet must not be asked.
func lockFileOf(o Options) string {
	if o.Preflight == kubelet.PreflightNever || config.NamesFlag(o.Arguments, "lock-file", "exit-on-lock-contention") {
		return ""
	}
	return filepath.Join(o.StateDir, lockFile)
}

// parking is what waits at the lock of the kubelet that runs.
type parking struct {
	parked       *kubelet.Child // nil = nothing does
	parks        chan parkEnded
	cancelPark   context.CancelFunc // of a kubelet that is on its way to the lock
	foundWaiting bool               // an earlier supervisor left one behind
}

// parkEnded is what came of Park.
type parkEnded struct {
	child *kubelet.Child
	event decide.ParkEnded
}

// park carries out Park, beside the loop.
func (l *loop) park(life lifetimes, do decide.Park) {
	ctx, cancel := context.WithCancel(life.asked)
	running := l.child
	l.cancelPark = cancel
	known := decide.LocalChanged{Kubelet: l.state.OnDisk, Local: l.state.Local}
	l.spawn(func() {
		defer cancel()
		var came parkEnded
		if now, err := l.lookLocal(); err == nil && now != known {
			l.send(life.over, now)
		} else {
			came = l.tryPark(ctx, do, running)
		}
		crashPoint("after", do)
		select {
		case l.parks <- came:
		case <-life.over.Done():
			if came.child != nil {
				came.child.Discard()
			}
		}
	})
}

func (l *loop) tryPark(ctx context.Context, do decide.Park, running *kubelet.Child) parkEnded {
	child, err := l.waitingKubelet(ctx, do, running)
	switch {
	case err == nil:
		return parkEnded{child: child, event: decide.ParkEnded{Waits: true}}
	case errors.Is(err, kubelet.ErrEndedBeforeLock): // it says why as in any pre-flight
		return parkEnded{event: decide.ParkEnded{Proved: l.prove(ctx, decide.Prove{Version: do.Version, Control: do.Fallback, Kubelet: do.Kubelet, Local: do.Local})}}
	}
	l.Logger.Debug("the next kubelet is not started before the one that runs has ended", zap.Error(err))
	return parkEnded{}
}

var errStateFiles = errors.New("it is not certain that it takes the state files of the one that runs")

func (l *loop) waitingKubelet(ctx context.Context, do decide.Park, running *kubelet.Child) (*kubelet.Child, error) {
	now, then := l.effectives.find(do.Runs.Content, do.Kubelet), l.effectives.find(do.Version.Content, do.Kubelet)
	if !config.StateFilesStay(l.Arguments, now, then) {
		return nil, errStateFiles
	}
	if !limitsStay(now, then) {
		return nil, errLimits
	}
	l.makeRunDir()
	file, err := l.render(do.Version, kubelet.EffectiveFile)
	if err != nil {
		return nil, err
	}
	child, err := l.kubelets.Park(ctx, kubelet.Spec{File: file}, running)
	if err != nil {
		l.renderAgain(do.Runs)
	}
	return child, err
}

// renderAgain has the effective file say what runs, where another was to run and does not. Nobody reads it but people.
func (l *loop) renderAgain(runs *decide.Version) {
	if _, err := l.render(runs, kubelet.EffectiveFile); err != nil {
		l.Logger.Debug("the effective configuration cannot be written again", zap.Error(err))
	}
}

func (l *loop) hearParked(p parkEnded) decide.ParkEnded {
	l.parked, l.cancelPark = p.child, nil
	return p.event
}

// killParked is for a stop and the host's shutdown: the kubelet that waits ends at once, whatever is under way, and before the one that runs.
// One that is being let through waits no more.
func (l *loop) killParked() {
	if l.cancelPark != nil {
		l.cancelPark()
	}
	if _, starting := l.state.Doing.(decide.Start); !starting && l.parked != nil {
		l.parked.Kill()
	}
}

// unpark ends the kubelet that waits.
func (l *loop) unpark(life lifetimes, do decide.Unpark) {
	parked, runs := l.parked, l.state.Child.Version
	l.parked = nil
	l.answer(life.over, do, func() decide.Event {
		if parked != nil {
			parked.Discard()
			l.renderAgain(runs)
		}
		return decide.Unparked{}
	})
}

// letThrough waits until the kubelet that was parked is past its lock, for the one before has ended.
func (l *loop) letThrough(do decide.Start) begun {
	parked := l.parked
	if parked == nil || !parked.Passed() {
		return begun{do: do, gone: true}
	}
	effective := filepath.Join(l.RunDir, kubelet.EffectiveFile)
	return begun{do: do, child: parked, lease: config.LeaseDuration(l.Arguments, effective)}
}
