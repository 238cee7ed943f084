//go:build linux

package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const (
	namedPods     = 5   // that a message names
	foreseenLimit = 400 // bytes of one line
)

// foresight finds what a change would do to running pods, and what a restart has done to them (rule 19).
type foresight struct {
	*inputs
	*workers
	prover     *prover
	connection func() (rest.Interface, string) // nil while there is no connection; and the Node's name
	lost       lostPods
	lostAfter  time.Duration
}

// foresee finds out what a change would do to running pods (rule 19).
func (f *foresight) foresee(ctx context.Context, do core.Foresee) core.Foreseen {
	now, then, unknown := f.prover.bothEffective(ctx, do)
	asked := inquiry{Logger: f.Logger, rootDir: kubeletconfig.RootDir(f.Arguments),
		runtime: kubeletconfig.EffectiveEndpoints(f.Arguments, "").Runtime, offline: errOffline, tries: do.Tries,
		effective: func() (kubeletconfig.Effective, kubeletconfig.Effective, []error) { return now, then, unknown }}
	if f.Standalone {
		asked.offline = unknowable{errStandalone}
	}
	asked.client, asked.nodeName = f.connection()
	look := f.lost.begin()
	facts, troubles := asked.facts(ctx)
	if now, err := f.lookLocal(); err == nil && (now.Kubelet != do.Kubelet || now.Local != do.Local) {
		f.send(ctx, now) // the answer is about files that no kubelet is started with now
		troubles = append(troubles, errChanged)
	}
	seen := forecast.Of(facts)
	f.lost.before(look, asked.seenIn(facts, seen), steadyTime())
	if facts.Now != nil && facts.Then != nil && facts.Node != nil && facts.Pods != nil { // else the troubles say it better
		for _, u := range seen.Missing {
			troubles = append(troubles, errors.New(u.String()))
		}
	}
	found := foreseen(do.Change, seen, troubles)
	found.Nonce = rand.Text()
	askedRuntime := "" // with Allow nothing waits for a runtime that the forecast has asked, and that hangs
	if f.Disruption == core.Hold && facts.Now != nil && facts.Then != nil && asked.client != nil {
		askedRuntime = f.looksAtStart().endpoint(now)
	}
	found.Obstacles, found.Unseen = f.obstaclesOf(ctx, then, askedRuntime), !then.Known()
	return found
}

// foreseen turns a forecast into an event of the core. A forecast that could be made counts as known, although something may be unknowable,
// such as the sandboxes of an old container runtime.
func foreseen(change core.Change, f forecast.Forecast, troubles []error) core.Foreseen {
	found := core.Foreseen{Change: change}
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

func (f *foresight) readPods(ctx context.Context, ended func(forecast.End)) ([]corev1.Pod, error) {
	client, name := f.connection()
	if client == nil {
		return nil, nil // it was said of the Node
	}
	pods, _, err := readPods(ctx, client, name, configsync.AsCached, ended)
	return pods, err
}

var (
	errStandalone = errors.New("the kubelet has no kubeconfig, so its Node and pods are not known")
	errNeverTold  = errors.New("the kubelet was never asked for it, and its program or its files have changed since")
	errPastCheck  = errors.New("the kubelet does not stop at its check, and is not asked again")
	errChanged    = errors.New("its files changed while the kubelet was asked")
	errNotTold    = errors.New("the kubelet has accepted it, and not told it")
	errUnreadable = errors.New("what the kubelet told of it cannot be read")
	errWordless   = errors.New("the kubelet was asked, and something else came first")
)

// tellsFrom is the first minor version of the kubelet that tells its configuration in a form that is read.
const tellsFrom = 26
