package tree

import (
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packagesPage has a table of the packages of the three programs: what each does, and which others of ours it imports.
const packagesPage = "docs/why/architecture.md"

const module = "github.com/kubelet-supervisor/kubelet-supervisor/"

// TestPackages holds the table against the tree. A row may be about several packages, whose imports of each other it does not name.
// What is below internal is for every package, and is not named as an import.
func TestPackages(t *testing.T) {
	code := regexp.MustCompile("`([^`]+)`")
	quoted := func(cell string) (names []string) {
		for _, name := range code.FindAllStringSubmatch(cell, -1) {
			names = append(names, name[1])
		}
		return names
	}
	imports := importsOfPrograms(t)
	_, section, _ := strings.Cut(Files(t, ".md")[packagesPage], "\n## The packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		packages, want := quoted(cells[1]), map[string]bool{}
		for _, p := range packages {
			named[p] = true
			if imports[p] == nil {
				t.Errorf("%s: there is no package %s", packagesPage, p)
			}
			for other := range imports[p] {
				want[other] = !slices.Contains(packages, other) && !strings.HasPrefix(other, "internal/")
			}
		}
		maps.DeleteFunc(want, func(_ string, is bool) bool { return !is })
		if want, got := slices.Sorted(maps.Keys(want)), slices.Sorted(slices.Values(quoted(cells[3]))); !slices.Equal(got, want) {
			t.Errorf("%s: %s import(s)\n`%s`, not\n`%s`", packagesPage, cells[1], strings.Join(want, "`, `"), strings.Join(got, "`, `"))
		}
	}
	for p := range imports {
		if !named[p] {
			t.Errorf("%s does not name package %s", packagesPage, p)
		}
	}
}

// importsOfPrograms has each package of the three programs, with those of ours that it imports.
func importsOfPrograms(t *testing.T) map[string]map[string]bool {
	imports := map[string]map[string]bool{"packaging/manual": {}}
	for name, content := range Programs(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		p := path.Dir(name)
		if imports[p] == nil {
			imports[p] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			value, _ := strconv.Unquote(spec.Path.Value)
			if other, ours := strings.CutPrefix(value, module); ours {
				imports[p][other] = true
			}
		}
	}
	return imports
}
