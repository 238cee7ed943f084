//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/systemd"
)

func newLoop(o Options) (*loop, error) {
	l := &loop{Options: o, arguments: config.ParseArguments(o.Arguments), events: make(chan decide.Event, 64), begun: make(chan begun), nextStart: nextStart{asked: make(chan []string)},
		rewrite: make(chan struct{}, 1), saves: newSaves(), idle: newIdle(), reload: reload{checks: make(chan successorCheck)}, due: -1}
	l.Standalone = l.kubeconfig() == ""
	l.Parking = lockFileOf(o) != ""
	l.parks = make(chan parkEnded)
	l.state = decide.New(l.Settings)
	unusable := prepareRunDir(o.RunDir)
	if unusable != nil && o.Handover == nil {
		return nil, fmt.Errorf("%w: the run folder cannot be used, give another with --run-dir: %w", ErrUsage, unusable)
	}
	if err := l.openStore(); err != nil {
		return nil, err
	}
	if unusable == nil && l.store != nil { // the folder is ours alone, and so is what is in it
		clearPreflights(o.RunDir)
		l.forgetEndedFor()
	}
	l.readPayload, l.lostAfter = l.store.LoadCheckpoint, lostAfter
	l.preflight = &kubelet.Preflight{Kubelet: o.Kubelet, Arguments: o.Arguments, Mode: o.Preflight, TempFolder: filepath.Join(o.RunDir, preflightFolder)}
	l.record = newRecord(o.RunDir)
	l.record.Version = o.Version
	l.manager = systemd.NewManager(o.Logger)
	l.kubelets = newLauncher(o, l.manager.Watchdog)
	l.api = newAPISession(l)
	l.beginMetrics()
	return l, nil
}

// openStore fails only where another supervisor runs. It takes the lock that the program before this one had.
func (l *loop) openStore() (err error) {
	switch h := l.Handover; {
	case h != nil && h.Unusable != "":
		l.unusable = errors.New(h.Unusable)
		return nil
	case h != nil && h.lock != nil:
		l.store, err = store.Inherit(l.StateDir, h.lock)
	default:
		l.store, err = store.Open(l.StateDir)
	}
	if another := heldByAnother(err); another != nil {
		return another
	}
	if err != nil {
		l.Logger.Error("the state folder cannot be used: the kubelet runs with its local configuration and nothing is applied", zap.Error(err))
		l.store, l.unusable = nil, fmt.Errorf("%w: %w", errNoStore, err)
	}
	return nil
}

// heldByAnother is the error where the state folder is locked by another supervisor, or by nobody knows whom. A lock of any other program does
// not keep a kubelet away (rule 27): the folder cannot be used then.
func heldByAnother(err error) error {
	held := &store.HeldError{}
	if !errors.As(err, &held) || held.PID != 0 && kubelet.IsOtherProgram(held.PID) {
		return nil
	}
	return fmt.Errorf("%w runs with this state folder: %w", ErrAnother, err)
}

func (l *loop) close() {
	l.kubelets.Close()
	if l.store != nil && !l.saves.hang() { // the end of the program closes it too
		_ = l.store.Close()
	}
}

func (l *loop) kubeconfig() string {
	if l.Kubeconfig != "" {
		return l.Kubeconfig
	}
	return l.arguments.Kubeconfig
}
