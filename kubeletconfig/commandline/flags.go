package commandline

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Given has the values of each flag that sets a field, in the order of the command line, by the flag's name. It reads as
// [Parse] does.
func Given(argv []string) map[string][]string {
	given := map[string][]string{}
	for i := 0; i < len(argv) && argv[i] != "--"; i++ {
		name, value, hasValue := flagOf(argv[i])
		flag, known := Fields[name]
		switch {
		case !known:
			continue
		case !hasValue && flag.Kind == Bool:
			value = "true"
		case !hasValue:
			if i++; i == len(argv) {
				return given
			}
			value = argv[i]
		}
		given[name] = append(given[name], value)
	}
	return given
}

// flagOf reads one word. The only short flag that sets a field is -v, also as -v4.
func flagOf(word string) (name, value string, hasValue bool) {
	if long, is := strings.CutPrefix(word, "--"); is {
		name, value, hasValue = strings.Cut(long, "=")
		return strings.ReplaceAll(name, "_", "-"), value, hasValue
	}
	if value, is := strings.CutPrefix(word, "-v"); is {
		return "v", strings.TrimPrefix(value, "="), value != ""
	}
	return "", "", false
}

// Apply lets the flags win over what the tree says. A value that the kubelet would refuse is as if not given. A
// value of a form that is not read leaves its field out: it is set, but to what is not known.
func Apply(tree map[string]any, argv []string) {
	for name, values := range Given(argv) {
		path := Fields[name].Path()
		parent, field := parentFor(tree, path)
		if Fields[name].Kind == Other {
			delete(parent, field)
			continue
		}
		if value := Fields[name].Kind.Read(values); value != nil {
			parent[field] = value
		}
	}
	if flag := Parse(argv).FeatureGates; len(flag) > 0 {
		files, _ := tree["featureGates"].(map[string]any)
		tree["featureGates"] = withGates(files, flag)
	}
}

// parentFor is [parentOf] for a field that will be written.
func parentFor(tree map[string]any, path []string) (parent map[string]any, name string) {
	last := len(path) - 1
	for _, step := range path[:last] {
		below, ok := tree[step].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[step] = below
		}
		tree = below
	}
	return tree, path[last]
}

// withGates adds the gates of the flag to those of the files, which may be nil.
func withGates(files map[string]any, flag map[string]bool) map[string]any {
	sum := map[string]any{}
	for name, enabled := range files {
		sum[name] = enabled
	}
	for name, enabled := range flag {
		sum[name] = enabled
	}
	return sum
}

// read gives the field's value for those of the flag; nil for one that is no such value, and for gates.
func (kind Kind) Read(values []string) any {
	last := values[len(values)-1]
	switch kind {
	case Text:
		return last
	case Number:
		if number, err := strconv.ParseInt(last, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(number, 10))
		}
	case Bool:
		if enabled, err := strconv.ParseBool(last); err == nil {
			return enabled
		}
	case List:
		return readList(values)
	case Pairs:
		return readPairs(strings.Split(strings.Join(values, ","), ","), "=")
	case Pair:
		return readPairs(values, "=")
	case Limits:
		return readPairs(strings.Split(strings.Join(values, ","), ","), "<")
	}
	return nil
}

func readList(values []string) []any {
	list := []any{}
	for _, value := range values {
		if value == "" {
			continue
		}
		for entry := range strings.SplitSeq(value, ",") {
			list = append(list, entry)
		}
	}
	return list
}

func readPairs(pairs []string, between string) any {
	mapping := map[string]any{}
	for _, pair := range pairs {
		if pair == "" {
			continue
		}
		name, value, is := strings.Cut(pair, between)
		if !is {
			return nil
		}
		mapping[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return mapping
}
