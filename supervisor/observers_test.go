//go:build linux

package supervisor

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// listener notes decisions, and whether the kubelet was being started when it was told of them.
type listener struct {
	runner    *runner
	decisions []decision
	late      bool
}

func (t *listener) observe(_ context.Context, d *decision) {
	t.decisions, t.late = append(t.decisions, *d), t.late || t.runner.lastStarted == nil
}

// Observers are told of each decision once, with what the Node should show by then, and before its action is begun.
func TestObserversComeBeforeTheAction(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	ctx, end := context.WithCancel(t.Context())
	defer l.tasks.Wait()
	defer end()
	told := &listener{runner: l.runner}
	l.observers = append(l.observers, told)
	l.runner.lastStarted = &core.Version{} // the start of the local configuration puts nil there
	booted := l.boot()
	l.handle(lifetimes{asked: ctx, over: ctx}, booted)
	if len(told.decisions) != 1 || told.late || l.runner.lastStarted != nil {
		t.Fatalf("told of %d decisions, late %t; started last is %v", len(told.decisions), told.late, l.runner.lastStarted)
	}
	d := told.decisions[0]
	if want, _ := core.Report(l.state); d.before.Booted || !d.after.Booted || d.shown.Message != want.Message {
		t.Errorf("told of %+v", d)
	}
	if l.record.Condition.Message != d.shown.Message {
		t.Errorf("recorded is %q, and shown %q", l.record.Condition.Message, d.shown.Message)
	}
}
