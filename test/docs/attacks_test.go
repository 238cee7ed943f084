package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

var triedBy = regexp.MustCompile(`(?:([a-z][a-z0-9/-]*)\.)?\b(Test[A-Z]\w+)`)

// elsewhereFile has the attacks that test/fleet does not try itself.
const elsewhereFile = "test/fleet/attacks_elsewhere_test.go"

// rightsCell is a cell of a table of rights, or what several do there, and attackRow is one of TestAttacks.
var (
	rightsCell = regexp.MustCompile(`(test/e2e\.)?TestRights(?:, ([^:;"]+))?: ([^;"]+)`)
	attackRow  = regexp.MustCompile(`TestAttacks, (\d+)`)
)

// The tests that test/fleet names for these are there, with the cells of tables and the rows that are named.
func TestAttacksNameTheirTests(t *testing.T) {
	const list = elsewhereFile
	files := tree.Files(t, "_test.go")
	tests, named, attacks, tables := testsOf(files), 0, attacksOf(files), tablesOfRights(pages(t)["docs/why/security.md"])
	for line := range strings.Lines(files[list]) {
		for _, found := range rightsCell.FindAllStringSubmatch(line, -1) {
			who, acts := tables["to"].columns, tables["to"].rows
			if found[1] != "" {
				who, acts = tables["who"].rows, tables["who"].columns
			}
			if found[2] != "" && !who[found[2]] || found[3] != "each act" && !acts[found[3]] {
				t.Errorf("no table of rights has %s", found[0])
			}
		}
		for _, found := range attackRow.FindAllStringSubmatch(line, -1) {
			if !attacks[found[1]] {
				t.Errorf("TestAttacks runs no attack %s", found[1])
			}
		}
		_, says, _ := strings.Cut(line, `: `)
		for _, found := range triedBy.FindAllStringSubmatch(says, -1) {
			folder := found[1]
			if folder == "" {
				folder = path.Dir(list)
			}
			if named++; !tests[folder+"."+found[2]] {
				t.Errorf("there is no test %s.%s, which stands for: %s", folder, found[2], strings.TrimSpace(line))
			}
		}
	}
	if named < 60 {
		t.Errorf("only %d tests are named", named)
	}
}
