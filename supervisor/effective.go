//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// Bounds of what is kept of effective configurations: what runs, what will run, and what is fallen back to; local is kept in addition.
const (
	keptEffective     = 3
	keptEffectiveSize = 1 << 20 // bytes of one
)

// effectives keeps the effective configurations that kubelets told in the newest pre-flights. They may hold secrets: they are in memory
// alone. That of the node's own file stays whatever else comes: a change from it or to it needs no second pre-flight then. What the running
// kubelet was started with stays for as long as it lives, and is handed over at a reload: it cannot be asked for once the kubelet's
// program or its files have changed.
type effectives struct {
	mu    sync.Mutex
	runs  kubeletconfig.Effective
	child int // how many kubelets were started: one that has ended tells nothing of its successor
	local toldEffective
	list  []toldEffective // the newest last
}

type toldEffective struct {
	content   string
	kubelet   kubeletconfig.Identity
	effective kubeletconfig.Effective
}

func (e *effectives) keep(content string, kubelet kubeletconfig.Identity, told kubeletconfig.Effective, isLocal bool) {
	if !told.Told || told.Size() > keptEffectiveSize {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if isLocal {
		e.local = toldEffective{content, kubelet, told}
		return
	}
	e.list = slices.DeleteFunc(e.list, func(x toldEffective) bool { return x.content == content && x.kubelet == kubelet })
	e.list = append(e.list, toldEffective{content, kubelet, told})
	e.list = slices.Clone(e.list[max(0, len(e.list)-keptEffective):])
}

// begin notes what a kubelet that has just been started runs with; unknown while that has not been asked.
func (e *effectives) begin(content string, kubelet kubeletconfig.Identity) {
	told := e.find(content, kubelet)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = told
	e.child++
}

// running returns what the running kubelet was started with, and which kubelet that is.
func (e *effectives) running() (runs kubeletconfig.Effective, child int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs, e.child
}

func (e *effectives) handOver() *kubeletconfig.HandedEffective {
	runs, _ := e.running()
	return runs.HandOver()
}

func (e *effectives) inherit(h *kubeletconfig.HandedEffective) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = h.Effective()
}

// learnRunning completes what was not known of a kubelet when it was started.
func (e *effectives) learnRunning(child int, told kubeletconfig.Effective) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if child == e.child && !e.runs.Known() {
		e.runs = told
	}
}

// find returns what is known of a content under a kubelet; unknown when nothing is, or it is forgotten.
func (e *effectives) find(content string, kubelet kubeletconfig.Identity) kubeletconfig.Effective {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range append([]toldEffective{e.local}, e.list...) {
		if x.content == content && x.kubelet == kubelet {
			return x.effective
		}
	}
	return kubeletconfig.Effective{}
}

// effectiveOf is what a kubelet runs with that is started so with the file, "" for none: what it told of it, else our own reading.
func (p *prover) effectiveOf(do core.Start, file string) kubeletconfig.Effective {
	if told := p.effectives.find(core.ContentOr(do.Version, do.Local), do.Kubelet); told.Known() {
		return told
	}
	if file == "" {
		file = p.arguments.Config
	}
	return kubeletconfig.ReadEffective(p.Arguments, file)
}

// bothEffective returns the effective configurations of what runs and of what is to run.
func (p *prover) bothEffective(ctx context.Context, do core.Foresee) (now, then kubeletconfig.Effective, troubles []error) {
	then, thenErr := p.askedEffective(ctx, do, do.Version, do.Content)
	now, nowErr := p.runningEffective(ctx, do)
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

// runningEffective returns what the running kubelet was started with. Where that is not known yet, and the files of the node are still
// those that it was started with, the kubelet's program is asked.
func (p *prover) runningEffective(ctx context.Context, do core.Foresee) (runs kubeletconfig.Effective, err error) {
	runs, child := p.effectives.running()
	switch {
	case runs.Known():
		return runs, nil
	case do.RunsKubelet != do.Kubelet:
		if runs = p.effectives.find(do.Runs, do.RunsKubelet); !runs.Known() {
			err = errNeverTold
		}
	default:
		runs, err = p.askedEffective(ctx, do, do.RunsVersion, do.Runs)
	}
	p.effectives.learnRunning(child, runs)
	return runs, err
}

// ask learns what the running kubelet was started with, where that is not known yet.
func (p *prover) ask(ctx context.Context, do core.Ask) core.Asked {
	runs, child := p.effectives.running()
	if runs.Known() {
		return core.Asked{}
	}
	told, err := p.askEffective(ctx, core.Prove{Version: do.Version, Alone: true, Kubelet: do.Kubelet, Local: do.Local, Tries: do.Tries})
	if err != nil {
		p.Logger.Info("what the kubelet runs with is not known, so the effect of a change on its pods is not known either", zap.Error(err))
	} else {
		p.Logger.Info("the kubelet told what it runs with")
	}
	p.effectives.learnRunning(child, told)
	return core.Asked{Open: errors.As(err, new(unanswered))}
}

// An unanswered question is asked again.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// askedEffective asks the kubelet's program where it has not told yet.
func (p *prover) askedEffective(ctx context.Context, do core.Foresee, v *core.Version, content string) (kubeletconfig.Effective, error) {
	told := p.effectives.find(content, do.Kubelet)
	switch {
	case told.Known():
		return told, nil
	case !do.MayAsk:
		return told, unknowable{errPastCheck}
	case v == nil && content != do.Local:
		return told, errNeverTold
	}
	return p.askEffective(ctx, core.Prove{Version: v, Alone: true, Kubelet: do.Kubelet, Local: do.Local, Tries: do.Tries})
}

// askEffective asks the kubelet's program for an effective configuration. The error says why it is not known.
func (p *prover) askEffective(ctx context.Context, do core.Prove) (kubeletconfig.Effective, error) {
	proved, verdict := p.judge(ctx, do)
	told := verdict.Effective
	switch {
	case proved.Outcome == 0:
		return kubeletconfig.Effective{}, unanswered{cmp.Or(ctx.Err(), errWordless)}
	case proved.Unanswered:
		return kubeletconfig.Effective{}, unanswered{errors.New(proved.Words)}
	case proved.Outcome == kubeletconfig.Refused, proved.Outcome == kubeletconfig.Environment:
		return kubeletconfig.Effective{}, errors.New(proved.Words)
	case proved.Outcome == kubeletconfig.Unknown:
		return kubeletconfig.Effective{}, unknowable{errors.New(proved.Words)}
	case !told.Told && verdict.Minor > 0 && verdict.Minor < tellsFrom:
		return kubeletconfig.Effective{}, unknowable{fmt.Errorf("kubelet 1.%d does not tell it", verdict.Minor)}
	case !told.Told:
		return kubeletconfig.Effective{}, errNotTold
	case !p.isAbout(do):
		return kubeletconfig.Effective{}, unanswered{errChanged}
	}
	return told, nil
}
