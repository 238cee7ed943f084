//go:build linux

package supervisor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every event has a word of its own in the log.
func TestEveryEventHasAWord(t *testing.T) {
	files, err := filepath.Glob("core/*.go")
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile("because.go")
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			method, is := declared.(*ast.FuncDecl)
			if !is || method.Recv == nil || method.Name.Name != "event" {
				continue
			}
			event, is := method.Recv.List[0].Type.(*ast.Ident)
			if !is {
				continue
			}
			events++
			if strings.Count(string(words), "case core."+event.Name+":\n\t\treturn \"") != 1 {
				t.Errorf("the event %s has no word", event.Name)
			}
		}
	}
	if events < 30 {
		t.Errorf("only %d events were found", events)
	}
}
