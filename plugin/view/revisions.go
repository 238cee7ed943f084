package view

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// A Revision is one revision of a pool, as the controller stores it.
type Revision struct {
	rollout.Revision
	Made time.Time
}

// ReadRevisions reads the revisions of a pool, or of all pools, sorted by number.
func ReadRevisions(ctx context.Context, client kubernetes.Interface, pool string) ([]Revision, error) {
	selector := rollout.PoolLabel
	if pool != "" {
		selector += "=" + pool
	}
	list, err := client.AppsV1().ControllerRevisions(rollout.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of pools: %w", err)
	}
	var kept []Revision
	for i := range list.Items {
		object := &list.Items[i]
		read := rollout.ReadRevision(object.Labels[rollout.PoolLabel], object.Name, object.Data.Raw)
		if read.Tampered {
			read.Number = object.Revision
		}
		kept = append(kept, Revision{read, object.CreationTimestamp.Time})
	}
	slices.SortFunc(kept, func(a, b Revision) int { return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Number, b.Number)) })
	return kept, nil
}

// CoreRevisions returns revisions in the form of package rollout.
func CoreRevisions(kept []Revision) []rollout.Revision {
	var all []rollout.Revision
	for _, r := range kept {
		all = append(all, r.Revision)
	}
	return all
}

// patchLeaves returns the values that a layer sets, as a kubelet writes them, or nothing if it does not decode.
func patchLeaves(layer *rollout.RevisionLayer) map[string]document.Leaf {
	tree, err := kubeletconfig.Decode(layer.Patch)
	if err != nil {
		return nil
	}
	if normal, err := document.Normalize(tree); err == nil {
		tree = normal
	}
	return document.KeyedLeaves(tree)
}

// A LayerChange is a field that a layer sets differently in two revisions; a nil leaf is not set.
type LayerChange struct {
	Layer, Path string
	from, to    *document.Leaf
}

// String returns the change on one line.
func (c LayerChange) String() string {
	value := func(l *document.Leaf) string {
		if l.Value == nil {
			return "null"
		}
		return document.Show(c.Path, l.Value)
	}
	path := document.FieldName(c.Path)
	switch {
	case c.from == nil:
		return path + " " + value(c.to)
	case c.to == nil:
		return path + " " + value(c.from) + " → not set"
	}
	return path + " " + value(c.from) + " → " + value(c.to)
}

// Changes compares revisions, layer by layer and field by field; nil is the nodes' own configuration.
func Changes(from, to *rollout.Revision) (changes []LayerChange) {
	before, after := layersOf(from), layersOf(to)
	var names []string
	for _, r := range []*rollout.Revision{from, to} {
		for i := range layersIn(r) {
			if name := r.Layers[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		paths := map[string]bool{}
		for _, leaves := range []map[string]document.Leaf{before[name], after[name]} {
			for path := range leaves {
				paths[path] = true
			}
		}
		for _, path := range document.SortedKeys(paths) {
			c := LayerChange{Layer: name, Path: path}
			if one, is := before[name][path]; is {
				c.from = &one
			}
			if one, is := after[name][path]; is {
				c.to = &one
			}
			if c.from == nil || c.to == nil || !reflect.DeepEqual(c.from.Value, c.to.Value) {
				changes = append(changes, c)
			}
		}
	}
	return changes
}

func layersIn(r *rollout.Revision) []rollout.RevisionLayer {
	if r == nil {
		return nil
	}
	return r.Layers
}

func layersOf(r *rollout.Revision) map[string]map[string]document.Leaf {
	all := map[string]map[string]document.Leaf{}
	for i := range layersIn(r) {
		all[r.Layers[i].Name] = patchLeaves(&r.Layers[i])
	}
	return all
}

// OtherDifferences returns how revisions differ that set the same fields to the same values.
func OtherDifferences(from, to *rollout.Revision) string {
	var words []string
	if from.Base != to.Base {
		words = append(words, fmt.Sprintf("base %s → %s", from.Base, to.Base))
	}
	selectors := map[string]string{}
	var before, after []string
	for _, layer := range from.Layers {
		selectors[layer.Name], before = layer.NodeSelector, append(before, layer.Name)
	}
	for _, layer := range to.Layers {
		after = append(after, layer.Name)
		if selector, is := selectors[layer.Name]; is && selector != layer.NodeSelector {
			words = append(words, fmt.Sprintf("layer %s for other nodes", layer.Name))
		}
	}
	if !slices.Equal(before, after) && len(words) == 0 {
		words = append(words, "layers in another order, or by other names")
	}
	return strings.Join(words, ", ")
}

// ChangeText returns a short text of what a revision changes against another, with at most the given number of
// fields.
func ChangeText(from, to *rollout.Revision, most int) string {
	changes := Changes(from, to)
	if len(changes) == 0 && from != nil && to != nil {
		return OtherDifferences(from, to)
	}
	var words []string
	for i, c := range changes[:min(len(changes), most)] {
		text := c.String()
		if i+1 == min(len(changes), most) || changes[i+1].Layer != c.Layer {
			text += " in layer " + c.Layer
		}
		words = append(words, Shorten(text, 120))
	}
	if left := len(changes) - most; left > 0 {
		words = append(words, fmt.Sprintf("%d more", left))
	}
	return strings.Join(words, ", ")
}
