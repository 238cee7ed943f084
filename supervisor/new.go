//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// wire makes the parts of a supervisor, and opens nothing.
func wire(o Options) *loop {
	in := &inputs{Options: o, arguments: commandline.Parse(o.Arguments)}
	in.Standalone, in.Parking = in.kubeconfig() == "", lockFileOf(o) != ""
	w := &workers{events: make(chan core.Event, 64)}
	l := &loop{inputs: in, workers: w, payloads: newPayloads(in), metrics: newMetrics(o), state: core.New(in.Settings), idle: newIdle(),
		due:    -1,
		reload: reload{checks: make(chan successorCheck)}}
	l.prover = &prover{inputs: in, payloads: l.payloads,
		preflight: &kubelet.Preflight{Kubelet: o.Kubelet, Arguments: o.Arguments, Mode: o.Preflight,
			TempFolder: filepath.Join(o.RunDir, preflightFolder)}}
	l.api = newAPISession(in, w, l.payloads, l.metrics)
	l.foresight = &foresight{inputs: in, workers: w, prover: l.prover, connection: l.api.connection, lostAfter: lostAfter}
	l.runner = &runner{inputs: in, workers: w, payloads: l.payloads, prover: l.prover, foresight: l.foresight, lease: l.api.lease,
		node:   l.api.node,
		starts: make(chan startResult), parking: parking{parks: make(chan parkEnded)}}
	l.watches = &watches{inputs: in, workers: w, effectives: &l.prover.effectives}
	l.nextStart = &nextStart{inputs: in, workers: w, asked: make(chan []string)}
	l.log = &decisionLog{inputs: in, connection: l.api.connection}
	return l
}

func newLoop(o Options) (*loop, error) {
	l := wire(o)
	unusable := prepareRunDir(o.RunDir)
	if unusable != nil && o.Handover == nil {
		return nil, fmt.Errorf("%w: the run folder cannot be used, give another with --run-dir: %w", ErrUsage, unusable)
	}
	if err := l.payloads.openStore(); err != nil {
		return nil, err
	}
	if unusable == nil && l.payloads.store != nil { // the folder is ours alone, and so is what is in it
		clearPreflights(o.RunDir)
		o.forgetEndedFor()
	}
	l.record = recorder{newRecord(o.RunDir), l.inputs}
	l.record.Version = o.Version
	l.manager = systemd.NewManager(o.Logger)
	l.runner.kubelets = newLauncher(o, l.manager.Watchdog)
	l.observers = []decisionObserver{l.log, counter{l.metrics}, l.foresight, l.api, unitStatus{l.manager}, l.nextStart}
	return l, nil
}

// heldByAnother returns the error where the state folder is locked by another supervisor, or by an unknown process. A lock of any other
// program does not keep a kubelet away (rule 27): the folder cannot be used then.
func heldByAnother(err error) error {
	held := &store.HeldError{}
	if !errors.As(err, &held) || held.PID != 0 && kubelet.IsOtherProgram(held.PID) {
		return nil
	}
	return fmt.Errorf("%w runs with this state folder: %w", ErrAnother, err)
}

func (l *loop) close() {
	l.runner.kubelets.Close()
	if l.payloads.store != nil && !l.payloads.saves.hang() { // the end of the program closes it too
		_ = l.payloads.store.Close()
	}
}

// openStore fails only where another supervisor runs. It takes the lock that the program before this one had.
func (p *payloads) openStore() (err error) {
	switch h := p.Handover; {
	case h != nil && h.Unusable != "":
		p.unusable = errors.New(h.Unusable)
		return nil
	case h != nil && h.lock != nil:
		p.store, err = store.Inherit(p.StateDir, h.lock)
	default:
		p.store, err = store.Open(p.StateDir)
	}
	if another := heldByAnother(err); another != nil {
		return another
	}
	if err != nil {
		p.Logger.Error("the state folder cannot be used: the kubelet runs with its local configuration and nothing is applied", zap.Error(err))
		p.store, p.unusable = nil, fmt.Errorf("%w: %w", errNoStore, err)
	}
	return nil
}
