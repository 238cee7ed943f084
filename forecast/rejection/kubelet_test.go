package rejection

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reasons are compared with the source code of the kubelets that the tests run: whatever reason one of them has for turning a pod away is
// known here.
func TestReasonsAreTheKubelets(t *testing.T) {
	for module, wanted := range map[string]bool{"kubernetes": true, "kubernetes-1.24": false} {
		t.Run(module, func(t *testing.T) {
			folder := sourceFolder(t, module, wanted)
			s := source{folder: folder, files: map[string][]*ast.File{}}
			found := s.reasons(t)
			if len(found) < 15 {
				t.Errorf("only %d reasons were found: %v", len(found), found)
			}
			for _, reason := range found {
				if !Known(reason) && reason != Evicted {
					t.Errorf("the kubelet's reason %q is not known", reason)
				}
			}
			if said := s.said(t); wanted && said != Prefix {
				t.Errorf("the kubelet's messages begin with %q, want %q", said, Prefix)
			}
		})
	}
}

// sourceFolder is where the Kubernetes sources of one module of test/parts are. What is not wanted is not downloaded.
func sourceFolder(t *testing.T, module string, wanted bool) string {
	t.Helper()
	words := []string{"list", "-m", "-json", "k8s.io/kubernetes"}
	if wanted {
		words = []string{"mod", "download", "-json", "k8s.io/kubernetes"}
	}
	command := exec.CommandContext(t.Context(), "go", words...)
	command.Dir = filepath.Join("../../test/parts", module)
	output, err := command.Output()
	var got struct{ Dir string }
	if err != nil || json.Unmarshal(output, &got) != nil || got.Dir == "" {
		t.Skipf("the sources of %s are not there, and cannot be had: %v", module, err)
	}
	return got.Dir
}

// A source is the tree of Kubernetes, parsed folder by folder.
type source struct {
	folder string
	files  map[string][]*ast.File // by the folder inside it
}

// reasons are all that the kubelet's admission gives.
func (s source) reasons(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	note := func(folder string, file *ast.File, e ast.Expr) {
		if text, is := s.text(t, folder, file, e); is {
			found[text] = true
		}
	}
	for _, folder := range s.kubeletFolders(t) {
		for _, file := range s.parsed(t, folder) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if field := reasonField[typeName(n.Type)]; field != "" {
						note(folder, file, element(n, field))
					}
				case *ast.CallExpr: // rejectPod(…, reason, message)
					if typeName(n.Fun) != "rejectPod" {
						break
					}
					if _, local := n.Args[len(n.Args)-2].(*ast.Ident); !local { // the reason of a result
						note(folder, file, n.Args[len(n.Args)-2])
					}
				case *ast.AssignStmt: // of what becomes the reason of a result
					if name, is := n.Lhs[0].(*ast.Ident); is && name.Name == "reason" && strings.HasSuffix(folder, "/lifecycle") {
						note(folder, file, n.Rhs[0])
					}
				case *ast.FuncDecl: // an error of an admission has a type
					if n.Recv != nil && n.Name.Name == "Type" && strings.Contains(folder, "/kubelet/cm") && len(n.Body.List) == 1 {
						if result, is := n.Body.List[0].(*ast.ReturnStmt); is {
							note(folder, file, result.Results[0])
						}
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// reasonField is the field that has the reason, by the name of the type. A result of the scheduler's part has a name for it.
var reasonField = map[string]string{"PodAdmitResult": "Reason", "PredicateFailureError": "PredicateName", "AdmissionResult": "Name"}

// said is what the message of a rejected pod begins with.
func (s source) said(t *testing.T) (prefix string) {
	t.Helper()
	for _, file := range s.parsed(t, "pkg/kubelet") {
		ast.Inspect(file, func(n ast.Node) bool {
			if function, is := n.(*ast.FuncDecl); is && function.Name.Name != "rejectPod" {
				return false
			}
			if pair, is := n.(*ast.KeyValueExpr); is {
				if sum, is := pair.Value.(*ast.BinaryExpr); is {
					prefix, _ = s.text(t, "pkg/kubelet", file, sum.X)
				}
			}
			return true
		})
	}
	return prefix
}

// kubeletFolders are those of the kubelet, and the one of the scheduler's part of its admission.
func (s source) kubeletFolders(t *testing.T) []string {
	t.Helper()
	folders := []string{"pkg/scheduler"}
	err := filepath.WalkDir(filepath.Join(s.folder, "pkg/kubelet"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() != "testing" && entry.Name() != "testdata" {
			folder, _ := filepath.Rel(s.folder, name)
			folders = append(folders, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func (s source) parsed(t *testing.T, folder string) []*ast.File {
	t.Helper()
	if files, is := s.files[folder]; is {
		return files
	}
	names, _ := filepath.Glob(filepath.Join(s.folder, folder, "*.go"))
	s.files[folder] = nil
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files[folder] = append(s.files[folder], file)
	}
	return s.files[folder]
}

// text is the value of a text, of a constant, or of one of another package of this tree.
func (s source) text(t *testing.T, folder string, file *ast.File, e ast.Expr) (string, bool) {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		return s.constant(t, folder, e.Name)
	case *ast.SelectorExpr:
		name, is := e.X.(*ast.Ident)
		if !is {
			return "", false
		}
		for _, imported := range file.Imports {
			from, _ := strconv.Unquote(imported.Path.Value)
			if inside, ours := strings.CutPrefix(from, "k8s.io/kubernetes/"); ours &&
				(imported.Name == nil && path.Base(from) == name.Name || imported.Name != nil && imported.Name.Name == name.Name) {
				return s.constant(t, inside, e.Sel.Name)
			}
		}
	}
	return "", false
}

func (s source) constant(t *testing.T, folder, name string) (string, bool) {
	t.Helper()
	for _, file := range s.parsed(t, folder) {
		for _, declaration := range file.Decls {
			general, is := declaration.(*ast.GenDecl)
			if !is || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				values := spec.(*ast.ValueSpec)
				for i, declared := range values.Names {
					if declared.Name == name && i < len(values.Values) {
						return s.text(t, folder, file, values.Values[i])
					}
				}
			}
		}
	}
	return "", false
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// element is what a composite literal has for a field, with its name or without.
func element(literal *ast.CompositeLit, field string) ast.Expr {
	for _, e := range literal.Elts {
		if pair, is := e.(*ast.KeyValueExpr); is {
			if key, is := pair.Key.(*ast.Ident); is && key.Name == field {
				return pair.Value
			}
		} else {
			return e // the first
		}
	}
	return nil
}
