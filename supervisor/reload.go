//go:build linux

package supervisor

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// A reload puts the program that is now at our path in our place, in the same process: it is checked first, then executed at the next
// moment at which nothing is under way. The kubelet stays the process's child and notices nothing. A program that cannot take over is
// refused, and this one goes on.

// reload is how far one is.
type reload struct {
	checks  chan successorCheck
	pending bool            // asked for, not answered
	checked *successorCheck // it may be executed
}

type successorCheck struct {
	identity fileIdentity
	err      error
}

// errBusy is no failure: something has just begun.
var errBusy = errors.New("something is under way")

// beginReload has the program checked that will take over. A process that asks again in the meantime gets the same answer.
func (l *loop) beginReload(ctx context.Context) {
	if l.reload.pending {
		return
	}
	l.reload.pending = true
	l.manager.Reloading()
	l.checkSuccessor(ctx)
}

func (l *loop) checkSuccessor(ctx context.Context) {
	l.reload.checked = nil
	l.spawn(func() {
		identity, err := l.Successor.check(ctx)
		if err == nil {
			err = l.payloads.diskAnswers()
		}
		select {
		case l.reload.checks <- successorCheck{identity, err}:
		case <-ctx.Done():
		}
	})
}

// onChecked takes the answer of the program.
func (l *loop) onChecked(c successorCheck) {
	if c.err != nil {
		l.endReload(c.err)
		return
	}
	l.reload.checked = &c
}

// continueReload executes the program if it may be and nothing is under way. It returns if it is not yet time, or if that failed.
func (l *loop) continueReload(ctx context.Context) {
	switch {
	case !l.reload.pending:
		return
	case l.state.Stopping:
		l.endReload(errors.New("the supervisor was asked to stop before the reload"))
		return
	case l.reload.checked == nil, l.state.Doing != nil, l.runner.questions.Load() > 0, l.state.Parked != nil, len(l.events) > 0:
		return
	}
	if now, err := identityOf(l.Successor.Path); err != nil || now != l.reload.checked.identity || l.payloads.saves.hang() {
		l.checkSuccessor(ctx) // replaced once more, or something is being written
		return
	}
	if err := l.replace(); !errors.Is(err, errBusy) {
		l.endReload(err)
	}
}

// replace returns only when it failed.
func (l *loop) replace() error {
	child := l.runner.child
	if !l.state.Child.Alive {
		child = nil
	}
	release, held := l.runner.kubelets.Hold(child)
	if !held {
		return errBusy // its exit is on its way to the loop
	}
	defer release()
	l.log.line(&l.state, zap.InfoLevel, reloadTaken, l.state.Child.Version,
		"the program that is now at "+l.Successor.Path+" takes over, the kubelet stays")
	_ = l.Logger.Sync()
	l.manager.Flush()
	lock := -1
	if l.payloads.store != nil {
		lock = int(l.payloads.store.Lock().Fd())
	}
	crashPoint("reload", "executes")
	return l.Successor.execute(l.handOver(), lock, l.runner.kubelets.NotifySocket())
}

// endReload answers the process that asked, in state.json. err is nil where this program is the one that took over.
func (l *loop) endReload(err error) {
	l.reload.pending, l.reload.checked = false, nil
	l.record.Reloads++
	l.record.ReloadFailure = ""
	if err != nil {
		l.record.ReloadFailure = err.Error()
		l.log.line(&l.state, zap.ErrorLevel, reloadRefused, l.state.Child.Version, "the reload is refused, the running program goes on",
			zap.Error(err))
	}
	l.record.save()
	l.manager.Reloaded()
}

// takeOver makes the loop what the one before was. It is false where that cannot be done: then the kubelet is one that was left behind.
func (l *loop) takeOver() bool {
	if l.Handover == nil {
		return false
	}
	crashPoint("reload", "takes over")
	err := l.Handover.broken
	if err == nil {
		err = l.inherit(l.Handover)
	}
	if err != nil {
		l.Logger.Error("the kubelet cannot be taken over from the program before this one, and is started again", zap.Error(err))
		return false
	}
	return true
}

// collectLost collects the exit status of children that no goroutine waits for: those of a program that could not be taken over from.
func collectLost(handover *Handover) {
	if handover == nil {
		return
	}
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}

// resume is the first decision after taking over.
func (l *loop) resume(life lifetimes) core.LocalChanged {
	if l.state.Child.Alive {
		child := l.runner.child
		l.spawn(func() { l.attend(life.over, child) })
	}
	seen := core.LocalChanged{Kubelet: l.state.OnDisk, Local: l.state.Local}
	if now, err := l.lookLocal(); err == nil {
		seen = now
	}
	l.handle(life, seen)
	crashPoint("reload", "took over")
	l.endReload(nil)
	l.log.line(&l.state, zap.InfoLevel, reloadDone, l.state.Child.Version, "took over from the program before, the kubelet stays")
	return seen
}
