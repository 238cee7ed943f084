package tree

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"testing"
)

// most is how many methods a receiver has at most. One that has more is a program of its own, whose parts cannot be told apart.
const most = 30

// TestMethods counts the methods of each receiver, over all files of its package that are not tests.
func TestMethods(t *testing.T) {
	count := map[string]int{}
	for name, content := range Programs(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
				count[path.Dir(name)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if n := count[name]; n > most {
			t.Errorf("%s has %d methods, and may have %d: make a value of its own of some of them", name, n, most)
		}
	}
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
