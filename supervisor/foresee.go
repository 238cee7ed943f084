package supervisor

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const (
	namedPods     = 5   // that a message names
	foreseenLimit = 400 // bytes of one line
)

// foresee finds out what a change would do to running pods (rule 19). What cannot be found out is said, and holds nothing up.
func (l *loop) foresee(ctx context.Context, do decide.Foresee) decide.Foreseen {
	ctx, cancel := context.WithTimeout(ctx, configsync.RequestTimeout)
	defer cancel()
	asked := inquiry{Logger: l.Logger, rootDir: config.RootDir(l.Arguments),
		effective: func() (now, then config.Effective) { return l.bothEffective(ctx, do) }}
	asked.client, asked.nodeName = l.api.connection()
	look := l.lost.begin()
	facts, troubles := asked.facts(ctx)
	l.lost.before(look, facts.Pods, steadyTime())
	return foreseen(do.Change, forecast.Of(facts), troubles)
}

// foreseen puts a forecast into the words of the core.
func foreseen(change decide.Change, f forecast.Forecast, troubles []string) decide.Foreseen {
	found := decide.Foreseen{Change: change, Lost: f.Harm()}
	for _, u := range slices.Concat(f.Missing, f.Doubts) {
		troubles = append(troubles, u.String())
	}
	if found.Lost == 0 && len(f.Losses)+len(f.Static)+len(f.Anyway) > 0 {
		troubles = append(troubles, f.Sentence(namedPods))
	}
	found.Unknown = bounded.Text(bounded.Line(strings.Join(troubles, "; ")), foreseenLimit)
	if found.Lost > 0 {
		found.Words = bounded.Text(bounded.Line(f.Sentence(namedPods)), foreseenLimit)
	}
	return found
}

func (l *loop) readPods(ctx context.Context, ended func(forecast.End)) ([]corev1.Pod, error) {
	client, name := l.api.connection()
	if client == nil {
		return nil, nil // it was said of the Node
	}
	return readPods(ctx, client, name, ended)
}

// bothEffective gives the effective configurations of what runs and of what is to run.
func (l *loop) bothEffective(ctx context.Context, do decide.Foresee) (now, then config.Effective) {
	then = l.askedEffective(ctx, do, do.Version, do.Content)
	return l.runningEffective(ctx, do), then
}

// runningEffective gives what the running kubelet was started with. Where nobody has said so yet, and the files of the node are still those
// that it was started with, the kubelet's program is asked.
func (l *loop) runningEffective(ctx context.Context, do decide.Foresee) config.Effective {
	runs, child := l.effectives.running()
	if runs.Known() {
		return runs
	}
	if do.RunsKubelet != do.Kubelet {
		runs = l.effectives.find(do.Runs, do.RunsKubelet)
	} else {
		runs = l.askedEffective(ctx, do, do.RunsVersion, do.Runs)
	}
	l.effectives.learnRunning(child, runs)
	return runs
}

func (l *loop) askedEffective(ctx context.Context, do decide.Foresee, v *decide.Version, content string) config.Effective {
	told := l.effectives.find(content, do.Kubelet)
	if told.Known() || !do.MayAsk || v == nil && content != do.Local {
		return told
	}
	l.prove(ctx, decide.Prove{Version: v, Alone: true, Kubelet: do.Kubelet, Local: do.Local})
	return l.effectives.find(content, do.Kubelet)
}
