package rollout

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// target is the revision that a pool has, or is on its way to.
type target struct {
	// there is false if the spec has never been valid.
	there    bool
	revision *Revision // nil for the nodes' own configuration
	name     v1alpha1.RevisionName
	attempt  int64
	retry    Retry
	// completed means that it was completed once, so that cohorts which have proven it need no waves and no canary.
	// stable means that new nodes get it.
	completed, stable bool
	stopped           *v1alpha1.Stop
}

// localHash is used as the hash of the nodes' own configuration.
const localHash = "local"

func targetHash(name v1alpha1.RevisionName) string {
	if name.Local {
		return localHash
	}
	return name.Hash
}

// localName returns the name of the nodes' own configuration.
func localName() v1alpha1.RevisionName { return v1alpha1.RevisionName{Local: true} }

// text returns the revision and the attempt, for people.
func (t *target) text() string { return fmt.Sprintf("%s, attempt %d", t.name.Text(), t.attempt) }

// aim is what a pool wants, and its progress. render returns it.
type aim struct {
	*Pool
	membership
	record
	problems
	target target
	stable *Revision // nil if there is none, or if it is not stored
	begun  bool      // the rollout of this target begins now
	clock  Clock
	opened time.Time // when the open wave was opened
	// wasSoaking means that the wave was already proven at the previous turn.
	wasSoaking bool
	unkept     []Revision
}

// problems has the reasons why the spec cannot be carried out.
type problems struct {
	invalid string // why the spec cannot be read
	missing string // a layer that does not exist
	unknown string // a layer that is not known yet
	ignored string // fields of a layer that no kubelet knows
	refused string // why the API server refuses what is needed to go ahead
	unmade  bool   // the API server refuses the wanted revision, so it cannot become the target
}

// render returns the target of each pool, and its open wave.
func render(w *World, f *fleet) []aim {
	aims := make([]aim, len(f.pools))
	for i, p := range f.pools {
		aims[i] = aim{Pool: p, membership: f.owned[i], record: readRecord(p)}
		aims[i].findStable(w, f)
		aims[i].render(w)
		aims[i].openWave(w)
	}
	return aims
}

// render makes a revision from the layers or finds the pinned one. If neither is possible, it keeps the last
// target.
func (p *aim) render(w *World) {
	var revision *Revision
	revision, p.problems = p.wanted(w.Layers)
	if revision != nil && p.kept(revision.Hash) == nil {
		p.refused = w.RefusedRevisions[revision.ObjectName()]
		p.unmade = p.refused != "" && (p.Status.Target == nil || p.Status.Target.Hash != revision.Hash)
	}
	switch {
	case p.invalid == "" && p.missing == "" && p.unknown == "" && !p.unmade:
		p.aimAt(revision)
	case p.Status.Target != nil:
		p.stay()
	}
	p.readFailures(&p.target)
	p.readStable()
	if p.unmade {
		p.unkept = append(p.unkept, *revision)
	}
	if r := p.target.revision; r != nil && p.kept(r.Hash) == nil {
		p.unkept = append(p.unkept, *r)
	}
}

// readStable finds the stable revision that the status names.
func (p *aim) readStable() {
	s := p.status.Stable
	if s == nil || s.Local {
		return
	}
	p.stable = p.kept(s.Hash)
	if t := p.target.revision; p.stable == nil && t != nil && t.Hash == s.Hash {
		p.stable = t
	}
}

// wanted returns the revision that the spec asks for; nil means the nodes' own configuration, or none if there are
// problems.
func (p *Pool) wanted(layers map[Ref]Layer) (*Revision, problems) {
	if p.fault != "" {
		return nil, problems{invalid: p.fault}
	}
	if pin := p.Spec.Rollout.Pin; pin != nil {
		if pin.Local {
			return nil, problems{}
		}
		if revision := p.keptNumber(pin.Revision); revision != nil {
			return revision, problems{}
		}
		return nil, problems{invalid: fmt.Sprintf("spec.rollout.pin: there is no revision %d", pin.Revision)}
	}
	if p.layerFault != "" { // a pin does not need the layers
		return nil, problems{invalid: p.layerFault}
	}
	return p.compose(layers)
}

// compose makes a revision from the current layers.
func (p *Pool) compose(layers map[Ref]Layer) (*Revision, problems) {
	r, found := Revision{Pool: p.Name, Base: p.Spec.Base, Cause: p.Cause, Layers: make([]RevisionLayer, 0, len(p.layers))}, problems{}
	if r.Base == "" {
		r.Base = v1alpha1.BaseLocal
	}
	for i := range p.layers {
		layer := &p.layers[i]
		from := RevisionLayer{Name: layer.name, From: "KubeletPool " + p.Name, NodeSelector: layer.selector.text, selector: layer.selector}
		patch, unknown := layer.patch, layer.unknown
		if !layer.inline {
			known, is := layers[layer.ref]
			var err error
			switch patch, err = layer.read(known); {
			case !is:
				found.unknown = layer.ref.String()
				return nil, found
			case known.Missing:
				found.missing = layer.ref.String()
				return nil, found
			case err != nil:
				found.invalid = err.Error()
				return nil, found
			}
			unknown = known.Unknown
			from.From, from.ResourceVersion = Namespace+"/"+layer.ref.Name, known.ResourceVersion
		}
		if unknown != "" && found.ignored == "" {
			found.ignored = fmt.Sprintf("; no kubelet knows %s of layer %s", unknown, layer.name)
		}
		from.Patch = json.RawMessage(patch)
		r.Layers = append(r.Layers, from)
	}
	r.Hash = revisionHash(r.Base, r.Layers)
	r.Number = p.number(r.Hash)
	if err := r.checkSize(); err != nil {
		found.invalid = err.Error()
	}
	return &r, found
}

func (l *poolLayer) read(known Layer) (string, error) {
	if known.Fault != "" {
		return "", fmt.Errorf("spec.layers[%s]: ConfigMap %s: %s", l.name, l.ref, known.Fault)
	}
	if len(l.unset) == 0 {
		return known.Patch, nil
	}
	patch, err := readPatch([]byte(known.Patch), l.unset)
	if err != nil {
		return "", fmt.Errorf("spec.layers[%s]: %w", l.name, err)
	}
	return patch, nil
}

// number returns the number of the stored revision with the same content, or the next number.
func (p *Pool) number(hash string) int64 {
	next := int64(1)
	for i := range p.Revisions {
		if p.Revisions[i].Hash == hash && !p.Revisions[i].Tampered {
			return p.Revisions[i].Number
		}
		next = max(next, p.Revisions[i].Number+1)
	}
	for _, r := range p.Status.Revisions {
		if r.Hash == hash {
			return r.Revision
		}
		next = max(next, r.Revision+1)
	}
	return next
}

// aimAt makes a revision the target. The attempt never falls, because that could undo a stop, or hide a verdict.
func (p *aim) aimAt(revision *Revision) {
	t := target{there: true, revision: revision, name: localName(), attempt: 1}
	if revision != nil {
		t.name = v1alpha1.RevisionName{Revision: revision.Number, Hash: revision.Hash}
	}
	if old := p.Status.Target; old != nil {
		t.attempt = max(t.attempt, old.Attempt)
	}
	p.readRetry(p.Spec.Rollout.Retry, &t)
	p.setTarget(t)
}

// stay keeps the target that the status names.
func (p *aim) stay() {
	old := *p.Status.Target
	t := target{name: old.RevisionName, attempt: old.Attempt}
	if !old.Local {
		t.revision = p.kept(old.Hash)
	}
	t.there = old.Local || t.revision != nil
	p.setTarget(t)
}

func (p *aim) setTarget(t target) {
	hash := targetHash(t.name)
	t.retry = Retry{p.Name, hash, t.attempt}
	t.stable = p.stableHash() == hash
	t.completed = p.wasCompleted(hash)
	t.stopped = p.stopOf(hash, t.attempt)
	p.target = t
}
