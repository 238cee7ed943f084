package document

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Layered is a configuration of layers over each node's own file. Its values are written as in configz.
type Layered struct{ kubeletconfig.Layers }

// List returns the layers, the last of which wins; none for a whole file.
func (l *Layered) List() []kubeletconfig.Layer {
	if l == nil {
		return nil
	}
	return l.Layers.Layers
}

// readLayered reads layers over the node's own file. It returns nil for any other configuration.
func readLayered(text string) (*Layered, error) {
	tree, err := kubeletconfig.Decode([]byte(text))
	if err != nil || !kubeletconfig.AreLayers(tree) {
		return nil, nil
	}
	read, err := kubeletconfig.ReadLayers([]byte(text))
	if err != nil {
		return nil, err
	}
	for i, layer := range read.Layers {
		if read.Layers[i].Patch, err = Normalize(layer.Patch); err != nil {
			return nil, fmt.Errorf("has a fault in layer %s: %w", layer.Name, err)
		}
	}
	if read.Base != kubeletconfig.BaseLocal {
		return nil, nil // a whole file
	}
	return &Layered{read}, nil
}

// WithoutBase merges layers over an empty document instead of the node's own file.
func WithoutBase(payload map[string]string, key string) (map[string]string, error) {
	composed, err := kubeletconfig.Compose(payload, key, func() (kubeletconfig.Base, error) { return kubeletconfig.BaseOf(nil, []byte(Header)), nil })
	return composed.Payload, err
}

// Normalize returns a patch with the values as a kubelet writes them, and with its nulls. It fails for a value of
// the wrong type.
func Normalize(patch map[string]any) (map[string]any, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	var typed v1beta1.KubeletConfiguration
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &typed); err != nil {
		return nil, fmt.Errorf("%s%s; correct the field", faultyField(text), kubeletconfig.Quote(err.Error()))
	}
	normal, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	var written, normalised map[string]any
	if err := utiljson.Unmarshal(text, &written); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(normal, &normalised); err != nil {
		return nil, err
	}
	delete(written, "kind")
	delete(written, "apiVersion")
	taken := takeFrom(written, normalised)
	keepNulls(taken, written)
	return taken, nil
}

func keepNulls(into, written map[string]any) {
	for name, value := range written {
		below, isTree := value.(map[string]any)
		taken, is := into[name].(map[string]any)
		if value == nil {
			into[name] = nil
		} else if isTree && is {
			keepNulls(taken, below)
		}
	}
}

// laidOver returns, as far as is known, what a kubelet would run with that runs with the given tree now. If
// evictionHard equals the default, the node's own file is assumed not to set it.
func (l *Layered) laidOver(running, defaults map[string]any) map[string]any {
	tree := runtime.DeepCopyJSON(running)
	hard, isMap := tree["evictionHard"].(map[string]any)
	byDefault := isMap && same(hard, defaults["evictionHard"])
	if byDefault {
		delete(tree, "evictionHard")
	}
	for _, layer := range l.List() {
		kubeletconfig.MergePatch(tree, runtime.DeepCopyJSON(layer.Patch))
	}
	set, named := tree["evictionHard"]
	if byDefault && (!named || tree["mergeDefaultEvictionSettings"] == true) {
		tree["evictionHard"] = merged(set, defaults["evictionHard"])
		if !named {
			tree["evictionHard"] = defaults["evictionHard"]
		}
	}
	return tree
}

// A Leaf is one value; each key of a free map is a leaf.
type Leaf struct {
	Value any
	key   string // key of the free map
}

// KeyedLeaves returns the leaves of a tree, with the keys of free maps one by one.
func KeyedLeaves(tree map[string]any) map[string]Leaf {
	found := map[string]Leaf{}
	for path, value := range Leaves(tree) {
		keys, is := value.(map[string]any)
		if !is || !freeMaps[path] || len(keys) == 0 {
			found[path] = Leaf{Value: value}
			continue
		}
		for key, value := range keys {
			found[path+"."+key] = Leaf{value, key}
		}
	}
	return found
}

// layeredChanges returns the changes of a configuration of layers: a field that they do not set stays, unless
// other layers have set it.
func (c Comparison) layeredChanges() (changes []Change) {
	after := c.Over.laidOver(c.Running, c.Defaults)
	running, wanted, active := KeyedLeaves(c.Running), KeyedLeaves(after), KeyedLeaves(c.Active)
	defaults, activeDefaults := KeyedLeaves(DefaultsFor(after, c.Defaults)), KeyedLeaves(DefaultsFor(c.Active, c.Defaults))
	paths := map[string]Leaf{}
	for _, leaves := range []map[string]Leaf{wanted, running} {
		for path, one := range leaves {
			paths[path] = one
		}
	}
	back := c.goBack()
	for _, path := range SortedKeys(back) {
		paths[path] = back[path]
	}
	for _, path := range SortedKeys(paths) {
		to, named := wanted[path]
		one := Change{Path: path, key: paths[path].key, From: running[path].Value, to: to.Value}
		if !named {
			one.to = defaults[path].Value
			one.byDefault, one.unlaid = one.to != nil, one.to != nil
		}
		said, saidIt := active[path]
		one.said, one.unsaid = said.Value, !saidIt
		if !saidIt && c.ActiveOver == nil {
			one.said = activeDefaults[path].Value
		}
		_, one.toOwn = back[path]
		one.Kept = c.Active != nil && (saidIt || c.ActiveOver == nil) && !same(one.From, one.said)
		if field, is := kubeletconfig.FieldAt(one.field()); is && named {
			one.ignored = field.Ignored(c.Kubelet)
		}
		if one.toOwn && !one.Kept || !one.toOwn && !same(one.From, one.to) {
			changes = append(changes, one)
		}
	}
	return changes
}

// goBack returns the fields that the layers which the node runs set, and that the wanted layers leave to the
// node's own file.
func (c Comparison) goBack() map[string]Leaf {
	found := map[string]Leaf{}
	for _, layer := range c.ActiveOver.List() {
		for path, one := range KeyedLeaves(layer.Patch) {
			found[path] = one
		}
	}
	for _, layer := range c.Over.List() {
		for path, one := range KeyedLeaves(layer.Patch) {
			delete(found, path)
			if one.Value != nil {
				continue
			}
			for other := range found { // a null also removes what is below it
				if len(other) > len(path) && other[:len(path)+1] == path+"." {
					delete(found, other)
				}
			}
		}
	}
	return found
}

// keyed judges each key of a map that a node's layers set in part.
func (c Comparison) keyed(changes []Change) []Change {
	for i := range changes {
		if one := &changes[i]; c.ActiveOver != nil && one.key != "" {
			one.Kept = one.said != nil && !same(one.From, one.said)
			one.silent = one.Kept && one.byDefault
		}
	}
	return changes
}
