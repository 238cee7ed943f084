//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// All mutants of functions are built into one test binary, for building and linking each would take most of the time: every mutant is
// a copy of its function, and the function itself begins with a switch that calls the copy which the environment names.
const (
	variable     = "MUTATE_ID"
	switchSource = `package %s

import (
	"os"
	"strconv"
)

var mutateID, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`
)

// write writes the package with its mutants, and gives the path of the overlay.
func (p *folder) write(mutants []*mutant) (string, error) {
	p.declaration, p.copies = map[string][]int{}, map[string][]*mutant{}
	for _, m := range mutants {
		p.copies[m.file] = append(p.copies[m.file], m)
	}
	texts := map[string][]byte{"mutate_switch.go": fmt.Appendf(nil, switchSource, p.Name)}
	for file, list := range p.copies {
		texts[file] = p.render(file, list)
	}
	return p.overlay(p.scratch, texts)
}

func (p *folder) overlay(scratch string, texts map[string][]byte) (string, error) {
	replace := map[string]string{}
	for file, text := range texts {
		path := filepath.Join(scratch, file)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(p.Dir, file)] = path
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

func (p *folder) render(file string, mutants []*mutant) []byte {
	var edits []edit
	for i, m := range mutants {
		if i == 0 || mutants[i-1].decl != m.decl {
			of := slices.DeleteFunc(slices.Clone(mutants), func(o *mutant) bool { return o.decl != m.decl })
			edits = append(edits, dispatch(m.decl, of)...)
		}
	}
	text := bytes.NewBufferString(apply(p.sources[file], edits))
	for _, m := range mutants {
		text.WriteString("\n")
		p.declaration[file] = append(p.declaration[file], 1+bytes.Count(text.Bytes(), []byte("\n")))
		text.WriteString(p.copyOf(m))
	}
	return text.Bytes()
}

// copyOf is the mutant's function, under another name.
func (p *folder) copyOf(m *mutant) string {
	start, end, name := offset(m.decl.Pos()), offset(m.decl.End()), offset(m.decl.Name.End())
	changed := apply(p.sources[m.file][:end], []edit{{name, name, m.suffix()}, m.edit})
	return changed[start:]
}

func (m *mutant) suffix() string { return fmt.Sprintf("_mutant%d", m.id) }

// dispatch makes a function call its mutant's copy. Parameters without a name get one.
func dispatch(d *ast.FuncDecl, mutants []*mutant) []edit {
	receiver, types := "", ""
	var edits []edit
	if d.Recv != nil {
		names, more := named(d.Recv, "mutateReceiver")
		receiver, edits = names[0]+".", more
	}
	if d.Type.TypeParams != nil {
		names, _ := named(d.Type.TypeParams, "")
		types = "[" + strings.Join(names, ", ") + "]"
	}
	arguments, more := named(d.Type.Params, "mutateArgument")
	choice := " switch mutateID {"
	for _, m := range mutants {
		call := fmt.Sprintf("%s%s%s%s(%s)", receiver, d.Name.Name, m.suffix(), types, strings.Join(arguments, ", "))
		if d.Type.Results == nil {
			call += "; return"
		} else {
			call = "return " + call
		}
		choice += fmt.Sprintf("\ncase %d: %s", m.id, call)
	}
	after := offset(d.Body.Lbrace) + 1
	return append(append(edits, more...), edit{after, after, choice + "\n}\n"})
}

// named gives the names to call with, and the edits that name what has no name.
func named(fields *ast.FieldList, prefix string) ([]string, []edit) {
	var names []string
	var edits []edit
	missing := func(from, to token.Pos, space string) {
		names = append(names, prefix+strconv.Itoa(len(names)))
		edits = append(edits, edit{offset(from), offset(to), names[len(names)-1] + space})
	}
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			missing(field.Type.Pos(), field.Type.Pos(), " ")
		}
		for _, name := range field.Names {
			if name.Name == "_" {
				missing(name.Pos(), name.End(), "")
			} else {
				names = append(names, name.Name)
			}
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			names[len(names)-1] += "..."
		}
	}
	return names, edits
}

// offset of a position in its file: each file has a set of its own.
func offset(p token.Pos) int { return int(p) - 1 }

// apply makes edits that do not overlap.
func apply(source []byte, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var text strings.Builder
	at := 0
	for _, e := range edits {
		text.Write(source[at:e.start])
		text.WriteString(e.text)
		at = e.end
	}
	text.Write(source[at:])
	return text.String()
}
