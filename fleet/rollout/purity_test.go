package rollout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureImports is all that the core may use: nothing of it reaches a clock, a disk, the net or a process, but for the functions that
// forbidden names.
var pureImports = []string{"bytes", "cmp", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "path", "reflect", "slices", "strconv",
	"strings", "time", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/intstr",
	"github.com/kubelet-supervisor/kubelet-supervisor/config", "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded",
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"}

// clocks are functions of time, and of the API's time.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestTheCoreIsPure(t *testing.T) {
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
		for _, fault := range impure(t, file.Name(), text) {
			t.Error(fault)
		}
	}
	if looked < 10 {
		t.Errorf("only %d files were looked at", looked)
	}
}

func TestImpureCodeIsNoticed(t *testing.T) {
	for name, code := range map[string]string{
		"the disk":                     `import "os"`,
		"the net":                      `import "net/http"`,
		"a goroutine":                  `func f() { go f() }`,
		"a channel":                    `var c chan int`,
		"a select":                     `func f() { select {} }`,
		"a clock":                      `import "time"; var t = time.Now()`,
		"a clock behind another name":  `import clock "time"; var t = clock.Now`,
		"a timer":                      `import "time"; var t = time.NewTimer(1)`,
		"another package's files":      `import "github.com/kubelet-supervisor/kubelet-supervisor/config"; var f = config.LocalContent`,
		"the formatter's own output":   `import "fmt"; func f() { fmt.Println() }`,
		"the API's clock":              `import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"; func f() { metav1.Now() }`,
		"errors that outlive the call": `import "errors"; var e = f()`,
		"everything without its name":  `import . "time"`,
		"state that outlives the call": `var n = 0`,
	} {
		if len(impure(t, name, []byte("package rollout\n"+code+"\n"))) == 0 {
			t.Errorf("%s is not noticed: %s", name, code)
		}
	}
}

// impure lists what a file has that the core must not have.
func impure(t *testing.T, name string, text []byte) (faults []string) {
	t.Helper()
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(at ast.Node, what string) { faults = append(faults, files.Position(at.Pos()).String()+": "+what) }
	packages := map[string]string{}
	for _, spec := range tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if !slices.Contains(pureImports, path) {
			fault(spec, "imports "+path)
		}
		as := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if as == "." || as == "_" {
			fault(spec, "imports "+path+" as "+as)
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
			if x, is := n.X.(*ast.Ident); is && forbidden(packages[x.Name], n.Sel.Name) {
				fault(n, "uses "+x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}

// sentinels: variables that are nothing but an error to compare with.
func sentinels(d *ast.GenDecl) bool {
	for _, spec := range d.Specs {
		value := spec.(*ast.ValueSpec)
		for _, v := range value.Values {
			call, is := v.(*ast.CallExpr)
			if !is {
				return false
			}
			if f, is := call.Fun.(*ast.SelectorExpr); !is || f.Sel.Name != "New" {
				return false
			}
		}
		if len(value.Values) == 0 {
			return false
		}
	}
	return true
}

func forbidden(path, name string) bool {
	switch {
	case path == "time":
		return slices.Contains(clocks, name)
	case strings.HasSuffix(path, "/meta/v1"):
		return name == "Now" || name == "NowMicro"
	case path == "fmt":
		return !strings.HasPrefix(name, "Sprint") && name != "Errorf" && name != "Sscanf"
	case strings.HasSuffix(path, "/config"):
		return name != "Decode"
	case strings.HasSuffix(path, "/bounded"):
		return name != "Text"
	}
	return false
}
