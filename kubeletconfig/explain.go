package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"maps"
	"slices"
	"strings"
)

// Origin says who set a field.
type Origin struct {
	Kind string `json:"kind"` // of the constants below
	Name string `json:"name,omitempty"`
	From string `json:"from,omitempty"` // of a layer: where it comes from
}

// The kinds of an [Origin].
const (
	ByDefault  = "default"
	ByLocal    = "local"    // the node's own file
	ByAssigned = "assigned" // a configuration that is a whole file
	ByLayer    = "layer"    // Name is the layer's
	ByDropIn   = "drop-in"  // Name is the file
	ByFlag     = "flag"     // Name is the flag, such as --max-pods
	ByNode     = "node"     // Name says what it may be of the node's own, for a reader who cannot see that
)

func (o Origin) String() string {
	switch o.Kind {
	case ByLocal:
		return "local file"
	case ByAssigned:
		return "assigned file"
	case ByNode:
		return o.Name
	case ByDefault:
		if o.Name != "" {
			return "default " + o.Name
		}
		return "default"
	}
	name := o.Kind + " " + Quote(o.Name)
	if o.From != "" {
		name += " (" + Quote(o.From) + ")"
	}
	return name
}

// overFile reports whether it overrides every file that a kubelet is started with.
func (o Origin) overFile() bool { return o.Kind == ByDropIn || o.Kind == ByFlag || o.Kind == ByNode }

// Said is what one origin says of a field.
type Said struct {
	By     Origin
	Value  any
	Null   bool // it takes away what was said before: by a null, or as a flag that sets its whole field
	Untold bool // it sets the field to what is not read here
}

// Explanation is what is known of one field.
type Explanation struct {
	Path   []string
	Said          // who decides, and what
	Over   []Said // what that overrode, the mightiest first
	Unset  bool   // it is not set, and the kubelet was not asked
	Runs   any    // what the kubelet makes of it, if that differs; nil: it is the same, or unknown
	Field  Field  // what is known of it, or of what it is in
	Exists bool   // there is a kubelet with such a field
}

// Name is the field's path as people write it.
func (e Explanation) Name() string { return strings.Join(e.Path, ".") }

// Shadowed reports whether one that was overridden would count without the node's drop-in files and flags.
func (e Explanation) Shadowed(over Said) bool {
	return e.By.overFile() && !over.By.overFile() && !over.Null
}

// Sources are all that decides over the configuration of one kubelet.
type Sources struct {
	Arguments []string // the kubelet's flags
	Payload   map[string]string
	Key       string
	Folder    string               // of the payload on disk
	Base      func() (Base, error) // what layers are applied to, and local is; nil: unknown
	// Told is what the kubelet itself says that it comes to, defaults among it; nil: it was not asked.
	Told map[string]any
}

// Explain returns for every field that is set, and with Told for all others too, its value and what set it. Without a payload it is local
// that is explained. The errors are those of [Compose] and [Render].
func (s Sources) Explain() ([]Explanation, error) {
	x := explainer{tree: map[string]any{}, history: map[string][]Said{}}
	if err := s.file(&x); err != nil {
		return nil, err
	}
	arguments := commandline.Parse(s.Arguments)
	eachDropIn(arguments.ConfigDir, func(file dropIn) {
		if tree, err := Decode(file.bytes); file.err == nil && err == nil {
			x.patch(Origin{Kind: ByDropIn, Name: file.name}, tree)
		}
	})
	x.flags(s.Arguments)
	return x.explanations(s.Told), nil
}

// file lays down what the kubelet is started with.
func (s Sources) file(x *explainer) error {
	document := []byte(s.Payload[s.Key])
	tree, err := Decode(document)
	if s.Payload == nil || err == nil && AreLayers(tree) {
		return s.layers(x, document)
	}
	if tree, err = load(s.Payload, s.Key); err != nil {
		return err
	}
	resolvePaths(tree, s.Folder)
	x.whole(Origin{Kind: ByAssigned}, tree)
	x.gates(LocalGates(s.Arguments))
	return nil
}

func (s Sources) layers(x *explainer, document []byte) error {
	layers := Layers{Base: BaseLocal}
	if s.Payload != nil {
		var err error
		if layers, err = ReadLayers(document); err != nil {
			_, err = load(s.Payload, s.Key) // as it prints them
			return err
		}
	}
	if layers.Base == BaseLocal && s.Base != nil {
		base, err := s.Base()
		if err != nil {
			return err
		}
		tree, err := base.tree()
		if err != nil {
			return err
		}
		by := Origin{Kind: ByLocal}
		if base.Folder == "" {
			by = Origin{Kind: ByDefault, Name: "of a kubelet without --config"}
		}
		x.whole(by, tree)
	}
	for _, layer := range layers.Layers {
		resolvePaths(layer.Patch, s.Folder)
		x.patch(Origin{Kind: ByLayer, Name: layer.Name, From: layer.From}, layer.Patch)
	}
	if layers.Base == BaseNone {
		x.gates(LocalGates(s.Arguments))
	}
	return nil
}

// explainer keeps, while one is laid over the other, the result and who said what of each field.
type explainer struct {
	tree    map[string]any
	history map[string][]Said // by path, its steps apart by NUL
}

const betweenSteps = "\x00"

// whole is the first that is laid down.
func (x *explainer) whole(by Origin, tree map[string]any) {
	x.lay(by, flat(tree, false), func() { x.tree = tree })
}

// gates adds those of the node's own file that a whole file does not name.
func (x *explainer) gates(local map[string]bool) {
	x.lay(Origin{Kind: ByLocal}, nil, func() { addGates(x.tree, local) })
}

func (x *explainer) patch(by Origin, patch map[string]any) {
	x.lay(by, flat(patch, true), func() { MergePatch(x.tree, patch) })
}

func (x *explainer) flags(argv []string) {
	given := commandline.Given(argv)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		flag, by := commandline.Fields[name], Origin{Kind: ByFlag, Name: "--" + name}
		if flag.Kind.Read(given[name]) == nil && flag.Kind != commandline.Other && flag.Kind != commandline.Gates {
			continue // the kubelet would refuse it
		}
		var alone []string
		for _, value := range given[name] {
			alone = append(alone, "--"+name+"="+value)
		}
		said := map[string]any{}
		commandline.Apply(said, alone)
		x.lay(by, flat(said, false), func() { commandline.Apply(x.tree, alone) })
		if flag.Kind == commandline.Other {
			path := strings.Join(flag.Path(), betweenSteps)
			kept := slices.DeleteFunc(x.history[path], func(s Said) bool { return s.By == by })
			x.history[path] = append(kept, Said{By: by, Untold: true})
		}
	}
}

// lay makes a change of the tree in the name of the origin of these values.
func (x *explainer) lay(by Origin, said map[string]any, change func()) {
	before := flat(x.tree, false)
	change()
	after := flat(x.tree, false)
	for path, value := range after {
		_, was := before[path]
		if _, saidIt := said[path]; saidIt || !was {
			x.history[path] = append(x.history[path], Said{By: by, Value: value})
		}
	}
	filled, were := above(after), above(before)
	for path, value := range before {
		_, stays := after[path]
		switch {
		case stays:
		case isEmptyMap(value) && filled[path]:
			delete(x.history, path) // it has got fields
		default:
			x.history[path] = append(x.history[path], Said{By: by, Null: true})
		}
	}
	for path, value := range said {
		if value == nil && len(x.history[path]) == 0 && !were[path] {
			x.history[path] = []Said{{By: by, Null: true}} // it took nothing away
		}
	}
}

func isEmptyMap(value any) bool {
	below, is := value.(map[string]any)
	return is && len(below) == 0
}

// above are the paths of the mappings that have leaves in them.
func above(leaves map[string]any) map[string]bool {
	found := map[string]bool{}
	for path := range leaves {
		for end := strings.LastIndex(path, betweenSteps); end >= 0 && !found[path[:end]]; end = strings.LastIndex(path, betweenSteps) {
			path = path[:end]
			found[path] = true
		}
	}
	return found
}

// flat gives the values of a tree by path. An empty mapping is one, because it differs from no mapping. A null is one in a patch alone.
func flat(tree map[string]any, nulls bool) map[string]any {
	found := map[string]any{}
	var visit func(tree map[string]any, above string)
	visit = func(tree map[string]any, above string) {
		for name, value := range tree {
			below, isMapping := value.(map[string]any)
			path := above + strings.ReplaceAll(name, betweenSteps, "\uFFFD")
			switch {
			case above == "" && (name == "kind" || name == "apiVersion"), value == nil && !nulls:
			case isMapping && len(below) > 0:
				visit(below, path+betweenSteps)
			case isMapping:
				found[path] = map[string]any{} // that one may be filled
			default:
				found[path] = value
			}
		}
	}
	visit(tree, "")
	return found
}

// explanations are by name.
func (x *explainer) explanations(told map[string]any) (list []Explanation) {
	runs := flat(told, false)
	for path, history := range x.history {
		e := newExplanation(path)
		slices.Reverse(history)
		e.Said, e.Over = history[0], history[1:]
		runsWith, isTold := runs[path]
		switch {
		case e.Null && e.By.Kind != ByFlag: // in a drop-in file it is the default, too (kubelet 1.36.3)
			e.Said, e.Over = Said{By: Origin{Kind: ByDefault}, Value: runsWith}, history
			e.Unset = !isTold
		case e.Null || e.Untold:
			e.Value = runsWith
		case isTold && !sameValue(e.Value, runsWith):
			e.Runs = runsWith
		}
		list = append(list, e)
	}
	for path, value := range runs {
		if _, is := x.history[path]; !is {
			e := newExplanation(path)
			e.Said = Said{By: Origin{Kind: ByDefault}, Value: value}
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Explanation) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

func newExplanation(path string) Explanation {
	e := Explanation{Path: strings.Split(path, betweenSteps)}
	if e.Field, e.Exists = FieldOf(e.Name()); e.Exists && e.Field.Class == "" {
		nearest, _ := NearestField(e.Name())
		e.Field.Class, e.Field.Effect, e.Field.Drain = nearest.Class, nearest.Effect, nearest.Drain
	}
	return e
}
