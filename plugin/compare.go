package plugin

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// A change is one field that would be another with a configuration than it is now.
type change struct {
	path      string
	key       string // of a free map: the last part of the path, which may have dots
	from, to  any
	said      any  // by the active configuration, or its default
	unsaid    bool // the active configuration does not name it
	toOwn     bool // it goes back to what the node's own file says, which is known to the node alone
	byDefault bool // the configuration does not name it: it goes back to its default
	// kept tells that the field stays as it is: a kubelet flag or a drop-in file of the node sets it.
	kept bool
	// silent changes are none that a person has to hear of: the configuration does not name the field, and by all that is known it stays.
	silent bool
	unlaid bool // by a layer's null
	// ignored says why the kubelet does not know the field, although there are kubelets that do.
	ignored string
}

// A comparison is what is known when a configuration is compared with a running kubelet.
type comparison struct {
	wanted   map[string]any // of the configuration, as document.tree
	running  map[string]any // what the kubelet runs with, configz; or, where that cannot be had, the active configuration
	active   map[string]any // the configuration that the kubelet was started with; nil when it is local or cannot be read
	defaults map[string]any
	kubelet  int    // its minor version, 0: unknown
	caveat   string // what limits the comparison, for a person
	unasked  error  // why the kubelet did not tell what it runs with

	over, activeOver *layered // where that configuration is of layers over the node's own file
	ownUnknown       bool     // what the wanted layers do not set becomes as the node's own file has it, and nobody knows how that is
}

// changes lists, by path, what would change. What the running value of a field owes to flags and drop-in files shows where it
// differs from what the active configuration says, or, where that is silent, from the default.
func (c comparison) changes() []change {
	return slices.DeleteFunc(c.allChanges(), func(one change) bool { return one.silent })
}

// changesNothing: for all that is known, the kubelet runs with it already.
func (c comparison) changesNothing() bool { return len(c.changes()) == 0 && !c.ownUnknown }

func (c comparison) allChanges() []change {
	if c.over != nil {
		return c.layeredChanges()
	}
	running, wanted, active := leaves(c.running), leaves(c.wanted), leaves(c.active)
	defaults, activeDefaults := leaves(defaultsFor(c.wanted, c.defaults)), leaves(defaultsFor(c.active, c.defaults))
	paths := map[string]bool{}
	for _, tree := range []map[string]any{running, wanted} {
		for path := range tree {
			paths[path] = true
		}
	}
	var changes []change
	for _, path := range sortedKeys(paths) {
		if path == "featureGates" {
			changes = append(changes, gateChanges(running[path], wanted[path], active[path])...)
			continue
		}
		to, named := wanted[path]
		if path == "evictionHard" && named && c.wanted["mergeDefaultEvictionSettings"] == true {
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
		kept := c.active != nil && (saidIt || c.activeOver == nil) && !same(running[path], said)
		changed := change{path: path, from: running[path], to: to, said: said, unsaid: !saidIt, byDefault: !named, kept: kept, silent: kept && !named}
		if field, is := config.FieldAt(path); is && named {
			changed.ignored = field.Ignored(c.kubelet)
		}
		changes = append(changes, c.keyed(expand(changed))...)
	}
	return changes
}

// merged adds to a map what it does not name.
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

// gateChanges compares the gates that are named: others are added from flags and from the node's own file, and stay. Of those that only the
// active configuration names it is not known.
func gateChanges(running, wanted, active any) []change {
	now, _ := running.(map[string]any)
	then, _ := wanted.(map[string]any)
	said, _ := active.(map[string]any)
	var changes []change
	for _, gate := range sortedKeys(then) {
		if from, is := now[gate]; !is || from != then[gate] {
			changes = append(changes, change{path: "featureGates." + gate, key: gate, from: from, to: then[gate], said: said[gate]})
		}
	}
	for _, gate := range sortedKeys(said) {
		if _, stays := then[gate]; !stays && now[gate] != nil {
			changes = append(changes, change{path: "featureGates." + gate, key: gate, from: now[gate], said: said[gate], silent: true})
		}
	}
	return changes
}

// expand tells the change of a free map key by key.
func expand(c change) []change {
	from, fromIs := c.from.(map[string]any)
	to, toIs := c.to.(map[string]any)
	if !fromIs && c.from != nil || !toIs && c.to != nil || !fromIs && !toIs {
		return []change{c}
	}
	said, _ := c.said.(map[string]any)
	keys := map[string]bool{}
	for key := range from {
		keys[key] = true
	}
	for key := range to {
		keys[key] = true
	}
	var changes []change
	for _, key := range sortedKeys(keys) {
		if !same(from[key], to[key]) {
			one := c
			one.path, one.key, one.from, one.to, one.said = c.path+"."+key, key, from[key], to[key], said[key]
			changes = append(changes, one)
		}
	}
	return changes
}

// writeChanges tells changes to a person: each field with what it is and would be, and what that does, once for neighbours that are alike.
func writeChanges(to io.Writer, changes []change) {
	for i, c := range changes {
		line := fmt.Sprintf("  %s: %s → %s", fieldName(c.path), show(c.path, c.from), show(c.path, c.to))
		switch {
		case c.toOwn:
			line = fmt.Sprintf("  %s: %s → as the node's own file has it, which is not known from here", fieldName(c.path), show(c.path, c.from))
		case c.byDefault && c.unlaid:
			line += " (its default, as far as is known: a layer takes it out of the node's own file)"
		case c.byDefault:
			line += " (its default: the configuration does not name it)"
		}
		_, _ = fmt.Fprintln(to, line)
		if words := c.consequence(); i+1 == len(changes) || changes[i+1].consequence() != words {
			_, _ = fmt.Fprintln(to, "      "+words)
		}
	}
}

// consequence says what a change does to the node and its pods.
func (c change) consequence() string {
	found, known := config.NearestField(c.path)
	switch {
	case c.ignored != "":
		return "ignored: the field " + c.ignored
	case c.kept:
		by := "a drop-in file"
		if found.Flags != "" {
			by = strings.ReplaceAll(found.Flags, " ", ", ") + " or " + by
		}
		return fmt.Sprintf("stays %s: %s of the node wins over any configuration", show(c.path, c.from), by)
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
