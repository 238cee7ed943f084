package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The runbook has every reason that a Node can show, in a heading.
func TestReasonsAreInTheRunbook(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "api/node/v1/reason.go"))
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, line := range prose(pages(t)["docs/operate/reasons.md"]) {
		if match := heading.FindStringSubmatch(line); match != nil {
			headings = append(headings, strings.Split(match[1], ", ")...)
		}
	}
	reasons := regexp.MustCompile(`Reason\w+ +Reason += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 15 {
		t.Errorf("found %d reasons in api/node/v1/reason.go", len(reasons))
	}
	for _, reason := range reasons {
		if !strings.Contains(" "+strings.Join(headings, " ")+" ", " "+reason[1]+" ") {
			t.Errorf("docs/operate/reasons.md has no heading for %s", reason[1])
		}
	}
}
