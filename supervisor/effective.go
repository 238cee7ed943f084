//go:build linux

package supervisor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// Bounds of what is kept of effective configurations: what runs, what is to run, and what is fallen back to; local is kept beside them.
const (
	keptEffective     = 3
	keptEffectiveSize = 1 << 20 // bytes of one
)

// effectives keeps the effective configurations that kubelets told in the newest pre-flights. They may hold secrets: they are in memory
// alone. That of the node's own file stays whatever else comes: a change from it or to it needs no second pre-flight then. What the running
// kubelet was started with stays for as long as it lives, and is handed over at a reload: nobody can be asked for it once the kubelet's
// program or its files have changed.
type effectives struct {
	mu    sync.Mutex
	runs  config.Effective
	child int // how many kubelets were started: one that has ended tells nothing of its successor
	local effectiveOf
	list  []effectiveOf // the newest last
}

type effectiveOf struct {
	content   string
	kubelet   config.Identity
	effective config.Effective
}

func (e *effectives) keep(content string, kubelet config.Identity, told config.Effective, isLocal bool) {
	if !told.Told || told.Size() > keptEffectiveSize {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if isLocal {
		e.local = effectiveOf{content, kubelet, told}
		return
	}
	e.list = slices.DeleteFunc(e.list, func(x effectiveOf) bool { return x.content == content && x.kubelet == kubelet })
	e.list = append(e.list, effectiveOf{content, kubelet, told})
	e.list = slices.Clone(e.list[max(0, len(e.list)-keptEffective):])
}

// begin notes what a kubelet was told to run with that has just been started; unknown when nobody has said so yet.
func (e *effectives) begin(content string, kubelet config.Identity) {
	told := e.find(content, kubelet)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = told
	e.child++
}

// running gives what the running kubelet was started with, and which kubelet that is.
func (e *effectives) running() (runs config.Effective, child int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs, e.child
}

func (e *effectives) handOver() *config.HandedEffective {
	runs, _ := e.running()
	return runs.HandOver()
}

func (e *effectives) inherit(h *config.HandedEffective) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = h.Effective()
}

// learnRunning completes what was not known of a kubelet when it was started.
func (e *effectives) learnRunning(child int, told config.Effective) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if child == e.child && !e.runs.Known() {
		e.runs = told
	}
}

// find gives what was told of a content under a kubelet; unknown when nothing was, or it is forgotten.
func (e *effectives) find(content string, kubelet config.Identity) config.Effective {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range append([]effectiveOf{e.local}, e.list...) {
		if x.content == content && x.kubelet == kubelet {
			return x.effective
		}
	}
	return config.Effective{}
}

// effectiveOf is what a kubelet runs with that is started so with the file, "" for none: what it told of it, else our own reading.
func (l *loop) effectiveOf(do decide.Start, file string) config.Effective {
	if told := l.effectives.find(decide.ContentOr(do.Version, do.Local), do.Kubelet); told.Known() {
		return told
	}
	if file == "" {
		file = l.arguments.Config
	}
	return config.ReadEffective(l.Arguments, file)
}

// explain adds what a pre-flight found out beside its verdict.
func (l *loop) explain(proved *decide.Proved, do decide.Prove, verdict kubelet.Verdict) {
	for _, words := range verdict.GoingAway {
		l.Logger.Warn("the kubelet says of " + decide.Describe(do.Version) + ": " + words)
	}
	proved.Shadowed, proved.Version = verdict.Shadowed, verdict.Version
	told := verdict.Effective
	if !l.isAbout(do) {
		told = config.Effective{}
	}
	l.effectives.keep(proved.Content, do.Kubelet, told, do.Version == nil)
	if do.Version == nil {
		proved.Effective = told.Digest("", nil)
		return
	}
	source := do.Version.Source
	payload, err := l.checkpoint(source)
	if err != nil {
		return
	}
	proved.UnknownFields = config.UnknownFields(payload, source.KubeletConfigKey, verdict.Minor)
	proved.Warnings = slices.Concat(l.resolverWarning(verdict), config.Warnings(payload, source.KubeletConfigKey, verdict.Minor), gatesOf(verdict.GoingAway))
	beside := maps.Clone(payload)
	delete(beside, source.KubeletConfigKey)
	proved.Effective = told.Digest(l.store.CheckpointFolder(source), beside)
}

// isAbout tells whether the files on disk are still those that the pre-flight was to be about. Of files that changed meanwhile nobody can
// say which the kubelet read; what it told must not be taken for theirs.
func (l *loop) isAbout(do decide.Prove) bool {
	now, err := l.lookLocal()
	return err == nil && now.Kubelet == do.Kubelet && (do.Version != nil || now.Local == do.Local)
}

// notAbout is what a refusal is worth that can be of files which are not those on disk any more: nothing, and the kubelet is asked again.
func notAbout(refusal kubelet.Verdict) kubelet.Verdict {
	return kubelet.Verdict{Outcome: config.Unknown, Unanswered: true, NoMorePreflight: refusal.NoMorePreflight,
		Words: "no verdict of the pre-flight: the local files or the kubelet binary changed while the kubelet was asked, and then it said: " + refusal.Words}
}

// resolverWarning compares the resolver with that of the node's own configuration, and with that of what runs.
func (l *loop) resolverWarning(verdict kubelet.Verdict) []string {
	runs, _ := l.effectives.running()
	if words := cmp.Or(verdict.Resolver, config.LoopingResolver(verdict.Effective, runs)); words != "" {
		return []string{words}
	}
	return nil
}

// gatesOf leaves out flags, which are no matter of a configuration: they are in the log.
func gatesOf(goingAway []string) []string {
	return slices.DeleteFunc(slices.Clone(goingAway), func(words string) bool { return !strings.HasPrefix(words, "featureGates.") })
}
