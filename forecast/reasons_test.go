package forecast

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// Each reason that a forecast has for a pod is one that a kubelet gives, so that pods lost at a restart are recognised by it. Those of our own are
// constants.
func TestReasonsAreKnown(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pair, is := n.(*ast.KeyValueExpr)
			if !is {
				return true
			}
			key, is := pair.Key.(*ast.Ident)
			literal, text := pair.Value.(*ast.BasicLit)
			if !is || !text || key.Name != "Reason" {
				return true
			}
			reason, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if !rejection.Known(reason) && !slices.Contains([]string{rejection.Evicted, rejection.Preempting}, reason) {
				t.Errorf("%s has the reason %q, which no kubelet gives", name, reason)
			}
			return true
		})
	}
	if found < 5 {
		t.Errorf("only %d reasons were found", found)
	}
}
