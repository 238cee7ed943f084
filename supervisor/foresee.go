//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
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

// foresee finds out what a change would do to running pods (rule 19).
func (l *loop) foresee(ctx context.Context, do decide.Foresee) decide.Foreseen {
	now, then, unknown := l.bothEffective(ctx, do)
	asked := inquiry{Logger: l.Logger, rootDir: config.RootDir(l.Arguments), runtime: config.EffectiveEndpoints(l.Arguments, "").Runtime, offline: errOffline, tries: do.Tries,
		effective: func() (config.Effective, config.Effective, []error) { return now, then, unknown }}
	if l.Standalone {
		asked.offline = unknowable{errStandalone}
	}
	asked.client, asked.nodeName = l.api.connection()
	look := l.lost.begin()
	facts, troubles := asked.facts(ctx)
	if now, err := l.lookLocal(); err == nil && (now.Kubelet != do.Kubelet || now.Local != do.Local) {
		l.send(ctx, now) // what was told is of files that no kubelet is started with any more
		troubles = append(troubles, errChanged)
	}
	f := forecast.Of(facts)
	l.lost.before(look, asked.seenIn(facts, f), steadyTime())
	if facts.Now != nil && facts.Then != nil && facts.Node != nil && facts.Pods != nil { // else the troubles say it better
		for _, u := range f.Missing {
			troubles = append(troubles, errors.New(u.String()))
		}
	}
	found := foreseen(do.Change, f, troubles)
	found.Nonce = rand.Text()
	askedRuntime := "" // with Allow nothing waits for a runtime that the forecast has asked, and that hangs
	if l.Disruption == decide.Hold && facts.Now != nil && facts.Then != nil && asked.client != nil {
		askedRuntime = l.looksAtStart().endpoint(now)
	}
	found.Obstacles, found.Unseen = l.obstaclesOf(ctx, then, askedRuntime), !then.Known()
	return found
}

// foreseen puts a forecast into the words of the core. A forecast that could be made is one that knows, although there may be something that
// nobody can say, such as the sandboxes of an old container runtime.
func foreseen(change decide.Change, f forecast.Forecast, troubles []error) decide.Foreseen {
	found := decide.Foreseen{Change: change}
	var waits, warnings []string
	for _, err := range troubles {
		if unknowable := (unknowable{}); errors.As(err, &unknowable) {
			warnings = append(warnings, err.Error())
		} else {
			waits = append(waits, err.Error())
		}
	}
	for _, u := range f.Doubts {
		warnings = append(warnings, u.String())
	}
	found.Known, found.Lost, found.InDoubt = f.Known() && len(waits) == 0, f.Harm(), losses(f.InDoubt())
	sentence := f.Sentence(namedPods)
	if found.Lost > 0 {
		found.Words, found.Losses = line(sentence), append(overfull(f.Cgroups), losses(f.Lost())...)
	} else if len(f.Losses)+len(f.Static)+len(f.Anyway) > 0 {
		warnings = append(warnings, sentence)
	}
	found.WaitsFor, found.Warning = line(waits...), line(warnings...)
	return found
}

// line is one line of bounded length.
func line(parts ...string) string {
	return bounded.Text(bounded.Line(strings.Join(parts, "; ")), foreseenLimit)
}

// overfull names cgroups where pods are named: each is a reason to wait, and no drain ends it.
func overfull(cgroups []forecast.Overfull) (list []nodev1.Loss) {
	for _, o := range cgroups {
		list = append(list, nodev1.Loss{Pod: "cgroup " + o.Cgroup, Reason: o.Reason()})
	}
	return list
}

func losses(lost []forecast.Loss) (list []nodev1.Loss) {
	for _, l := range lost {
		list = append(list, nodev1.Loss{Pod: l.Namespace + "/" + l.Name, UID: l.UID, Reason: l.Reason})
	}
	return list
}

func (l *loop) readPods(ctx context.Context, ended func(forecast.End)) ([]corev1.Pod, error) {
	client, name := l.api.connection()
	if client == nil {
		return nil, nil // it was said of the Node
	}
	pods, _, err := readPods(ctx, client, name, configsync.AsCached, ended)
	return pods, err
}

// bothEffective gives the effective configurations of what runs and of what is to run.
func (l *loop) bothEffective(ctx context.Context, do decide.Foresee) (now, then config.Effective, troubles []error) {
	then, thenErr := l.askedEffective(ctx, do, do.Version, do.Content)
	now, nowErr := l.runningEffective(ctx, do)
	if nowErr == nil && configurationOf(now) == nil {
		nowErr = errUnreadable
	}
	if thenErr == nil && configurationOf(then) == nil {
		thenErr = errUnreadable
	}
	if nowErr != nil {
		troubles = append(troubles, fmt.Errorf("the configuration that runs: %w", nowErr))
	}
	if thenErr != nil {
		troubles = append(troubles, fmt.Errorf("the configuration that is to run: %w", thenErr))
	}
	return now, then, troubles
}

// runningEffective gives what the running kubelet was started with. Where nobody has said so yet, and the files of the node are still those
// that it was started with, the kubelet's program is asked.
func (l *loop) runningEffective(ctx context.Context, do decide.Foresee) (runs config.Effective, err error) {
	runs, child := l.effectives.running()
	switch {
	case runs.Known():
		return runs, nil
	case do.RunsKubelet != do.Kubelet:
		if runs = l.effectives.find(do.Runs, do.RunsKubelet); !runs.Known() {
			err = errNeverTold
		}
	default:
		runs, err = l.askedEffective(ctx, do, do.RunsVersion, do.Runs)
	}
	l.effectives.learnRunning(child, runs)
	return runs, err
}

// ask learns what the running kubelet was started with, where that is not known yet.
func (l *loop) ask(ctx context.Context, do decide.Ask) decide.Asked {
	runs, child := l.effectives.running()
	if runs.Known() {
		return decide.Asked{}
	}
	told, err := l.askEffective(ctx, decide.Prove{Version: do.Version, Alone: true, Kubelet: do.Kubelet, Local: do.Local, Tries: do.Tries})
	if err != nil {
		l.Logger.Info("what the kubelet runs with is not known: what a change would do to its pods cannot be told", zap.Error(err))
	} else {
		l.Logger.Info("the kubelet told what it runs with")
	}
	l.effectives.learnRunning(child, told)
	return decide.Asked{Open: errors.As(err, new(unanswered))}
}

// An unanswered question is asked again.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// askedEffective asks the kubelet's program where it has not told yet.
func (l *loop) askedEffective(ctx context.Context, do decide.Foresee, v *decide.Version, content string) (config.Effective, error) {
	told := l.effectives.find(content, do.Kubelet)
	switch {
	case told.Known():
		return told, nil
	case !do.MayAsk:
		return told, unknowable{errPastCheck}
	case v == nil && content != do.Local:
		return told, errNeverTold
	}
	return l.askEffective(ctx, decide.Prove{Version: v, Alone: true, Kubelet: do.Kubelet, Local: do.Local, Tries: do.Tries})
}

var (
	errStandalone = errors.New("the kubelet has no kubeconfig, so its Node and pods are not known")
	errNeverTold  = errors.New("the kubelet was never asked for it, and its program or its files have changed since")
	errPastCheck  = errors.New("the kubelet does not stop at its check, and is not asked any more")
	errChanged    = errors.New("its files changed while the kubelet was asked")
	errNotTold    = errors.New("the kubelet has accepted it, and not told it")
	errUnreadable = errors.New("what the kubelet told of it cannot be read")
	errWordless   = errors.New("the kubelet was asked, and something else came first")
)

// tellsFrom is the first minor version of the kubelet that tells its configuration in a form that is read.
const tellsFrom = 26

// askEffective asks the kubelet's program for an effective configuration. The error says why it is not known.
func (l *loop) askEffective(ctx context.Context, do decide.Prove) (config.Effective, error) {
	proved, verdict := l.judge(ctx, do)
	told := verdict.Effective
	switch {
	case proved.Outcome == 0:
		return config.Effective{}, unanswered{cmp.Or(ctx.Err(), errWordless)}
	case proved.Unanswered:
		return config.Effective{}, unanswered{errors.New(proved.Words)}
	case proved.Outcome == config.Refused, proved.Outcome == config.Environment:
		return config.Effective{}, errors.New(proved.Words)
	case proved.Outcome == config.Unknown:
		return config.Effective{}, unknowable{errors.New(proved.Words)}
	case !told.Told && verdict.Minor > 0 && verdict.Minor < tellsFrom:
		return config.Effective{}, unknowable{fmt.Errorf("kubelet 1.%d does not tell it", verdict.Minor)}
	case !told.Told:
		return config.Effective{}, errNotTold
	case !l.isAbout(do):
		return config.Effective{}, unanswered{errChanged}
	}
	return told, nil
}
