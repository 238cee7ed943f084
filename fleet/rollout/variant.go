package rollout

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// variants has the variants of one revision that were needed so far, by set of layers. It lives as long as one
// decision.
type variants struct {
	revision *Revision
	of       map[uint32]variant
}

// variant is the assignment of a set of layers, and its name in a cohort.
type variant struct{ source, layers string }

func newVariants(r *Revision) *variants { return &variants{r, map[uint32]variant{}} }

// variantFor returns the variant of a node with these labels. Without a layer it is the node's own configuration,
// because an envelope has at least one layer.
func (v *variants) variantFor(set labels.Set) (variant, uint32) {
	var mask uint32
	for i := range v.revision.Layers {
		if v.revision.Layers[i].selector.matches.Matches(set) {
			mask |= 1 << i
		}
	}
	known, is := v.of[mask]
	if !is {
		known = v.compose(mask)
		v.of[mask] = known
	}
	return known, mask
}

func (v *variants) sourceFor(n *Node) string {
	of, _ := v.variantFor(labels.Set(n.Labels))
	return of.source
}

func (v *variants) compose(mask uint32) variant {
	if mask == 0 {
		return variant{nodev1.Local, nodev1.Local}
	}
	var names []string
	var patches []json.RawMessage
	for i := range v.revision.Layers {
		if mask&(1<<i) != 0 {
			names, patches = append(names, v.revision.Layers[i].Name), append(patches, v.revision.Layers[i].Patch)
		}
	}
	name := variantName(v.revision.Pool, v.revision.Base, patches)
	return variant{sourceOf(name), strings.Join(names, "+")}
}

// object returns the ConfigMap of a variant.
func (v *variants) object(mask uint32) (Variant, error) {
	e := envelope{APIVersion: envelopeVersion, Kind: envelopeKind, Base: v.revision.Base}
	var patches []json.RawMessage
	for i := range v.revision.Layers {
		if layer := &v.revision.Layers[i]; mask&(1<<i) != 0 {
			e.Layers = append(e.Layers, envelopeLayer{layer.Name, layer.From, layer.Patch})
			patches = append(patches, layer.Patch)
		}
	}
	payload, err := canonical(e)
	if err != nil {
		return Variant{}, err
	}
	return Variant{v.revision.Pool, variantName(v.revision.Pool, v.revision.Base, patches), VariantKey, payload}, nil
}

// neededVariants has the variants to make, each once.
type neededVariants []Variant

// need adds the variant that a source names.
func (v *neededVariants) need(source string, of *Revision, mask uint32) {
	if v.has(variantOf(source)) {
		return
	}
	if made, err := newVariants(of).object(mask); err == nil {
		*v = append(*v, made)
	}
}

func (v *neededVariants) add(all ...Variant) {
	for _, one := range all {
		if !v.has(one.Name) {
			*v = append(*v, one)
		}
	}
}

func (v *neededVariants) has(name string) bool {
	return slices.ContainsFunc(*v, func(one Variant) bool { return one.Name == name })
}

func parseSelector(text string) (nodeSelector, error) {
	if text == "" {
		return nodeSelector{matches: labels.Everything()}, nil
	}
	matches, err := labels.Parse(text)
	if err != nil {
		return nodeSelector{matches: labels.Nothing()}, err
	}
	return nodeSelector{text, matches}, nil
}
