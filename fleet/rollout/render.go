package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// target is the revision that a pool is at, or on its way to.
type target struct {
	// There may be none: the spec has never been valid.
	there    bool
	revision *Revision // nil: the nodes' own configuration
	name     v1alpha1.RevisionName
	attempt  int64
	retry    Retry
	// completed: it was once, so that no waves and no canary are needed to go there in the cohorts that have proven it; stable: it is what new nodes get.
	completed, stable bool
	stopped           *v1alpha1.Stop
}

// localHash stands for the nodes' own configuration where a hash is asked for.
const localHash = "local"

func targetHash(name v1alpha1.RevisionName) string {
	if name.Local {
		return localHash
	}
	return name.Hash
}

// stableHash is what the nodes had before anything else: as long as nothing has been completed, their own configuration.
func (p *pool) stableHash() string {
	if p.status.Stable == nil {
		return localHash
	}
	return targetHash(*p.status.Stable)
}

// localName is that of the nodes' own configuration.
func localName() v1alpha1.RevisionName { return v1alpha1.RevisionName{Local: true} }

// text names the revision and the attempt, for people.
func (t *target) text() string { return fmt.Sprintf("%s, attempt %d", t.name.Text(), t.attempt) }

// render makes a revision of the layers, finds the one that is pinned, or stays at the last target where neither can be done.
func (d *decision) render(p *pool) {
	p.status = p.Status // lists are replaced, but for these two
	p.status.Revisions, p.status.Conditions = slices.Clone(p.Status.Revisions), slices.Clone(p.Status.Conditions)
	p.readProofs()
	d.findStable(p)
	revision, err := d.wanted(p)
	if err != nil {
		p.invalid = err.Error()
	}
	if revision != nil && p.kept(func(k *Revision) bool { return k.Hash == revision.Hash }) == nil {
		p.refused = d.w.RefusedRevisions[revision.ObjectName()]
		p.unmade = p.refused != "" && (p.Status.Target == nil || p.Status.Target.Hash != revision.Hash)
	}
	switch {
	case p.invalid == "" && p.missing == "" && p.unknown == "" && !p.unmade:
		p.aim(revision)
	case p.Status.Target != nil:
		p.stay()
	}
	p.readFailures()
	if s := p.status.Stable; s != nil && !s.Local {
		p.stable = p.kept(func(r *Revision) bool { return r.Hash == s.Hash })
		if t := p.target.revision; p.stable == nil && t != nil && t.Hash == s.Hash {
			p.stable = t
		}
	}
	if p.unmade && d.w.Synced {
		d.plan.Revisions = append(d.plan.Revisions, *revision)
	}
	if r := p.target.revision; r != nil && d.w.Synced && p.kept(func(k *Revision) bool { return k.Hash == r.Hash }) == nil {
		d.plan.Revisions = append(d.plan.Revisions, *r)
	}
}

// wanted is the revision that the spec asks for; nil is the nodes' own configuration.
func (d *decision) wanted(p *pool) (*Revision, error) {
	if p.fault != "" {
		return nil, errors.New(p.fault)
	}
	if pin := p.Spec.Rollout.Pin; pin != nil {
		if pin.Local {
			return nil, nil
		}
		if revision := p.kept(func(r *Revision) bool { return r.Number == pin.Revision }); revision != nil {
			return revision, nil
		}
		return nil, fmt.Errorf("spec.rollout.pin: there is no revision %d", pin.Revision)
	}
	if p.layerFault != "" { // who goes back need not first repair what is left behind
		return nil, errors.New(p.layerFault)
	}
	return d.compose(p)
}

// compose makes a revision of the layers as they are now.
func (d *decision) compose(p *pool) (*Revision, error) {
	r := Revision{Pool: p.Name, Base: p.Spec.Base, Cause: p.Cause, Layers: make([]RevisionLayer, 0, len(p.layers))}
	if r.Base == "" {
		r.Base = v1alpha1.BaseLocal
	}
	for i := range p.layers {
		layer := &p.layers[i]
		from := RevisionLayer{Name: layer.name, From: "KubeletPool " + p.Name, NodeSelector: layer.selector.text, selector: layer.selector}
		patch, unknown := layer.patch, layer.unknown
		if !layer.inline {
			known, is := d.w.Layers[layer.ref]
			switch {
			case !is:
				p.unknown = layer.ref.String()
				return nil, nil
			case known.Missing:
				p.missing = layer.ref.String()
				return nil, nil
			}
			var err error
			if patch, err = layer.read(known); err != nil {
				return nil, err
			}
			unknown = known.Unknown
			from.From, from.ResourceVersion = Namespace+"/"+layer.ref.Name, known.ResourceVersion
		}
		if unknown != "" && p.ignored == "" {
			p.ignored = fmt.Sprintf("; no kubelet knows %s of layer %s", unknown, layer.name)
		}
		from.Patch = json.RawMessage(patch)
		r.Layers = append(r.Layers, from)
	}
	r.Hash = revisionHash(r.Base, r.Layers)
	r.Number = p.number(r.Hash)
	return &r, r.checkSize()
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

// number is that of the revision with the same content, or the next one.
func (p *pool) number(hash string) int64 {
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

// kept finds a revision that is what its name says.
func (p *pool) kept(is func(*Revision) bool) *Revision {
	for i := range p.Revisions {
		if r := &p.Revisions[i]; !r.Tampered && is(r) {
			return r
		}
	}
	return nil
}

// aim makes a revision the target. The attempt never falls: else a stop could be undone by it, or a verdict missed.
func (p *pool) aim(revision *Revision) {
	t := target{there: true, revision: revision, name: localName(), attempt: 1}
	if revision != nil {
		t.name = v1alpha1.RevisionName{Revision: revision.Number, Hash: revision.Hash}
	}
	if old := p.Status.Target; old != nil {
		t.attempt = max(t.attempt, old.Attempt)
	}
	p.hear(&t)
	p.setTarget(t)
}

// retryLimit is how many words are remembered.
const retryLimit = 16

// hear takes spec.rollout.retry. A word that was never heard is one act: it raises the attempt of this target, so that it is tried again, and with
// it the stops of other revisions, so that these stay. Before there is a target it has nothing to raise.
func (p *pool) hear(t *target) {
	word := p.Spec.Rollout.Retry
	if word == "" {
		return
	}
	known := slices.Contains(p.Status.Retries, word)
	heard := append([]string{word}, without(p.Status.Retries, word)...) // one that is said again and again is not forgotten
	p.status.Retries = heard[:min(len(heard), retryLimit)]
	if known || p.Status.Target == nil {
		return
	}
	p.status.Stops = slices.Clone(p.Status.Stops)
	for i := range p.status.Stops {
		if stop := &p.status.Stops[i]; stop.Hash != targetHash(t.name) && stop.Attempt >= t.attempt {
			stop.Attempt = t.attempt + 1
		}
	}
	for i := range p.status.Revisions {
		r := &p.status.Revisions[i]
		if r.Hash == targetHash(t.name) {
			continue
		}
		r.FailedIn = slices.Clone(r.FailedIn)
		for j := range r.FailedIn {
			if f := &r.FailedIn[j]; f.Attempt >= t.attempt {
				f.Attempt = t.attempt + 1
			}
		}
	}
	t.attempt++
}

func without(words []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == word })
}

// stay keeps the target that the status names.
func (p *pool) stay() {
	old := *p.Status.Target
	t := target{name: old.RevisionName, attempt: old.Attempt}
	if !old.Local {
		t.revision = p.kept(func(r *Revision) bool { return r.Hash == old.Hash })
	}
	t.there = old.Local || t.revision != nil
	p.setTarget(t)
}

func (p *pool) setTarget(t target) {
	hash := targetHash(t.name)
	t.retry = Retry{p.Name, hash, t.attempt}
	t.stable = p.stableHash() == hash
	t.completed = p.wasCompleted(hash)
	for i := range p.status.Stops {
		if stop := &p.status.Stops[i]; stop.Hash == hash && t.attempt <= stop.Attempt {
			t.stopped = stop
		}
	}
	p.target = t
}

// gaveUp: what the node has was never completed. Of a revision that the status does not name any more the node itself knows it.
func (p *pool) gaveUp(n *Node) bool {
	hash := n.Retry.Hash
	switch {
	case p.wasCompleted(hash):
		return false
	case slices.ContainsFunc(p.status.Revisions, func(r v1alpha1.RevisionStatus) bool { return r.Hash == hash }),
		slices.ContainsFunc(p.status.Stops, func(s v1alpha1.Stop) bool { return s.Hash == hash }):
		return true
	}
	return !n.hasProven()
}

// wasCompleted: the nodes' own configuration always was.
func (p *pool) wasCompleted(hash string) bool {
	if hash == localHash || p.status.Stable != nil && targetHash(*p.status.Stable) == hash {
		return true
	}
	for i := range p.status.Revisions {
		if r := &p.status.Revisions[i]; r.Hash == hash && r.Result == v1alpha1.ResultCompleted {
			return true
		}
	}
	return false
}
