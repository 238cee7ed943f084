package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

var triedBy = regexp.MustCompile(`(?:([a-z][a-z0-9/-]*)\.)?\b(Test[A-Z]\w+)`)

// The tests that test/fleet names for the attacks that it does not try itself are there.
func TestAttacksNameTheirTests(t *testing.T) {
	const list = "test/fleet/attacks_elsewhere_test.go"
	files := tree.Files(t, "_test.go")
	tests, named := testsOf(files), 0
	for line := range strings.Lines(files[list]) {
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
