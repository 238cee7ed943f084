//go:build linux

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// A mutant is one small change of a package.
type mutant struct {
	edit
	id       int
	file     string // its base name
	at       token.Position
	function string        // such as State.judge; or the constant or variable that it is in
	decl     *ast.FuncDecl // nil outside functions
	change   string        // in words, for people and for the list
	removal  bool          // of a whole statement
}

// key names the mutant in the list, also after its lines have moved.
func (m *mutant) key() string { return m.file + " " + m.function + ": " + m.change }

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.at.Line, m.function, m.change)
}

// finder walks over a file and collects mutants. It knows no types: what does not compile is left out later.
type finder struct {
	set      *token.FileSet
	file     string
	source   []byte
	function string
	decl     *ast.FuncDecl
	kept     map[ast.Node]bool // statements whose removal would be another mutant once more
	post     ast.Stmt          // of the loop that was met last
	found    []*mutant
	seen     map[edit]bool
	keys     map[string]int
}

// find gives the mutants of a file.
func find(file string, source []byte) ([]*mutant, error) {
	f := &finder{set: token.NewFileSet(), file: file, source: source, kept: map[ast.Node]bool{}, seen: map[edit]bool{}, keys: map[string]int{}}
	parsed, err := parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if f.function, f.decl = functionName(d), d; d.Body != nil && f.function != "init" && f.function != "main" {
				ast.Inspect(d.Body, f.visit)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if value, ok := s.(*ast.ValueSpec); ok {
					f.function, f.decl = value.Names[0].Name, nil
					ast.Inspect(value, f.visit)
				}
			}
		}
	}
	return f.found, nil
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if index, ok := of.(*ast.IndexExpr); ok {
		of = index.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (f *finder) removeStatement(n ast.Stmt) {
	if f.kept[n] {
		return
	}
	leave := ""
	if _, ok := n.(*ast.IfStmt); ok {
		leave = "{}" // it may follow an else
	}
	if m := f.remove(n.Pos(), n.End(), leave); m != nil {
		m.removal = true
	}
}

// removeListed removes one of several expressions, and a comma.
func (f *finder) removeListed(list []ast.Expr, i int) {
	if i+1 < len(list) {
		f.removeAs(list[i], list[i].Pos(), list[i+1].Pos())
	} else {
		f.removeAs(list[i], list[i-1].End(), list[i].End())
	}
}

func (f *finder) removeAs(shown ast.Node, from, to token.Pos) {
	f.add(from, to, "", "removed "+short(f.text(shown)))
}

func (f *finder) remove(from, to token.Pos, leave string) *mutant {
	return f.add(from, to, leave, "removed "+short(f.between(from, to)))
}

func (f *finder) replace(n ast.Node, text string) {
	f.add(n.Pos(), n.End(), text, short(f.text(n))+" → "+short(text))
}

func (f *finder) replaceNamed(shown, name ast.Node, others map[string]string) {
	if other := others[f.text(name)]; other != "" {
		rest := f.between(name.End(), shown.End())
		f.replace(shown, other+rest)
	}
}

func (f *finder) add(from, to token.Pos, text, change string) *mutant {
	at := f.set.Position(from)
	e := edit{at.Offset, f.set.Position(to).Offset, text}
	if f.seen[e] {
		return nil
	}
	f.seen[e] = true
	m := &mutant{edit: e, file: f.file, at: at, function: f.function, decl: f.decl, change: change}
	if f.keys[m.key()]++; f.keys[m.key()] > 1 {
		m.change += fmt.Sprintf(" #%d", f.keys[m.key()])
	}
	f.found = append(f.found, m)
	return m
}

func (f *finder) text(n ast.Node) string { return f.between(n.Pos(), n.End()) }

func (f *finder) between(from, to token.Pos) string {
	return string(f.source[f.set.Position(from).Offset:f.set.Position(to).Offset])
}

func (f *finder) without(list []ast.Expr, i int) string {
	var rest []string
	for j, e := range list {
		if j != i {
			rest = append(rest, f.text(e))
		}
	}
	return strings.Join(rest, ", ")
}

// short is a text on one line, of what it begins with.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > 100 {
		return string(letters[:100]) + "…"
	}
	return text
}
