package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// typesPackage has the kubelet's configuration as people write it.
const typesPackage = "k8s.io/kubelet/config/v1beta1"

// ownJSON are the types that read and write themselves, by what they look like as JSON.
var ownJSON = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            "time",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        "quantity",
	"k8s.io/apimachinery/pkg/api/resource.QuantityValue":   "quantity",
	"k8s.io/component-base/logs/api/v1.TimeOrMetaDuration": "duration",
	"time.Duration": "int64",
}

// A typeReader reads types from their source: each kubelet's are of other modules, and not all of them go into one program.
type typeReader struct {
	folder   func(importPath string) (string, error) // of a package
	packages map[string]*sourcePackage
}

// A sourcePackage is what the source of a package declares.
type sourcePackage struct {
	path    string
	types   map[string]ast.Expr
	imports map[string]string // by the name in the source
}

// A place is a type and the package that its names are of.
type place struct {
	in   *sourcePackage
	expr ast.Expr
}

// fieldTypes gives the type of each field of KubeletConfiguration by its path, kind and apiVersion left out. What is in the items of a list
// has the path of the list before it.
func (r *typeReader) fieldTypes() (map[string]string, error) {
	in, err := r.read(typesPackage)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	return found, r.visit(place{in, &ast.Ident{Name: "KubeletConfiguration"}}, "", found)
}

func (r *typeReader) visit(at place, prefix string, found map[string]string) error {
	_, structure, err := r.describe(at)
	if err != nil {
		return err
	}
	for _, field := range structure.expr.(*ast.StructType).Fields.List {
		name, err := jsonName(field)
		if err != nil {
			return err
		}
		inside := place{structure.in, field.Type}
		switch {
		case name == "-" || isTypeMeta(field.Type):
			continue
		case name == "" && len(field.Names) == 0: // embedded: its fields are the structure's own
			if err := r.visit(inside, prefix, found); err != nil {
				return err
			}
			continue
		}
		text, below, err := r.describe(inside)
		if err != nil {
			return fmt.Errorf("%s%s: %w", prefix, name, err)
		}
		found[prefix+name] = text
		if below.expr != nil {
			if err := r.visit(below, prefix+name+".", found); err != nil {
				return err
			}
		}
	}
	return nil
}

func jsonName(field *ast.Field) (string, error) {
	if field.Tag == nil {
		return "", nil
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name, err
}

func isTypeMeta(expr ast.Expr) bool {
	selector, is := expr.(*ast.SelectorExpr)
	return is && selector.Sel.Name == "TypeMeta"
}

// describe says what a type looks like as JSON, and gives the structure that it, or each item of it, is.
func (r *typeReader) describe(at place) (text string, structure place, err error) {
	switch expr := at.expr.(type) {
	case *ast.StarExpr:
		return r.describe(place{at.in, expr.X})
	case *ast.ArrayType:
		text, structure, err = r.describe(place{at.in, expr.Elt})
		return "[]" + text, structure, err
	case *ast.MapType:
		text, _, err = r.describe(place{at.in, expr.Value})
		return "map[string]" + text, place{}, err
	case *ast.StructType:
		return "object", at, nil
	case *ast.SelectorExpr:
		path, known := at.in.imports[expr.X.(*ast.Ident).Name]
		if !known {
			return "", place{}, fmt.Errorf("%s has no import %s", at.in.path, expr.X)
		}
		if text := ownJSON[path+"."+expr.Sel.Name]; text != "" {
			return text, place{}, nil
		}
		in, err := r.read(path)
		if err != nil {
			return "", place{}, err
		}
		return r.describe(place{in, expr.Sel})
	case *ast.Ident:
		if text := ownJSON[at.in.path+"."+expr.Name]; text != "" {
			return text, place{}, nil
		}
		declared, is := at.in.types[expr.Name]
		if !is {
			return expr.Name, place{}, nil // a type of the language
		}
		return r.describe(place{at.in, declared})
	}
	return "", place{}, fmt.Errorf("%T in %s is no type that is known here", at.expr, at.in.path)
}

// read reads a package once.
func (r *typeReader) read(importPath string) (*sourcePackage, error) {
	if known := r.packages[importPath]; known != nil {
		return known, nil
	}
	folder, err := r.folder(importPath)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	found := &sourcePackage{path: importPath, types: map[string]ast.Expr{}, imports: map[string]string{}}
	for _, file := range files {
		if name := filepath.Base(file); strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		if err := found.add(file); err != nil {
			return nil, err
		}
	}
	if len(found.types) == 0 {
		return nil, fmt.Errorf("%s declares no types: %w", folder, fs.ErrNotExist)
	}
	r.packages[importPath] = found
	return found, nil
}

func (p *sourcePackage) add(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("reading types: %w", err)
	}
	for _, imported := range parsed.Imports {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return err
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if imported.Name != nil {
			name = imported.Name.Name
		}
		p.imports[name] = path
	}
	for _, declaration := range parsed.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			declared := spec.(*ast.TypeSpec)
			p.types[declared.Name.Name] = declared.Type
		}
	}
	return nil
}
