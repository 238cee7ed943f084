package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// ParseSets reads the values of --set into one patch.
func ParseSets(arguments []string) (map[string]any, error) {
	patch := map[string]any{}
	for _, argument := range arguments {
		path, text, is := strings.Cut(argument, "=")
		if !is {
			return nil, fmt.Errorf("--set: write FIELD=VALUE, as maxPods=250; FIELD=null takes the field out of each node's own file")
		}
		path = strings.ReplaceAll(path, `\.`, ".")
		steps, kind, err := FieldSteps(path)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", FieldName(path), err)
		}
		value, err := parseValue(kind, text)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", FieldName(path), err)
		}
		if err := put(patch, steps, value); err != nil {
			return nil, fmt.Errorf("--set %s: %w", FieldName(path), err)
		}
	}
	return patch, nil
}

// FieldSteps returns the path of a field in the tree, and its type. A key of a map may contain dots.
func FieldSteps(path string) (steps []string, kind string, err error) {
	field, is := kubeletconfig.FieldOf(path)
	if !is {
		return nil, "", kubeletconfig.NoSuchField(path)
	}
	steps = strings.Split(field.Path, ".")
	for i := 1; i < len(steps); i++ {
		above := strings.Join(steps[:i], ".")
		if list, is := kubeletconfig.FieldAt(above); is && strings.HasPrefix(list.Type, "[]") {
			return nil, "", fmt.Errorf("%s is a list, which is set as a whole, in YAML: '%s=[{%s: …}]'", above, above, steps[i])
		}
	}
	if field.Path == path {
		return steps, field.Type, nil
	}
	_, kind, _ = strings.Cut(field.Type, "]")
	return append(steps, path[len(field.Path)+1:]), kind, nil
}

// parseValue reads a value by the type of its field, so that users need no quotes.
func parseValue(kind, text string) (any, error) {
	if text == "null" {
		return nil, nil
	}
	switch kind {
	case "string", "duration", "quantity", "time":
		return text, nil
	case "bool":
		if text == "true" || text == "false" {
			return text == "true", nil
		}
		return nil, fmt.Errorf("its value is true, false or null")
	case "int32", "int64", "uint32":
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(text), nil
		}
		return nil, fmt.Errorf("its value is a whole number (%s) or null; every field has a --set of its own", kind)
	case "float64":
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(text), nil
		}
		return nil, fmt.Errorf("its value is a number or null")
	}
	tree, err := kubeletconfig.Decode([]byte("v: " + text))
	if err != nil {
		return nil, fmt.Errorf("its value is YAML: %w", err)
	}
	_, isList := tree["v"].([]any)
	_, isMap := tree["v"].(map[string]any)
	switch {
	case len(tree) != 1, strings.HasPrefix(kind, "[]") && !isList:
		return nil, fmt.Errorf("its value is a list in YAML, such as [a, b], or null")
	case !strings.HasPrefix(kind, "[]") && !isMap:
		return nil, fmt.Errorf("its value is a mapping in YAML, such as {a: b}, or null; or set what is in it, by its path")
	}
	return tree["v"], nil
}

// put sets a field. It fails if the field was set before.
func put(patch map[string]any, steps []string, value any) error {
	last := len(steps) - 1
	for i, step := range steps[:last] {
		below, is := patch[step].(map[string]any)
		if _, set := patch[step]; set && !is {
			return fmt.Errorf("%s is set as a whole already; a layer of its own (--layer) can do both", strings.Join(steps[:i+1], "."))
		}
		if !is {
			below = map[string]any{}
			patch[step] = below
		}
		patch = below
	}
	if _, set := patch[steps[last]]; set {
		return fmt.Errorf("%s is set twice", FieldName(strings.Join(steps, ".")))
	}
	patch[steps[last]] = value
	return nil
}
