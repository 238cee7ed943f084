// Package purity tells whether the code of a package is pure: whether nothing of it reaches a clock, a disk, the net or a process, starts a
// goroutine, or keeps anything from one call to the next. It looks at the syntax tree; linters look too.
package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Rules are what a package may use.
type Rules struct {
	Imports []string            // all packages that it may import
	Only    map[string][]string // of these packages, by path, nothing but that
}

// clocks are forbidden wherever they come from.
var clocks = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

// impure are samples that every set of rules has to notice.
var impure = map[string]string{
	"the disk":                     `import "os"`,
	"the net":                      `import "net/http"`,
	"a goroutine":                  `func f() { go f() }`,
	"a channel":                    `var c chan int`,
	"a select":                     `func f() { select {} }`,
	"a clock":                      `import "time"; var t = time.Now()`,
	"a clock behind another name":  `import clock "time"; var t = clock.Now`,
	"a timer":                      `import "time"; var t = time.NewTimer(1)`,
	"the API's clock":              `import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"; func f() { metav1.Now() }`,
	"another package's files":      `import "github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"; func f() { kubeletconfig.LocalContent(nil) }`,
	"the formatter's own output":   `import "fmt"; func f() { fmt.Println() }`,
	"everything without its name":  `import . "time"`,
	"state that outlives the call": `var n = 0`,
	"errors that outlive the call": `import "errors"; var e = f()`,
}

// Check fails the test for what the package in this folder has that it must not have, and for samples of it that the rules do not notice.
func (r Rules) Check(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		looked++
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range r.faults(t, file.Name(), text) {
			t.Error(fault)
		}
	}
	if looked < 10 {
		t.Errorf("only %d files were looked at", looked)
	}
	for name, code := range impure {
		if len(r.faults(t, name, []byte("package sample\n"+code+"\n"))) == 0 {
			t.Errorf("%s is not noticed: %s", name, code)
		}
	}
}

// faults lists what a file has that is not pure.
func (r Rules) faults(t *testing.T, name string, text []byte) (faults []string) {
	t.Helper()
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(at ast.Node, format string, words ...any) {
		faults = append(faults, files.Position(at.Pos()).String()+": "+fmt.Sprintf(format, words...))
	}
	packages := map[string]string{}
	for _, spec := range tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if !slices.Contains(r.Imports, path) {
			fault(spec, "imports %s", path)
		}
		as := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if as == "." || as == "_" {
			fault(spec, "imports %s as %s", path, as)
		}
		packages[as] = path
	}
	for _, declaration := range tree.Decls {
		if d, is := declaration.(*ast.GenDecl); is && d.Tok == token.VAR && !sentinels(d) {
			fault(d, "has a variable of the package")
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			fault(n, "has a goroutine, a channel or a select")
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && r.forbids(packages[x.Name], n.Sel.Name) {
				fault(n, "uses %s.%s", x.Name, n.Sel.Name)
			}
		}
		return true
	})
	return faults
}

func (r Rules) forbids(path, name string) bool {
	only, limited := r.Only[path]
	return slices.Contains(clocks[path], name) || limited && !slices.Contains(only, name)
}

// sentinels: variables that are nothing but an error to compare with.
func sentinels(d *ast.GenDecl) bool {
	for _, spec := range d.Specs {
		values := spec.(*ast.ValueSpec).Values
		if len(values) == 0 || slices.ContainsFunc(values, func(v ast.Expr) bool { return !isNewError(v) }) {
			return false
		}
	}
	return true
}

func isNewError(v ast.Expr) bool {
	call, is := v.(*ast.CallExpr)
	if !is {
		return false
	}
	f, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	from, is := f.X.(*ast.Ident)
	return is && from.Name == "errors" && f.Sel.Name == "New"
}
