package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// A class is a word for what changing a field does.
type class struct{ Name, Meaning string }

// classes are all there are, what does the most harm first.
var classes = []class{
	{"kills-pods", "All pods of the node are killed, each time it is changed."},
	{"state-file", "Without the supervisor the kubelet exits at every start, until a file of its own is gone, or the pods that it speaks of. The supervisor [sets that file aside](../operate/README.md#state-files-of-the-kubelet)."},
	{"disrupts-pods", "Running pods may be killed, depending on the value and on what runs."},
	{"may-break-node", "The node can be lost, or opened to others. Pods go on."},
	{"needs-drain", "Running pods keep the old behaviour, and mixing both is harmful, or those that do not fit are killed."},
	{"new-pods-only", "Running pods, or their running containers, keep the old behaviour. That is harmless."},
	{"safe", "Neither pods nor node notice."},
	{"inert", "It has no effect on a node of a cluster, or no longer has one."},
}

//go:embed page.md.tmpl
var pageText string

// page writes the page for people.
func page(rows []row, newest string) ([]byte, error) {
	of := func(name string) (found []row) {
		for _, r := range rows {
			if r.Class == name {
				found = append(found, r)
			}
		}
		return found
	}
	functions := template.FuncMap{
		"of": of, "cell": cell, "code": code,
		"inner":   func(r row) []string { return inner(rows, r) },
		"classOf": func(r row) string { return classOf(rows, r.Path) },
	}
	parsed, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, map[string]any{
		"Classes": classes, "Rows": rows, "Oldest": fmt.Sprintf("1.%d", minorOf(kubelets[0])), "Newest": fmt.Sprintf("1.%d", minorOf(newest)),
	})
	return text.Bytes(), err
}

// cell joins what is there of the parts for a cell of a table.
func cell(separator string, parts ...string) string {
	there := slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.NewReplacer("|", `\|`, "*", `\*`, "\n", " ").Replace(strings.Join(there, separator))
}

// code writes words as code, one after another; nothing for none.
func code(words string) string {
	var marked []string
	for _, word := range strings.Fields(words) {
		marked = append(marked, "`"+word+"`")
	}
	return strings.Join(marked, " ")
}

// classOf is the class of a field, or of the nearest one that it is in.
func classOf(rows []row, path string) string {
	for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
		at := slices.IndexFunc(rows, func(r row) bool { return r.Path == path && r.Class != "" })
		if at >= 0 {
			return rows[at].Class
		}
	}
	return ""
}

// inner are the fields within one of which nothing else is said.
func inner(rows []row, outer row) (names []string) {
	for _, r := range rows {
		if name, is := strings.CutPrefix(r.Path, outer.Path+"."); is && r.Class == "" {
			names = append(names, "`"+name+"`")
		}
	}
	return names
}
