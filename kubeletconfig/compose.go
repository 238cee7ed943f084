package kubeletconfig

import (
	"encoding/json"
	"maps"
	"slices"
)

// Composed is a payload whose configuration is a whole file, laid together from layers where it was layers.
type Composed struct {
	Payload map[string]string
	// Base is the Digest of the [Base] that the layers lie over; empty = nothing of the node is in it.
	Base string

	key   string
	taken []string // the feature gates of the node's own file that the layers took away
}

// Content is what [Content] says of it. A configuration of layers and a whole file with the same result are the same, but where a gate was
// taken away, which a whole file would get from the node's own ([Render]).
func (c Composed) Content() string {
	content := Content(c.Payload, c.key)
	if len(c.taken) == 0 {
		return content
	}
	digest := newDigest()
	digest.add(content)
	digest.add(c.taken...)
	return digest.String()
}

// Compose lays the layers of payload[key] over the base. A whole file stays as it is, and so does what does not decode, or is no good
// envelope: [Render] says what is wrong. The error is a *[BaseError].
//
// Layers are merged one after the other onto the tree (RFC 7386), never with each other first: a null would be lost. Relative paths of the
// base are absolute in the result, those of layers are against the payload's own folder.
func Compose(payload map[string]string, key string, base func() (Base, error)) (Composed, error) {
	return compose(payload, key, -1, base)
}

// ComposeWithout leaves out the layer with the given index, to find out whether it is to blame.
func ComposeWithout(payload map[string]string, key string, layer int, base func() (Base, error)) (Composed, error) {
	return compose(payload, key, layer, base)
}

func compose(payload map[string]string, key string, without int, base func() (Base, error)) (Composed, error) {
	whole := Composed{Payload: payload, key: key}
	document := []byte(payload[key])
	tree, err := Decode(document)
	if err != nil || !AreLayers(tree) {
		return whole, nil
	}
	layers, err := readLayers(tree, document)
	if err != nil {
		return whole, nil
	}
	if without >= 0 {
		layers.Layers = slices.Delete(layers.Layers, without, without+1)
	}
	merged, over, err := layers.merge(base)
	if err != nil {
		return Composed{}, err
	}
	if checkSize(merged) != nil {
		return whole, nil
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return whole, nil
	}
	composed := Composed{Payload: maps.Clone(payload), Base: over.Digest, key: key, taken: layers.gatesTaken(over, merged)}
	composed.Payload[key] = string(text)
	return composed, nil
}

// Render is [Render] for a kubelet with this command line. What lies over the node's own file has its feature gates already.
func (c Composed) Render(folder string, argv []string) ([]byte, error) {
	if c.Base != "" {
		return Render(c.Payload, c.key, folder, nil)
	}
	return Render(c.Payload, c.key, folder, LocalGates(argv))
}

// merge gives the whole tree, and what it was laid over.
func (l Layers) merge(base func() (Base, error)) (tree map[string]any, over Base, err error) {
	tree = map[string]any{"kind": kind, "apiVersion": apiVersion}
	if l.Base == BaseLocal {
		if over, err = base(); err != nil {
			return nil, over, err
		}
		if tree, err = over.tree(); err != nil {
			return nil, over, err
		}
	}
	for _, layer := range l.Layers {
		MergePatch(tree, layer.Patch)
	}
	return tree, over, nil
}

// gatesTaken lists the feature gates of the node's own file that the layers took away.
func (l Layers) gatesTaken(over Base, merged map[string]any) []string {
	if l.Base != BaseLocal {
		return nil
	}
	tree, _ := over.tree()
	left, _ := merged["featureGates"].(map[string]any)
	own, _ := tree["featureGates"].(map[string]any)
	var taken []string
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, is := left[name]; !is {
			taken = append(taken, name)
		}
	}
	return taken
}
