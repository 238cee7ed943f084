package kubeletconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Traps says, in at most 10 short lines, where layers do something else than people think who know the drop-in files
// of --config-dir: a list replaces one, and the kubelet fills defaults in behind the layers. base is what they are
// applied to; nil: unknown.
func (l Layers) Traps(base map[string]any) []string {
	var found []string
	tree, said := map[string]any{}, map[string]string{} // which layer said a list
	MergePatch(tree, base)
	for _, layer := range l.Layers {
		patch := flat(layer.Patch, true)
		for _, path := range slices.Sorted(maps.Keys(patch)) {
			list, is := patch[path].([]any)
			if !is || list == nil {
				continue
			}
			name := strings.ReplaceAll(path, betweenSteps, ".")
			before, _ := valueAt(tree, strings.Split(path, betweenSteps))
			over, isList := before.([]any)
			switch {
			case isList && len(over) > 0 && said[path] != "":
				found = append(found, fmt.Sprintf("layer %s: the list %s replaces that of layer %s, it is not added", layer.Name, name, said[path]))
			case isList && len(over) > 0:
				found = append(found, fmt.Sprintf("layer %s: the list %s replaces that of the node's own file, it is not added", layer.Name, name))
			case base == nil && l.Base == BaseLocal:
				found = append(found, fmt.Sprintf("layer %s: the list %s replaces one of the node's own file, it is not added", layer.Name, name))
			}
			said[path] = layer.Name
		}
		MergePatch(tree, layer.Patch)
	}
	if tree["mergeDefaultEvictionSettings"] == true {
		return atMost(found)
	}
	for _, field := range []string{"evictionHard", "evictionSoft"} {
		_, own := base[field].(map[string]any)
		for _, layer := range slices.Backward(l.Layers) {
			if _, is := layer.Patch[field].(map[string]any); is && !own {
				found = append(found, fmt.Sprintf("layer %s: with %s, thresholds that neither the layers nor the node's own file name are off, the kubelet's defaults among them; "+
					"mergeDefaultEvictionSettings: true keeps those (since kubelet 1.33)", layer.Name, field))
				break
			}
		}
	}
	return atMost(found)
}

// TrapsOf are the [Layers.Traps] of payload[key] over this base; none where it is a whole file, or there is no such base.
func TrapsOf(payload map[string]string, key string, base func() (Base, error)) []string {
	layers, err := ReadLayers([]byte(payload[key]))
	if err != nil {
		return nil
	}
	under := map[string]any{}
	if layers.Base == BaseLocal {
		read, err := base()
		if err != nil {
			return nil
		}
		if under, err = read.tree(); err != nil {
			return nil
		}
	}
	return layers.Traps(under)
}
