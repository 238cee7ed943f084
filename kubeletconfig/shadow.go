package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// maxShadows bounds what is kept of them.
const maxShadows = 100

// Shadowed says which fields of the file a kubelet with this command line does not run with, because a flag or a
// drop-in file says something else, sorted. Values are empty where they are not plain words: they may be secrets. A
// field that the kubelet itself changed is none.
func Shadowed(configFile string, argv []string, effective Effective) []nodev1.ShadowedField {
	file, runs := readTree(configFile), effective.Tree()
	if file == nil || runs == nil {
		return nil
	}
	rulers := rulersOf(argv)
	var found []nodev1.ShadowedField
	eachLeaf(file, nil, func(path []string, value any) {
		runsWith, _ := valueAt(runs, path)
		if sameValue(value, runsWith) {
			return
		}
		if by := rulers.of(path, value); by != "" {
			found = append(found, nodev1.ShadowedField{Field: Quote(ShowPath(strings.Join(path, "."))), Value: shownValue(path, value), By: by, Effective: shownValue(path, runsWith)})
		}
	})
	slices.SortFunc(found, func(a, b nodev1.ShadowedField) int { return strings.Compare(a.String(), b.String()) })
	return found[:min(len(found), maxShadows)]
}

// ShadowLines says it to people, in at most 10 lines.
func ShadowLines(shadows []nodev1.ShadowedField) []string {
	var list warnings
	for _, s := range shadows {
		list.add("%s", s)
	}
	return list.lines()
}

// rulers are what overrides the file, the strongest first.
type rulers struct {
	flags   map[string][]string // by the field that they set
	gates   map[string]bool
	dropIns []rulingDropIn
}

type rulingDropIn struct {
	name string
	tree map[string]any
}

func rulersOf(argv []string) rulers {
	r := rulers{flags: map[string][]string{}, gates: commandline.Parse(argv).FeatureGates}
	for name := range commandline.Given(argv) {
		r.flags[commandline.Fields[name].Field] = append(r.flags[commandline.Fields[name].Field], "--"+name)
	}
	eachDropIn(commandline.Parse(argv).ConfigDir, func(file dropIn) {
		if tree, err := Decode(file.bytes); file.err == nil && err == nil {
			r.dropIns = append([]rulingDropIn{{file.name, tree}}, r.dropIns...)
		}
	})
	return r
}

// of names what says something else of the field than the file does, or says something of one that it is in; "" for nothing.
func (r rulers) of(path []string, inFile any) string {
	for length := len(path); length > 0; length-- {
		field := strings.Join(path[:length], ".")
		if flags := r.flags[field]; len(flags) > 0 && (field != "featureGates" || r.rulesGate(path)) {
			return slices.Min(flags)
		}
	}
	for _, file := range r.dropIns {
		for length := len(path); length > 0; length-- {
			value, said := valueAt(file.tree, path[:length])
			switch _, isMapping := value.(map[string]any); {
			case !said || isMapping && length < len(path):
			case length == len(path) && sameValue(value, inFile):
				return "" // the kubelet itself changed it, or does not know it
			default:
				return Quote(file.name)
			}
		}
	}
	return ""
}

// rulesGate: the flag's gates are added to those of the file.
func (r rulers) rulesGate(path []string) bool {
	if len(path) < 2 {
		return false
	}
	_, is := r.gates[path[1]]
	return is
}

// eachLeaf visits what is no mapping. A null says nothing.
func eachLeaf(tree map[string]any, above []string, visit func(path []string, value any)) {
	for name, value := range tree {
		path := append(slices.Clone(above), name)
		if len(above) == 0 && (name == "kind" || name == "apiVersion") {
			continue
		}
		switch below := value.(type) {
		case nil:
		case map[string]any:
			eachLeaf(below, path, visit)
		default:
			visit(path, value)
		}
	}
}

func valueAt(tree map[string]any, path []string) (value any, found bool) {
	parent, name := parentOf(tree, path)
	value, found = parent[name]
	return value, found
}

// sameValue reports whether a kubelet reads both as the same. Durations have many forms, numbers two.
func sameValue(a, b any) bool {
	switch first := a.(type) {
	case string:
		second, is := b.(string)
		return is && (first == second || sameDuration(first, second))
	case json.Number:
		second, is := b.(json.Number)
		x, errX := first.Float64()
		y, errY := second.Float64()
		return is && (first == second || errX == nil && errY == nil && x == y)
	}
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(first) == string(second)
}

func sameDuration(a, b string) bool {
	first, errA := time.ParseDuration(a)
	second, errB := time.ParseDuration(b)
	return errA == nil && errB == nil && first == second
}

// plainWord is a value that is fit to be shown, up to maxWord bytes: not a URL, which may have a password in it.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._%/+-]+$`)

const maxWord = 64

// shownValue is the value for people; nothing for one that may be a secret, or that says nothing alone.
func shownValue(path []string, value any) string {
	var words []string
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for _, entry := range list {
		switch entry.(type) {
		case string, bool, json.Number:
			words = append(words, fmt.Sprint(entry))
		}
	}
	shown := strings.Join(words, "+")
	if len(words) != len(list) || Hides(strings.Join(path, "."), value) || len(shown) > maxWord || !plainWord.MatchString(shown) {
		return ""
	}
	return strings.Join(words, ", ")
}
