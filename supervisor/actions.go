//go:build linux

package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// Names and kinds of our documents below STATE_DIR/meta.
const (
	trialDocument     = "trial"
	rejectedDocument  = "rejected"
	preflightDocument = "preflight"
)

type (
	// TrialFile is meta/trial.
	TrialFile struct {
		decide.Account
		GoodBase string `json:"lastKnownGoodBase,omitempty"` // the Base of lastKnownGood, which its pointer has no place for
	}
	rejections struct {
		Rejections []decide.Rejection `json:"rejections"`
	}
	proofs struct {
		Proofs []decide.Proof `json:"proofs"`
	}
)

// errNoStore is why nothing can be saved when the state folder could not be opened. It is not opened later: what it holds would be
// overwritten by what was done without it.
var errNoStore = errors.New("the state folder could not be opened at the start, which takes a restart of the supervisor to mend")

// boot reads what the disk holds. Nothing it meets keeps a kubelet from being started.
func (l *loop) boot() decide.Booted {
	var booted decide.Booted
	var troubles []string
	note := func(err error) {
		if err != nil {
			troubles = append(troubles, err.Error())
			l.Logger.Warn("state could not be read: " + err.Error())
		}
	}
	changed, err := l.lookLocal()
	note(err)
	booted.Kubelet, booted.Local = changed.Kubelet, changed.Local
	booted.LastChange, booted.Said = l.recordBefore()
	booted.BootID, booted.Cluster, booted.Waited = kubelet.BootID(), l.clusterKeys(), l.foundWaiting
	if l.store == nil {
		booted.Useless = l.unusable.Error()
	} else {
		l.load(&booted.Disk, note)
	}
	booted.Warning = strings.Join(troubles, "; ")
	return booted
}

func (l *loop) load(d *decide.Durable, note func(error)) {
	var trial TrialFile
	note(l.store.LoadDocument(trialDocument, "Trial", &trial))
	d.Account = trial.Account
	var r rejections
	note(l.store.LoadDocument(rejectedDocument, "RejectionList", &r))
	var p proofs
	note(l.store.LoadDocument(preflightDocument, "PreflightList", &p))
	d.Rejected, d.Proofs = r.Rejections, p.Proofs
	d.Assigned = l.loadVersion(store.Assigned, "", note)
	d.LastKnownGood = l.loadVersion(store.LastKnownGood, trial.GoodBase, note)
}

// ReadTrial reads meta/trial of a supervisor that may be at work.
func ReadTrial(reader *store.Reader) (trial TrialFile, err error) {
	err = reader.Document(trialDocument, "Trial", &trial)
	return trial, err
}

// loadVersion reads a pointer. Layers lie over the node's own file as it is now, or over the copy of it with the given digest.
func (l *loop) loadVersion(pointer store.Pointer, base string, note func(error)) *decide.Version {
	source, err := l.store.LoadSource(pointer)
	note(err)
	if source == nil {
		return nil
	}
	v := &decide.Version{Source: *source, Base: base}
	composed, err := l.compose(*v)
	var fault *config.BaseError
	switch {
	case err == nil:
		v.Content, v.Base = composed.Content(), composed.Base
		l.keepBase(*v)
	case errors.As(err, &fault): // no fault of the state
		v.Base = unusableBase
	default:
		note(err)
	}
	return v
}

// checkpoint reads a payload. A disk that hangs costs a configuration, and no kubelet: nobody waits for it longer than for a write.
func (l *loop) checkpoint(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
	return l.saves.read(func() (map[string]string, error) { return l.readPayload(source) })
}

// save writes what changed. lastKnownGood goes before assigned, so that a reset that is cut off leaves upstream's order (store.Reset).
func (l *loop) save(d decide.Durable) error {
	if l.store == nil {
		return l.unusable
	}
	for _, write := range []func() error{
		func() error { return l.store.SaveSource(store.LastKnownGood, sourceOf(d.LastKnownGood)) },
		func() error { return l.store.SaveSource(store.Assigned, sourceOf(d.Assigned)) },
		func() error {
			return l.store.SaveDocument(trialDocument, "Trial", TrialFile{Account: d.Account, GoodBase: baseOf(d.LastKnownGood)})
		},
		func() error {
			return l.store.SaveDocument(rejectedDocument, "RejectionList", rejections{Rejections: d.Rejected})
		},
		func() error {
			return l.store.SaveDocument(preflightDocument, "PreflightList", proofs{Proofs: d.Proofs})
		},
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// collect removes what a save has left over.
func (l *loop) collect(d decide.Durable, keep []decide.Version) {
	l.keeper.collect(l.store, keep)
	l.collectAsides(d.Asides)
}

func sourceOf(v *decide.Version) *corev1.ConfigMapNodeConfigSource {
	if v == nil {
		return nil
	}
	return &v.Source
}

func baseOf(v *decide.Version) string {
	if v == nil {
		return ""
	}
	return v.Base
}

// versionsInUse lists those whose checkpoints must stay.
func (l *loop) versionsInUse(d decide.Durable) []decide.Version {
	versions := []*decide.Version{d.Assigned, d.LastKnownGood, d.Active, l.state.Child.Version, l.state.Child.From, l.state.Today.Version}
	for _, a := range []*decide.Assigned{l.state.Pending, l.state.Edit} {
		if a != nil {
			versions = append(versions, &a.Version)
		}
	}
	var keep []decide.Version
	for _, v := range versions {
		if v != nil {
			keep = append(keep, *v)
		}
	}
	return keep
}

// keeper lets checkpoints be written and collected by different goroutines: what was just written, and is not yet known to the loop,
// is kept.
type keeper struct {
	mu     sync.Mutex
	newest []decide.Version
}

func (k *keeper) checkpoint(s *store.Store, source corev1.ConfigMapNodeConfigSource, payload map[string]string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = []decide.Version{{Source: source}}
	return s.SaveCheckpoint(source, payload)
}

// base keeps a copy of the node's own file beside a checkpoint that is there.
func (k *keeper) base(s *store.Store, source corev1.ConfigMapNodeConfigSource, base config.Base) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = append(k.newest[max(0, len(k.newest)-1):], decide.Version{Source: source, Base: base.Digest})
	return s.SaveBase(source, base.Digest, base.Document)
}

// collect is best effort: what it leaves is collected the next time.
func (k *keeper) collect(s *store.Store, keep []decide.Version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var sources []corev1.ConfigMapNodeConfigSource
	var bases []string
	for _, v := range slices.Concat(keep, k.newest) {
		sources = append(sources, v.Source)
		if v.Base != "" {
			bases = append(bases, v.Base)
		}
	}
	_ = s.Collect(sources, bases...)
}

// render writes the effective file of v and returns its path; empty for local, whose command line stays as it is.
func (l *loop) render(v *decide.Version, path string) (string, error) {
	if v == nil {
		return "", nil
	}
	if l.store == nil {
		return "", l.unusable
	}
	composed, err := l.compose(*v)
	if err != nil {
		select {
		case l.rewrite <- struct{}{}:
		default: // asked for already
		}
		return "", err
	}
	data, err := l.renderComposed(v.Source, composed)
	if err != nil {
		return "", err
	}
	path = filepath.Join(l.RunDir, path)
	return path, replaceRunFile(path, data)
}

// prove carries out a pre-flight, with its control.
func (l *loop) prove(ctx context.Context, do decide.Prove) decide.Proved {
	proved, _ := l.judge(ctx, do)
	proved.Nonce = rand.Text()
	return proved
}

// judge is prove, with all that the kubelet said.
func (l *loop) judge(ctx context.Context, do decide.Prove) (proved decide.Proved, verdict kubelet.Verdict) {
	proved = decide.Proved{Proof: decide.Proof{Content: decide.ContentOr(do.Version, do.Local), Kubelet: do.Kubelet}}
	l.makeRunDir()
	candidate, err := l.render(do.Version, l.ownFile("candidate"))
	defer removeOwnFile(candidate)
	var load *config.LoadError
	if errors.As(err, &load) {
		proved.Outcome, proved.Load, proved.Words = config.Refused, true, load.Words
		return proved, verdict
	}
	if err != nil {
		proved.Outcome, proved.Words = config.Environment, err.Error()
		return proved, verdict
	}
	control := l.control(do)
	if control != nil {
		defer removeOwnFile(control.File)
	}
	asked := *l.preflight
	asked.Timeout = kubelet.PreflightTimeout(do.Tries)
	verdict = asked.Check(ctx, kubelet.Candidate{File: candidate}, control)
	if ctx.Err() != nil {
		return decide.Proved{}, kubelet.Verdict{} // abandoned: it says nothing
	}
	if verdict.Outcome == config.Refused && !l.isAbout(do) {
		verdict = notAbout(verdict)
	}
	take(&proved, verdict)
	l.explain(&proved, do, verdict)
	if proved.Outcome == config.Refused && do.Version != nil {
		proved.Layers = len(l.layersOf(do.Version.Source))
	}
	return proved, verdict
}

// take puts a verdict into the words of the core.
func take(proved *decide.Proved, verdict kubelet.Verdict) {
	proved.Outcome, proved.Load, proved.Words = verdict.Outcome, verdict.Load, verdict.Words
	proved.NoMorePreflight, proved.Unanswered, proved.NoRoom = verdict.NoMorePreflight, verdict.Unanswered, verdict.NoRoom
}

// ownFile names a file of RUN_DIR for one pre-flight. Others may be under way with other configurations: one that was given up, and that of a
// forecast, which asks what runs. A verdict about the file of another would be a lie.
func (l *loop) ownFile(name string) string {
	return fmt.Sprintf("%s/%s-%d.yaml", preflightFolder, name, l.preflights.Add(1))
}

// removeOwnFile leaves nothing of a configuration behind. One that stays is removed at the next start.
func removeOwnFile(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}

func (l *loop) control(do decide.Prove) *kubelet.Candidate {
	if do.Alone {
		return nil
	}
	file, err := l.render(do.Control, l.ownFile("control"))
	if err != nil {
		return &kubelet.Candidate{} // the local command line is always there
	}
	return &kubelet.Candidate{File: file}
}
