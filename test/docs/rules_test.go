package docs

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

const rulesPage = "docs/why/rules.md"

// untested is in how many rules something has no test. It may only fall.
const untested = 1

var (
	ruleHeading = regexp.MustCompile(`(?m)^## (\d+)\. `)
	namedTest   = regexp.MustCompile("`([a-z][a-z0-9/-]*)\\.((?:Test|Fuzz)[A-Za-z0-9]*)`")
	cited       = regexp.MustCompile(`(?i)\brules? (\d+(?:, \d+)*(?:,? (?:and|to|or) \d+)?)\b`)
	number      = regexp.MustCompile(`\d+`)
)

// Every rule has a number, in order, and names tests that there are. What no test checks is said, and rare.
func TestRules(t *testing.T) {
	text := pages(t)[rulesPage]
	tests := testsOf(tree.Files(t, "_test.go"))
	bare := 0
	for i, section := range ruleHeading.Split(text, -1)[1:] {
		if is := ruleHeading.FindAllStringSubmatch(text, -1)[i][1]; is != strconv.Itoa(i+1) {
			t.Fatalf("rule %s is where rule %d should be: the numbers never change", is, i+1)
		}
		names := namedTest.FindAllStringSubmatch(section, -1)
		for _, name := range names {
			if !tests[name[1]+"."+name[2]] {
				t.Errorf("rule %d names %s.%s, and there is no such test", i+1, name[1], name[2])
			}
		}
		lacks := strings.Count(section, "**No test yet**: ")
		if bare += lacks; len(names) == 0 && lacks == 0 {
			t.Errorf("rule %d names no test", i+1)
		}
	}
	if bare != untested {
		t.Errorf("%d rules say that something has no test yet, and not %d: write tests, and lower the number", bare, untested)
	}
}

// Whoever reads "rule N" finds it on the page of rules, and no page outside of the tree is cited.
func TestCitedRulesExist(t *testing.T) {
	files := tree.Files(t, ".go", ".md", ".sh", ".yaml", "Makefile")
	last := len(ruleHeading.FindAllString(files[rulesPage], -1))
	if last < 28 {
		t.Fatalf("%s has %d rules", rulesPage, last)
	}
	found := 0
	for file, text := range files {
		for _, match := range cited.FindAllStringSubmatch(text, -1) {
			for _, digits := range number.FindAllString(match[1], -1) {
				found++
				if n, err := strconv.Atoi(digits); err != nil || n < 1 || n > last {
					t.Errorf("%s cites %q, and %s has rules 1 to %d", file, match[0], rulesPage, last)
				}
			}
		}
		if strings.Contains(text, "design"+".md") {
			t.Errorf("%s cites a page that is not in the tree; %s has the rules, docs/reference/contract.md the contracts", file, rulesPage)
		}
	}
	if found < 80 {
		t.Errorf("only %d citations were found, so nothing is proved", found)
	}
}

func TestCited(t *testing.T) {
	for text, want := range map[string]string{
		"Rule 5: what":                        "5",
		"the page (rules 1, 2 and 12).":       "1, 2 and 12",
		"rules 1 to 28":                       "1 to 28",
		"rule 19) and 30 more":                "19",
		"a ruler 5, the rules, and rule five": "",
	} {
		got := ""
		if match := cited.FindStringSubmatch(text); match != nil {
			got = match[1]
		}
		if got != want {
			t.Errorf("%q cites %q, want %q", text, got, want)
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]*)\(`)

// testsOf gives the tests of the files, each as FOLDER.NAME.
func testsOf(files map[string]string) map[string]bool {
	tests := map[string]bool{}
	for file, text := range files {
		for _, match := range testFunction.FindAllStringSubmatch(text, -1) {
			tests[path.Dir(file)+"."+match[1]] = true
		}
	}
	return tests
}
