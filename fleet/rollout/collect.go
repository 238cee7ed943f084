package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Collect returns the revisions and variants of a pool that nothing needs: no Node names them, they are neither
// target, stable, pinned nor stopped, and they are not among the newest revisionHistoryLimit. variantNames are
// ConfigMaps that this controller can prove to have made. One that a pool has a layer from is kept anyway (rule
// 24). If a cache is not synced, or if the pool does not exist, everything is kept, because absence proves
// nothing.
func Collect(w World, name string, variantNames []string) (revisions, variantsToo []string) {
	i := slices.IndexFunc(w.Pools, func(p Pool) bool { return p.Name == name })
	if i < 0 || !w.Synced || w.Pools[i].Status.Target == nil {
		return nil, nil
	}
	p := &w.Pools[i]
	needed := p.neededRevisions()
	sources := namedByNodes(w.Nodes)
	byNumber := slices.Clone(p.Revisions)
	slices.SortFunc(byNumber, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(p.completion(a.Hash), p.completion(b.Hash)), cmp.Compare(b.Number, a.Number))
	})
	left := 10
	if l := p.Spec.RevisionHistoryLimit; l != nil {
		left = int(max(1, *l))
	}
	for i := range byNumber {
		r := &byNumber[i]
		ours := r.sourcesFor(w.Nodes)
		switch {
		case r.Tampered || needed[r.Hash] || slices.ContainsFunc(ours, func(source string) bool { return sources[source] }):
		case left > 0:
			left--
		default:
			revisions = append(revisions, r.ObjectName())
			continue
		}
		for _, source := range ours {
			sources[source] = true
		}
	}
	layers := w.layerObjects()
	for _, variant := range variantNames {
		if IsVariantOf(name, variant) && !sources[sourceOf(variant)] && !layers[Namespace+"/"+variant] {
			variantsToo = append(variantsToo, variant)
		}
	}
	return revisions, variantsToo
}

// CollectGone returns the objects of a deleted pool that nothing needs: variants that no Node names and that no
// pool has a layer from, and all revisions, once no Node names a variant. Until then, a new pool of that name may
// find the revisions that its nodes run. The arguments are objects that this controller can prove to have made.
func CollectGone(w World, name string, revisionNames, variantNames []string) (revisions, variants []string) {
	if !w.Synced || slices.ContainsFunc(w.Pools, func(p Pool) bool { return p.Name == name }) {
		return nil, nil
	}
	named, layers := namedByNodes(w.Nodes), w.layerObjects()
	runs := false // includes deleted variants, which can be made again from their revision
	for source := range named {
		runs = runs || IsVariantOf(name, variantOf(source))
	}
	for _, variant := range variantNames {
		switch {
		case !IsVariantOf(name, variant):
		case named[sourceOf(variant)]:
		case !layers[Namespace+"/"+variant]:
			variants = append(variants, variant)
		}
	}
	for _, revision := range revisionNames {
		if IsRevisionOf(name, revision) && !runs {
			revisions = append(revisions, revision)
		}
	}
	return revisions, variants
}

// layerObjects returns the ConfigMaps that any pool has a layer from, or had in a stored revision, as
// NAMESPACE/NAME.
func (w *World) layerObjects() map[string]bool {
	objects := map[string]bool{}
	for i := range w.Pools {
		for _, ref := range w.Pools[i].Refs() {
			objects[Namespace+"/"+ref.Name] = true
		}
		for j := range w.Pools[i].Revisions {
			for _, layer := range w.Pools[i].Revisions[j].Layers {
				objects[layer.From] = true
			}
		}
	}
	return objects
}

func sourceOf(variant string) string {
	return nodev1.Assignment{Namespace: Namespace, Name: variant, Key: VariantKey}.String()
}

// completion returns how many revisions were completed after this one. Revisions that were never completed come
// last.
func (p *Pool) completion(hash string) int {
	at := slices.IndexFunc(p.Status.Completions, func(c v1alpha1.Completion) bool { return c.Hash == hash })
	if at < 0 {
		return completionMax
	}
	return at
}

func (p *Pool) neededRevisions() map[string]bool {
	needed := map[string]bool{p.Status.Target.Hash: true}
	if r := p.Before(); r != nil {
		needed[r.Hash] = true
	}
	if s := p.Status.Stable; s != nil {
		needed[s.Hash] = true
	}
	for _, stop := range p.Status.Stops {
		needed[stop.Hash] = true
	}
	if pin := p.Spec.Rollout.Pin; pin != nil {
		for i := range p.Revisions {
			if p.Revisions[i].Number == pin.Revision {
				needed[p.Revisions[i].Hash] = true
			}
		}
	}
	return needed
}

// namedByNodes returns the sources that any Node names, of any pool.
func namedByNodes(nodes []Node) map[string]bool {
	named := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		for _, source := range []string{n.Source, n.Mark.Assignment, n.Observed, n.Assigned, n.Active, n.Good} {
			named[source] = true
		}
	}
	delete(named, "")
	delete(named, nodev1.Local)
	return named
}

// sourcesFor returns the variants of a revision for the existing nodes.
func (r *Revision) sourcesFor(nodes []Node) []string {
	if r.Tampered {
		return nil
	}
	v := newVariants(r)
	for i := range nodes {
		v.variantFor(labels.Set(nodes[i].Labels))
	}
	var sources []string
	for _, variant := range v.of {
		sources = append(sources, variant.source)
	}
	return sources
}
