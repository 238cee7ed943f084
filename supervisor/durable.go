//go:build linux

package supervisor

import (
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
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
		core.Account
		GoodBase string `json:"lastKnownGoodBase,omitempty"` // the Base of lastKnownGood, which its pointer has no place for
	}
	rejections struct {
		Rejections []core.Rejection `json:"rejections"`
	}
	proofs struct {
		Proofs []core.Proof `json:"proofs"`
	}
)

// errNoStore is why nothing can be saved when the state folder could not be opened. It is not opened later: what it holds would be
// overwritten by what was done without it.
var errNoStore = errors.New("the state folder could not be opened at the start, and only a restart of the supervisor fixes that")

func (p *payloads) load(d *core.Durable, note func(error)) {
	var trial TrialFile
	note(p.store.LoadDocument(trialDocument, "Trial", &trial))
	d.Account = trial.Account
	var r rejections
	note(p.store.LoadDocument(rejectedDocument, "RejectionList", &r))
	var tested proofs
	note(p.store.LoadDocument(preflightDocument, "PreflightList", &tested))
	d.Rejected, d.Proofs = r.Rejections, tested.Proofs
	d.Assigned = p.loadVersion(store.Assigned, "", note)
	d.LastKnownGood = p.loadVersion(store.LastKnownGood, trial.GoodBase, note)
}

// ReadTrial reads meta/trial, also of a supervisor that is at work. It changes nothing.
func ReadTrial(reader *store.Reader) (trial TrialFile, err error) {
	err = reader.Document(trialDocument, "Trial", &trial)
	return trial, err
}

// loadVersion reads a pointer. Layers lie over the node's own file as it is now, or over the copy of it with the given digest.
func (p *payloads) loadVersion(pointer store.Pointer, base string, note func(error)) *core.Version {
	source, err := p.store.LoadSource(pointer)
	note(err)
	if source == nil {
		return nil
	}
	v := &core.Version{Source: *source, Base: base}
	composed, err := p.compose(*v)
	var fault *kubeletconfig.BaseError
	switch {
	case err == nil:
		v.Content, v.Base = composed.Content(), composed.Base
		p.keepBase(*v)
	case errors.As(err, &fault): // no fault of the state
		v.Base = unusableBase
	default:
		note(err)
	}
	return v
}

// save writes what changed. lastKnownGood is written before assigned, so that a reset that is cut off leaves upstream's order
// (store.Reset).
func (p *payloads) save(d core.Durable) error {
	if p.store == nil {
		return p.unusable
	}
	for _, write := range []func() error{
		func() error { return p.store.SaveSource(store.LastKnownGood, sourceOf(d.LastKnownGood)) },
		func() error { return p.store.SaveSource(store.Assigned, sourceOf(d.Assigned)) },
		func() error {
			return p.store.SaveDocument(trialDocument, "Trial", TrialFile{Account: d.Account, GoodBase: baseOf(d.LastKnownGood)})
		},
		func() error {
			return p.store.SaveDocument(rejectedDocument, "RejectionList", rejections{Rejections: d.Rejected})
		},
		func() error {
			return p.store.SaveDocument(preflightDocument, "PreflightList", proofs{Proofs: d.Proofs})
		},
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// collect removes what a save has left over.
func (p *payloads) collect(d core.Durable, keep []core.Version) {
	p.keeper.collect(p.store, keep)
	collectAsides(kubeletconfig.RootDir(p.Arguments), d.Asides)
}

func sourceOf(v *core.Version) *corev1.ConfigMapNodeConfigSource {
	if v == nil {
		return nil
	}
	return &v.Source
}

func baseOf(v *core.Version) string {
	if v == nil {
		return ""
	}
	return v.Base
}

// versionsInUse lists those whose checkpoints must stay.
func versionsInUse(s *core.State, d core.Durable) []core.Version {
	versions := []*core.Version{d.Assigned, d.LastKnownGood, d.Active, s.Child.Version, s.Child.From, s.Today.Version}
	for _, a := range []*core.Assigned{s.Pending, s.Edit} {
		if a != nil {
			versions = append(versions, &a.Version)
		}
	}
	var keep []core.Version
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
	newest []core.Version
}

func (k *keeper) checkpoint(s *store.Store, source corev1.ConfigMapNodeConfigSource, payload map[string]string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = []core.Version{{Source: source}}
	return s.SaveCheckpoint(source, payload)
}

// base keeps a copy of the node's own file with a checkpoint that is there.
func (k *keeper) base(s *store.Store, source corev1.ConfigMapNodeConfigSource, base kubeletconfig.Base) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = append(k.newest[max(0, len(k.newest)-1):], core.Version{Source: source, Base: base.Digest})
	return s.SaveBase(source, base.Digest, base.Document)
}

// collect is best effort: what it leaves is collected the next time.
func (k *keeper) collect(s *store.Store, keep []core.Version) {
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
