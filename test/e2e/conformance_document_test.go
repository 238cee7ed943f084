package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The known differences from upstream that rows of TestConformance show, by their names in docs/evidence/conformance.md.
const (
	refusedWithoutRestart = "refused without restart"
	equalContent          = "equal content"
	eventNamesWhatStarts  = "event names what starts"
	refusedOnTheNode      = "refused on the node"
	uidPins               = "uid pins"
)

// folders are those of packages that the pages name briefly. Every other package is named by its folder.
var folders = map[string]string{"v1": "api/node/v1", "cli": "supervisor/cli", "e2e": "test/e2e", "machine": "test/machine"}

var (
	// A test as a page names it: `PACKAGE.TestName` or `PACKAGE.TestName/case`.
	namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")
	// A row of the table of known differences: | **name** | … | tests |.
	differenceRow = regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|.*\|(.*)\|$`)
)

// TestNamedTests needs no real parts: every test that these pages name exists.
func TestNamedTests(t *testing.T) {
	for _, name := range []string{"conformance.md", "faults.md"} {
		t.Run(name, func(t *testing.T) { wantNamedTests(t, pageOf(t, name)) })
	}
}

func wantNamedTests(t *testing.T, document string) {
	t.Helper()
	sources := map[string]string{}
	named := namedTest.FindAllStringSubmatch(document, -1)
	if len(named) == 0 {
		t.Error("it names no test")
	}
	for _, match := range named {
		name, test, row := match[1], match[2], match[3]
		if _, known := sources[name]; !known {
			sources[name] = testSources(t, filepath.Join("../..", cmp.Or(folders[name], name)))
		}
		switch source := sources[name]; {
		case !strings.Contains(source, "func "+test+"("):
			t.Errorf("%s: package %s has no such test", match[0], name)
		case row != "" && !strings.Contains(source, `"`+row+`"`):
			t.Errorf("%s: package %s has no such case", match[0], name)
		}
	}
}

// TestConformanceDocument needs none either: every known difference has a test, and every known difference that the table shows is in
// the document.
func TestConformanceDocument(t *testing.T) {
	document := pageOf(t, "conformance.md")
	differences := map[string]bool{}
	for _, row := range differenceRow.FindAllStringSubmatch(document, -1) {
		differences[row[1]] = true
		if !namedTest.MatchString(row[2]) {
			t.Errorf("known difference %q names no test", row[1])
		}
	}
	for _, name := range []string{refusedWithoutRestart, equalContent, eventNamesWhatStarts, refusedOnTheNode, uidPins} {
		if !differences[name] {
			t.Errorf("known difference %q is not in the document", name)
		}
	}
}

func pageOf(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/evidence/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func testSources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", folder, err)
	}
	var text strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}
