package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed policy.yaml.tmpl
var policyTemplate string

// policy writes the policy that warns of fields that no kubelet knows, and of values of another kind than a field takes. It looks at what is at the top
// of a layer: deeper ones are looked at by the controller and by kubectl kubelet pool diff.
func policy(rows []row) ([]byte, error) {
	kinds := []string{"'apiVersion': 'a string'", "'kind': 'a string'"}
	for _, r := range rows {
		if r.Path == "" || strings.Contains(r.Path, ".") {
			continue
		}
		kind, err := kindOf(r.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Path, err)
		}
		kinds = append(kinds, fmt.Sprintf("'%s': '%s'", r.Path, kind))
	}
	var text strings.Builder
	t, err := template.New("policy").Parse(policyTemplate)
	if err != nil {
		return nil, err
	}
	if err := t.Execute(&text, wrapped(kinds)); err != nil {
		return nil, err
	}
	return []byte(text.String()), nil
}

// kindOf is what JSON has of a type.
func kindOf(of string) (string, error) {
	switch {
	case strings.HasPrefix(of, "[]"):
		return "a list", nil
	case strings.HasPrefix(of, "map["), of == "object":
		return "a mapping", nil
	}
	switch of {
	case "string", "duration", "quantity", "time":
		return "a string", nil
	case "bool":
		return "true or false", nil
	case "int32", "int64", "uint32", "float64":
		return "a number", nil
	}
	return "", fmt.Errorf("no kind is known of type %q", of)
}

// wrapped is a list in lines that people can read.
func wrapped(items []string) (lines []string) {
	line := ""
	for i, item := range items {
		if i+1 < len(items) {
			item += ","
		}
		if len(line)+len(item) > 130 {
			lines, line = append(lines, strings.TrimSpace(line)), ""
		}
		line += " " + item
	}
	return append(lines, strings.TrimSpace(line))
}
