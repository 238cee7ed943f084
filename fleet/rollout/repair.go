package rollout

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Refs returns the layers that the pool names.
func (p *Pool) Refs() []Ref {
	var refs []Ref
	for i := range p.layers {
		if !p.layers[i].inline && p.layers[i].ref.Name != "" {
			refs = append(refs, p.layers[i].ref)
		}
	}
	return refs
}

// IsVariantName reports whether a ConfigMap has the name of a variant: pool-POOL-HASH. That does not prove who
// made it.
func IsVariantName(name string) bool {
	pool, is := strings.CutPrefix(name, variantPrefix)
	i := strings.LastIndexByte(pool, '-')
	return is && i > 0 && isHash(pool[i+1:])
}

// IsVariantOf reports whether a ConfigMap has the name of a variant of this pool.
func IsVariantOf(pool, name string) bool {
	hash, is := strings.CutPrefix(name, variantPrefix+pool+"-")
	return is && isHash(hash)
}

// IsRevisionOf reports whether a ControllerRevision has the name of a revision of this pool.
func IsRevisionOf(pool, name string) bool {
	hash, is := strings.CutPrefix(name, pool+"-")
	return is && isHash(hash)
}

// isHash reports whether a text has the form of shortHash. Names from other tools also end with ten characters:
// those of kubectl and kustomize mostly contain letters that are not hex digits, and users choose words such as
// "production".
func isHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "0123456789abcdef") == ""
}

// Named returns the variants that are assigned to nodes, by the names of their ConfigMaps.
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

// Repair returns the variants that are assigned to nodes, that are deleted or changed, and that a stored revision
// can render again. Otherwise a node that comes back without its checkpoints would find nothing.
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

// repair renders the wanted variants of the existing nodes, and removes them from wanted.
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
