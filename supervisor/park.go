//go:build linux

package supervisor

import (
	"context"
	"errors"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// lockFile is below STATE_DIR: a RUN_DIR that is removed and made again would be another lock, and let two kubelets through.
const lockFile = "kubelet.lock"

// lockFileOf returns what kubelets with a configuration of ours hold while they live; empty where the administrator has set a lock, or
// where the kubelet must not be asked.
func lockFileOf(o Options) string {
	if o.Preflight == kubelet.PreflightNever || commandline.NamesFlag(o.Arguments, "lock-file", "exit-on-lock-contention") {
		return ""
	}
	return filepath.Join(o.StateDir, lockFile)
}

// parkEnded is what came of Park.
type parkEnded struct {
	child *kubelet.Child
	event core.ParkEnded
}

// park carries out Park in a goroutine.
func (r *runner) park(life lifetimes, s *core.State, do core.Park) {
	ctx, cancel := context.WithCancel(life.asked)
	running := r.child
	r.cancelPark = cancel
	known := core.LocalChanged{Kubelet: s.OnDisk, Local: s.Local}
	r.spawn(func() {
		defer cancel()
		var result parkEnded
		if now, err := r.lookLocal(); err == nil && now != known {
			r.send(life.over, now)
		} else {
			result = r.tryPark(ctx, do, running)
		}
		crashPoint("after", do)
		select {
		case r.parks <- result:
		case <-life.over.Done():
			if result.child != nil {
				result.child.Discard()
			}
		}
	})
}

func (r *runner) tryPark(ctx context.Context, do core.Park, running *kubelet.Child) parkEnded {
	child, err := r.waitingKubelet(ctx, do, running)
	switch {
	case err == nil:
		return parkEnded{child: child, event: core.ParkEnded{Waits: true}}
	case errors.Is(err, kubelet.ErrEndedBeforeLock): // it says why as in any pre-flight
		return parkEnded{event: core.ParkEnded{Proved: r.prover.prove(ctx,
			core.Prove{Version: do.Version, Control: do.Fallback, Kubelet: do.Kubelet, Local: do.Local})}}
	}
	r.Logger.Debug("the next kubelet is not started before the one that runs has ended", zap.Error(err))
	return parkEnded{}
}

var errStateFiles = errors.New("it is not certain that it takes the state files of the one that runs")

func (r *runner) waitingKubelet(ctx context.Context, do core.Park, running *kubelet.Child) (*kubelet.Child, error) {
	now, then := r.prover.effectives.find(do.Runs.Content, do.Kubelet), r.prover.effectives.find(do.Version.Content, do.Kubelet)
	if !kubeletconfig.StateFilesStay(r.Arguments, now, then) {
		return nil, errStateFiles
	}
	if !limitsStay(now, then) {
		return nil, errLimits
	}
	r.makeRunDir()
	file, err := r.payloads.render(do.Version, kubelet.EffectiveFile)
	if err != nil {
		return nil, err
	}
	child, err := r.kubelets.Park(ctx, kubelet.Spec{File: file}, running)
	if err != nil {
		r.renderAgain(do.Runs)
	}
	return child, err
}

// renderAgain has the effective file say what runs, where another was to run and does not. Only people read it.
func (r *runner) renderAgain(runs *core.Version) {
	if _, err := r.payloads.render(runs, kubelet.EffectiveFile); err != nil {
		r.Logger.Debug("the effective configuration cannot be written again", zap.Error(err))
	}
}

func (r *runner) onParked(p parkEnded) core.ParkEnded {
	r.parked, r.cancelPark = p.child, nil
	return p.event
}

// unpark ends the kubelet that waits.
func (r *runner) unpark(life lifetimes, s *core.State, do core.Unpark) {
	parked, runs := r.parked, s.Child.Version
	r.parked = nil
	r.answer(life.over, do, func() core.Event {
		if parked != nil {
			parked.Discard()
			r.renderAgain(runs)
		}
		return core.Unparked{}
	})
}

// releaseParked waits until the kubelet that was parked is past its lock, because the one before has ended.
func (r *runner) releaseParked(do core.Start) startResult {
	parked := r.parked
	if parked == nil || !parked.Passed() {
		return startResult{do: do, gone: true}
	}
	effective := filepath.Join(r.RunDir, kubelet.EffectiveFile)
	return startResult{do: do, child: parked, lease: kubeletconfig.LeaseDuration(r.Arguments, effective)}
}
