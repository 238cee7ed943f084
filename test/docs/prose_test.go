package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// laysOut are the functions that may take a message apart, and why.
var laysOut = map[string]string{
	"plugin.wrapped":    "it lays lines out, and reads nothing in them",
	"view.Shorten":      "it cuts the end",
	"rollout.shutsDown": "a kubelet has no other field for that its host goes down; the words are a constant of the kubelet",
	"rejection.Says":    "a pod has no other field for a reason that a newer kubelet may have; the words are constants of the kubelet",
}

// No program reads the message of a condition, an event or a stop (rule 26): it would break at a reworded sentence of another version, and believe
// what anybody has written there. What a program needs is in nodev1.Status.
func TestNoProgramReadsProse(t *testing.T) {
	packages := map[string]map[string]string{}
	for file, text := range tree.Programs(t) {
		if packages[path.Dir(file)] == nil {
			packages[path.Dir(file)] = map[string]string{}
		}
		packages[path.Dir(file)][file] = text
	}
	if len(packages) < 15 {
		t.Errorf("only %d packages were looked at", len(packages))
	}
	for _, files := range packages {
		for _, found := range readersOfProse(t, files) {
			if laysOut[found.function] == "" {
				t.Errorf("%s: %s reads a message; let it read data", found.at, found.function)
			}
		}
	}
}

// The readers that there were, and some more ways to read.
func TestReadersOfProseAreNoticed(t *testing.T) {
	for name, code := range map[string]string{
		"what a message ends with": `func f(c *C) { _, digest, _ := strings.Cut(c.Message, "allow-disruption=") }`,
		"of a member":              `func f(m *member) { _, holds, _ := strings.Cut(m.node.Message, " waits: ") }`,
		"by a function": `func (v view) words() string { return bounded.Line(v.condition.Message) }
			func part(message string) string { for part := range strings.SplitSeq(message, "; ") { return part }; return "" }
			func f(v view) { print(part(v.words())) }`,
		"by a pattern":            `func f(c C) { if found := period.FindStringSubmatch(c.Message); found != nil { print(found[1]) } }`,
		"by a pattern, at length": `func f(stop Stop) { words := uids.ReplaceAllString(bounded.Line(stop.Message), "") }`,
		"with a prefix":           `func f(stop Stop) { words := stop.Message; if strings.HasPrefix(words, "using ") { print(words) } }`,
		"for its layout":          `func f(v view) { for _, part := range strings.Split(v.c.Message, "; ") { print(part) } }`,
		"joined with more":        `func f(c C) { text := c.Reason + ": " + c.Message; print(strings.Fields(text)) }`,
		"formatted":               `func f(c C) { text := fmt.Sprintf("%s", c.Message); print(text[:3]) }`,
		"compared":                `func f(c C) bool { return c.Message == "all is well" }`,
		"chosen by":               `func f(c C) { switch c.Message { case "a": } }`,
		"scanned":                 `func f(c C) { fmt.Sscanf(c.Message, "%d", &n) }`,
		"decoded":                 `func f(c C) { json.Unmarshal([]byte(c.Message), &n) }`,
		"handed on twice": `func a(words string) { b(words) }
			func b(words string) { print(strings.Count(words, ";")) }
			func f(c C) { a(c.Message) }`,
	} {
		if len(readersOfProse(t, map[string]string{"sample.go": "package sample\n" + code})) == 0 {
			t.Errorf("%s: it is not noticed: %s", name, code)
		}
	}
	for name, code := range map[string]string{
		"it is shown":            `func f(c C) { fmt.Println(bounded.Line(c.Reason + ": " + c.Message)) }`,
		"it is handed on":        `func f(c C) Event { return Event{Message: c.Message} }`,
		"it is compared with it": `func f(a, b C) bool { return a.Message == b.Message }`,
		"it is not there":        `func f(c C) bool { return c.Message == "" }`,
		"something else is read": `func f(c C) { print(strings.Cut(c.Reason, " ")); print(c.Message) }`,
	} {
		if found := readersOfProse(t, map[string]string{"sample.go": "package sample\n" + code}); len(found) > 0 {
			t.Errorf("%s: it is noticed: %s", name, code)
		}
	}
}

// proseReader is a place where something that came out of a message is taken apart.
type proseReader struct{ at, function string }

// messages follows what comes out of the fields named Message through one package, by its names: there are no types in it.
type messages struct {
	set       *token.FileSet
	functions map[string]*ast.FuncDecl
	gives     map[string]bool         // functions that give a message back
	takes     map[string]map[int]bool // parameters that are given one
	found     []proseReader
	grown     bool
}

func readersOfProse(t *testing.T, files map[string]string) []proseReader {
	t.Helper()
	p := &messages{set: token.NewFileSet(), functions: map[string]*ast.FuncDecl{}, gives: map[string]bool{}, takes: map[string]map[int]bool{}}
	for file, text := range files {
		parsed, err := parser.ParseFile(p.set, file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				p.functions[f.Name.Name] = f
			}
		}
	}
	for p.grown = true; p.grown; {
		p.grown, p.found = false, nil
		for _, f := range p.functions {
			p.follow(f)
		}
	}
	return p.found
}

// follow goes through one function, with what is known of its parameters so far.
func (p *messages) follow(f *ast.FuncDecl) {
	holds, at := map[string]bool{}, 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			holds[name.Name] = p.takes[f.Name.Name][at]
			at++
		}
	}
	for range 3 { // what is assigned below may be used above, in a loop
		ast.Inspect(f.Body, func(n ast.Node) bool { p.assign(n, holds); return true })
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			if slices.ContainsFunc(n.Results, func(e ast.Expr) bool { return p.isProse(e, holds) }) && !p.gives[f.Name.Name] {
				p.gives[f.Name.Name], p.grown = true, true
			}
		case *ast.CallExpr:
			p.handOn(n, holds)
		}
		if p.reads(n, holds) {
			p.found = append(p.found, proseReader{p.set.Position(n.Pos()).String(), path.Base(path.Dir(p.set.Position(n.Pos()).Filename)) + "." + f.Name.Name})
		}
		return true
	})
}

func (p *messages) assign(n ast.Node, holds map[string]bool) {
	mark := func(to ast.Expr) {
		if name, is := to.(*ast.Ident); is && name.Name != "_" {
			holds[name.Name] = true
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, from := range n.Rhs {
			if !p.isProse(from, holds) {
				continue
			}
			for j, to := range n.Lhs {
				if len(n.Rhs) == 1 || i == j {
					mark(to)
				}
			}
		}
	case *ast.ValueSpec:
		for i, from := range n.Values {
			if p.isProse(from, holds) && i < len(n.Names) {
				mark(n.Names[i])
			}
		}
	case *ast.RangeStmt:
		if p.isProse(n.X, holds) {
			mark(n.Value)
		}
	}
}

// handOn notes which parameters of functions of this package are given a message.
func (p *messages) handOn(call *ast.CallExpr, holds map[string]bool) {
	name := nameOf(call.Fun)
	if p.functions[name] == nil || fromPackage(call.Fun) != "" {
		return
	}
	for i, argument := range call.Args {
		if p.isProse(argument, holds) && !p.takes[name][i] {
			if p.takes[name] == nil {
				p.takes[name] = map[int]bool{}
			}
			p.takes[name][i], p.grown = true, true
		}
	}
}

// isProse tells whether an expression is a message, or made of one.
func (p *messages) isProse(e ast.Expr, holds map[string]bool) bool {
	is := func(e ast.Expr) bool { return p.isProse(e, holds) }
	switch e := e.(type) {
	case *ast.Ident:
		return holds[e.Name]
	case *ast.SelectorExpr:
		return e.Sel.Name == "Message"
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (is(e.X) || is(e.Y))
	case *ast.ParenExpr:
		return is(e.X)
	case *ast.SliceExpr:
		return is(e.X)
	case *ast.IndexExpr:
		return is(e.X)
	case *ast.CallExpr:
		name, from := nameOf(e.Fun), fromPackage(e.Fun)
		if from == "" && p.functions[name] != nil {
			return p.gives[name]
		}
		_, converts := e.Fun.(*ast.ArrayType)
		passes := converts || name == "string" || slices.Contains([]string{"fmt", "strings", "bytes", "bounded", "cmp"}, from) || isPattern(name)
		return passes && slices.ContainsFunc(e.Args, is)
	}
	return false
}

// reads tells whether this takes a message apart, or decides by it.
func (p *messages) reads(n ast.Node, holds map[string]bool) bool {
	is := func(e ast.Expr) bool { return e != nil && p.isProse(e, holds) }
	switch n := n.(type) {
	case *ast.CallExpr:
		name, from := nameOf(n.Fun), fromPackage(n.Fun)
		takesApart := (from == "strings" || from == "bytes" || from == "strconv") && name != "Join" || isPattern(name) ||
			from == "fmt" && strings.HasPrefix(name, "Sscan") || name == "Unmarshal" || from == "time" && strings.HasPrefix(name, "Parse")
		return takesApart && slices.ContainsFunc(n.Args, is)
	case *ast.SliceExpr:
		return is(n.X)
	case *ast.IndexExpr:
		return is(n.X) && !isText(n.Index) // else it is a map
	case *ast.SwitchStmt:
		return is(n.Tag)
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) && (is(n.X) && isText(n.Y) || is(n.Y) && isText(n.X))
	}
	return false
}

// isPattern tells whether it may be a method of a regular expression.
func isPattern(method string) bool {
	return slices.ContainsFunc([]string{"Find", "Match", "ReplaceAll", "Split"}, func(begin string) bool { return strings.HasPrefix(method, begin) })
}

func isText(e ast.Expr) bool {
	text, is := e.(*ast.BasicLit)
	return is && text.Kind == token.STRING && len(text.Value) > len(`""`)
}

func nameOf(called ast.Expr) string {
	switch f := called.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// fromPackage is the standard or own package that a function is called of; empty where it is none of those that matter.
func fromPackage(called ast.Expr) string {
	f, is := called.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	from, is := f.X.(*ast.Ident)
	if is && slices.Contains([]string{"fmt", "strings", "bytes", "strconv", "time", "bounded", "cmp", "json", "regexp", "slices", "errors"}, from.Name) {
		return from.Name
	}
	return ""
}
