package document

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// A Change is one field whose value a configuration would change.
type Change struct {
	Path      string
	key       string // last part of the path of a free map's key, which may contain dots
	From, to  any
	said      any  // set by the active configuration, or the default
	unsaid    bool // the active configuration does not set the field
	toOwn     bool // the field returns to the node's own file, which only the node can read
	byDefault bool // the configuration does not set the field, so it returns to its default
	// Kept means that the field keeps its value, because a kubelet flag or a drop-in file of the node sets it.
	Kept bool
	// silent changes are not shown: the configuration does not set the field, and as far as is known its value stays.
	silent bool
	unlaid bool // by a null in a layer
	// ignored says why this kubelet does not know the field, although other versions do.
	ignored string
}

// A Comparison has what is known when a configuration is compared with a running kubelet.
type Comparison struct {
	Wanted   map[string]any // the configuration, as Document.Tree
	Running  map[string]any // configz of the kubelet or, if it is not available, the active configuration
	Active   map[string]any // the configuration that the kubelet was started with; nil if it is local or cannot be read
	Defaults map[string]any
	Kubelet  int    // minor version; 0 means unknown
	Caveat   string // limit of the comparison, for the user
	Unasked  error  // why the kubelet did not report its configuration

	Over, ActiveOver *Layered // set if that configuration consists of layers over the node's own file
	OwnUnknown       bool     // the wanted layers leave fields to the node's own file, whose values are not known
}

// Changes returns the changes, sorted by path. Flags and drop-in files show in the running value of a field: it
// differs from what the active configuration sets or, if that does not set the field, from the default.
func (c Comparison) Changes() []Change {
	return slices.DeleteFunc(c.allChanges(), func(one Change) bool { return one.silent })
}

// ChangesNothing reports whether, as far as is known, the kubelet runs with the configuration already.
func (c Comparison) ChangesNothing() bool { return len(c.Changes()) == 0 && !c.OwnUnknown }

func (c Comparison) allChanges() []Change {
	if c.Over != nil {
		return c.layeredChanges()
	}
	running, wanted, active := Leaves(c.Running), Leaves(c.Wanted), Leaves(c.Active)
	defaults, activeDefaults := Leaves(DefaultsFor(c.Wanted, c.Defaults)), Leaves(DefaultsFor(c.Active, c.Defaults))
	paths := map[string]bool{}
	for _, tree := range []map[string]any{running, wanted} {
		for path := range tree {
			paths[path] = true
		}
	}
	var changes []Change
	for _, path := range SortedKeys(paths) {
		if path == "featureGates" {
			changes = append(changes, gateChanges(running[path], wanted[path], active[path])...)
			continue
		}
		to, named := wanted[path]
		if path == "evictionHard" && named && c.Wanted["mergeDefaultEvictionSettings"] == true {
			to = merged(to, defaults[path])
		}
		if !named {
			to = defaults[path]
		}
		if same(running[path], to) {
			continue
		}
		said, saidIt := active[path]
		if !saidIt {
			said = activeDefaults[path]
		}
		kept := c.Active != nil && (saidIt || c.ActiveOver == nil) && !same(running[path], said)
		changed := Change{Path: path, From: running[path], to: to, said: said, unsaid: !saidIt, byDefault: !named, Kept: kept, silent: kept && !named}
		if field, is := kubeletconfig.FieldAt(path); is && named {
			changed.ignored = field.Ignored(c.Kubelet)
		}
		changes = append(changes, c.keyed(expand(changed))...)
	}
	return changes
}

// merged returns value with the keys that only base has.
func merged(value, base any) any {
	over, isMap := value.(map[string]any)
	under, baseIsMap := base.(map[string]any)
	if !isMap || !baseIsMap {
		return value
	}
	result := maps.Clone(under)
	maps.Copy(result, over)
	return result
}

// gateChanges compares the feature gates that are set. Gates from flags and from the node's own file stay. Nothing
// is known about gates that only the active configuration sets.
func gateChanges(running, wanted, active any) []Change {
	now, _ := running.(map[string]any)
	then, _ := wanted.(map[string]any)
	said, _ := active.(map[string]any)
	var changes []Change
	for _, gate := range SortedKeys(then) {
		if from, is := now[gate]; !is || from != then[gate] {
			changes = append(changes, Change{Path: "featureGates." + gate, key: gate, From: from, to: then[gate], said: said[gate]})
		}
	}
	for _, gate := range SortedKeys(said) {
		if _, stays := then[gate]; !stays && now[gate] != nil {
			changes = append(changes, Change{Path: "featureGates." + gate, key: gate, From: now[gate], said: said[gate], silent: true})
		}
	}
	return changes
}

// expand splits the change of a free map into one change per key.
func expand(c Change) []Change {
	from, fromIs := c.From.(map[string]any)
	to, toIs := c.to.(map[string]any)
	if !fromIs && c.From != nil || !toIs && c.to != nil || !fromIs && !toIs {
		return []Change{c}
	}
	said, _ := c.said.(map[string]any)
	keys := map[string]bool{}
	for key := range from {
		keys[key] = true
	}
	for key := range to {
		keys[key] = true
	}
	var changes []Change
	for _, key := range SortedKeys(keys) {
		if !same(from[key], to[key]) {
			one := c
			one.Path, one.key, one.From, one.to, one.said = c.Path+"."+key, key, from[key], to[key], said[key]
			changes = append(changes, one)
		}
	}
	return changes
}

// WriteChanges prints each change with its old and new value, and its consequence once for neighbors that share
// it.
func WriteChanges(to io.Writer, changes []Change) {
	for i, c := range changes {
		line := fmt.Sprintf("  %s: %s → %s", FieldName(c.Path), Show(c.Path, c.From), Show(c.Path, c.to))
		switch {
		case c.toOwn:
			line = fmt.Sprintf("  %s: %s → as the node's own file has it, which is not known from here", FieldName(c.Path), Show(c.Path, c.From))
		case c.byDefault && c.unlaid:
			line += " (its default, as far as is known: a layer takes it out of the node's own file)"
		case c.byDefault:
			line += " (its default: the configuration does not name it)"
		}
		_, _ = fmt.Fprintln(to, line)
		if words := c.Consequence(); i+1 == len(changes) || changes[i+1].Consequence() != words {
			_, _ = fmt.Fprintln(to, "      "+words)
		}
	}
}

// Consequence returns what a change does to the node and its pods.
func (c Change) Consequence() string {
	found, known := kubeletconfig.NearestField(c.Path)
	switch {
	case c.ignored != "":
		return "ignored: the field " + c.ignored
	case c.Kept:
		by := "a drop-in file"
		if found.Flags != "" {
			by = strings.ReplaceAll(found.Flags, " ", ", ") + " or " + by
		}
		return fmt.Sprintf("stays %s: %s of the node wins over any configuration", Show(c.Path, c.From), by)
	case !known:
		return "unknown: kubelets ignore what they do not know; is it spelt right?"
	}
	words := fmt.Sprintf("%s: %s", found.Class, found.Effect)
	switch found.Drain {
	case "", "no":
		return words
	case "yes":
		return words + "; drain first"
	}
	return words + "; drain first: " + found.Drain
}
