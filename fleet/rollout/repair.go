package rollout

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Refs are the layers that the pool names.
func (p *Pool) Refs() []Ref {
	var refs []Ref
	for i := range p.layers {
		if !p.layers[i].inline && p.layers[i].ref.Name != "" {
			refs = append(refs, p.layers[i].ref)
		}
	}
	return refs
}

// IsVariantName says whether a ConfigMap is named as a variant is: pool-POOL-HASH. That proves nothing of who made it.
func IsVariantName(name string) bool {
	pool, is := strings.CutPrefix(name, variantPrefix)
	i := strings.LastIndexByte(pool, '-')
	return is && i > 0 && isHash(pool[i+1:])
}

// IsVariantOf says whether a ConfigMap is named as a variant of this pool is.
func IsVariantOf(pool, name string) bool {
	hash, is := strings.CutPrefix(name, variantPrefix+pool+"-")
	return is && isHash(hash)
}

// IsRevisionOf says whether a ControllerRevision is named as a revision of this pool is.
func IsRevisionOf(pool, name string) bool {
	hash, is := strings.CutPrefix(name, pool+"-")
	return is && isHash(hash)
}

// isHash reports whether a text is written as shortHash writes one. Other tools end names with ten characters, too: kubectl and kustomize with letters that are
// mostly no hex digits, people with words such as "production".
func isHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "0123456789abcdef") == ""
}

// Named are the variants that nodes have been assigned, by the names of their ConfigMaps.
func Named(nodes []Node) []string {
	named, names := map[string]bool{}, []string{}
	for i := range nodes {
		n := &nodes[i]
		name, is := strings.CutPrefix(n.Source, Namespace+"/")
		name, isToo := strings.CutSuffix(name, "/"+VariantKey)
		if is && isToo && n.Mark.Records(n.Source) && !named[name] && IsVariantName(name) {
			named[name], names = true, append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Repair gives the variants that nodes have been assigned, that are not as they should be, and that a kept revision can be rendered to again. A
// node that comes back without its checkpoints would find nothing there.
func Repair(w World) []Variant {
	if len(w.Broken) == 0 {
		return nil
	}
	wanted := make(map[string]bool, len(w.Broken))
	for _, v := range w.Broken {
		wanted[v.Name] = true
	}
	var repaired []Variant
	for i := range w.Pools {
		for j := range w.Pools[i].Revisions {
			if r := &w.Pools[i].Revisions[j]; !r.Tampered {
				repaired = append(repaired, r.repair(w.Nodes, wanted)...)
			}
		}
	}
	return repaired
}

// repair renders what the nodes that there are would get, as far as it is wanted. What it has rendered is wanted no longer.
func (r *Revision) repair(nodes []Node, wanted map[string]bool) []Variant {
	var repaired []Variant
	v, seen := newVariants(r), map[uint32]bool{}
	for i := range nodes {
		_, mask := v.variantFor(labels.Set(nodes[i].Labels))
		if seen[mask] || mask == 0 {
			continue
		}
		seen[mask] = true
		if object, err := v.object(mask); err == nil && wanted[object.Name] {
			wanted[object.Name] = false
			repaired = append(repaired, object)
		}
	}
	return repaired
}
