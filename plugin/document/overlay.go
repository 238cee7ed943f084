package document

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

var noLabel = regexp.MustCompile(`[^a-z0-9]+`)

// FreeName returns a name for a new layer, from the name of its configuration.
func FreeName(of string, taken []kubeletconfig.Layer) string {
	name := strings.Trim(noLabel.ReplaceAllString(strings.ToLower(of), "-"), "-")
	name = strings.TrimRight(name[:min(len(name), 50)], "-")
	if name == "" {
		name = "layer"
	}
	free := name
	for i := 2; slices.ContainsFunc(taken, func(l kubeletconfig.Layer) bool { return l.Name == free }); i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// EncodeLayers returns the document of layers over each node's own file.
func EncodeLayers(layers []kubeletconfig.Layer) ([]byte, error) {
	if len(layers) > kubeletconfig.MaxLayers {
		return nil, fmt.Errorf("these would be %d layers, and %d are the most; put some together", len(layers), kubeletconfig.MaxLayers)
	}
	type layer struct {
		Name  string         `json:"name"`
		From  string         `json:"from,omitempty"`
		Patch map[string]any `json:"patch"`
	}
	var list []layer
	for _, one := range layers {
		list = append(list, layer(one))
	}
	text, err := yaml.Marshal(map[string]any{"base": kubeletconfig.BaseLocal, "layers": list})
	if err != nil {
		return nil, fmt.Errorf("writing the layers: %w", err)
	}
	return append([]byte("apiVersion: "+kubeletconfig.LayersAPIVersion+"\nkind: "+kubeletconfig.LayersKind+"\n"), text...), nil
}

// AddPatch adds a patch to layers. An earlier patch under the same name is extended instead.
func AddPatch(layers []kubeletconfig.Layer, name, node string, patch map[string]any) []kubeletconfig.Layer {
	layers = slices.Clone(layers)
	own := FreeName(name, nil)
	if last := len(layers) - 1; layers[last].Name == own {
		layers[last].Patch = joined(layers[last].Patch, patch)
		return layers
	}
	return append(layers, kubeletconfig.Layer{Name: FreeName(name, layers), From: "edit of " + node, Patch: patch})
}

// joined returns one patch that does what two do. The nulls of both stay.
func joined(first, second map[string]any) map[string]any {
	result := map[string]any{}
	for name, value := range first {
		result[name] = value
	}
	for name, value := range second {
		below, isTree := value.(map[string]any)
		was, wasTree := result[name].(map[string]any)
		if isTree && wasTree {
			value = joined(was, below)
		}
		result[name] = value
	}
	return result
}

// Patch applies a merge patch to a configuration, and encodes the result.
func Patch(document []byte, patch map[string]any) ([]byte, error) {
	tree, err := kubeletconfig.Decode(document)
	if err != nil {
		return nil, err
	}
	kubeletconfig.MergePatch(tree, patch)
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return text, nil
}

// Difference returns the patch that makes after of what runs. A field that was shown and is gone becomes null; a
// field that was not shown stays.
func Difference(runs, shown, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range after {
		below, isTree := value.(map[string]any)
		running, runsTree := runs[name].(map[string]any)
		was, _ := shown[name].(map[string]any)
		if isTree && runsTree {
			if inner := Difference(running, was, below); len(inner) > 0 {
				patch[name] = inner
			}
		} else if !reflect.DeepEqual(value, runs[name]) && !same(value, runs[name]) {
			patch[name] = value
		}
	}
	for name := range shown {
		if _, stays := after[name]; !stays {
			patch[name] = nil
		}
	}
	return patch
}
