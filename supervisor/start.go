package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// errRender marks a start that failed before there was anything to start.
var errRender = errors.New("making the effective configuration")

func newLauncher(o Options, watchdog time.Duration) *kubelet.Launcher {
	return kubelet.NewLauncher(kubelet.Settings{Path: o.Kubelet, Arguments: o.Arguments, RunDir: o.RunDir, Journal: o.Journal, Output: o.Output,
		Watchdog: watchdog, Logger: o.Logger, StartTimeout: o.StartTimeout})
}

// start carries out Start and answers it. A start that cannot be made is answered with its error and a backoff.
func (l *loop) start(side context.Context, do decide.Start) {
	if changed, is := l.localChangedUnseen(); is {
		l.spawn(func() {
			l.send(side, changed)
			l.send(side, decide.Started{Err: errLocalChanged})
		})
		return
	}
	if files := l.stateFilesInTheWay(do); len(files) > 0 {
		l.spawn(func() { l.send(side, decide.Started{InTheWay: files}) })
		return
	}
	if !decide.Same(l.lastStarted, do.Version) {
		l.kubelets.ResetDelay()
	}
	l.lastStarted = do.Version
	child, err := l.launch(do)
	if err != nil {
		failed := decide.Started{Err: err, Unrenderable: errors.Is(err, errRender), Delay: l.kubelets.Delay()}
		l.spawn(func() { l.send(side, failed) })
		return
	}
	crashPoint("after", do)
	l.child = child
	l.record.started(child.Process())
	crashPoint("recorded", do)
	l.lease.newChild()
	l.spawn(func() {
		l.send(side, decide.Started{})
		l.attend(side, child)
	})
}

func (l *loop) launch(do decide.Start) (*kubelet.Child, error) {
	l.makeRunDir()
	file, err := l.render(do.Version, kubelet.EffectiveFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRender, err)
	}
	return l.kubelets.Start(kubelet.Spec{File: file, Fallback: l.configFileOf(do.Fallback)})
}

// configFileOf is where the container runtime's endpoint of a version is to be read; empty for local.
func (l *loop) configFileOf(v *decide.Version) string {
	if v == nil || l.store == nil {
		return ""
	}
	return filepath.Join(l.store.CheckpointFolder(v.Source), v.Source.KubeletConfigKey)
}

// attend waits for the end of a child, and tells the loop what is seen of it meanwhile.
func (l *loop) attend(side context.Context, child *kubelet.Child) {
	child.Attend(side, func(seen kubelet.Event) { l.send(side, eventOf(seen)) })
}

// eventOf is what a kubelet's event is in the words of the core.
func eventOf(seen kubelet.Event) decide.Event {
	switch seen := seen.(type) {
	case kubelet.Healthy:
		return decide.Healthy{}
	case kubelet.Unhealthy:
		return decide.Unhealthy{Words: seen.Words}
	case kubelet.Hung:
		return decide.Hung{Words: seen.Words}
	case kubelet.Exited:
		return decide.ChildExited(seen)
	}
	return decide.Ticked{}
}
