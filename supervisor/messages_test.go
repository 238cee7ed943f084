//go:build linux

package supervisor

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Ids are for good, and people find them in the contract.
func TestMessageIDsAreInTheContract(t *testing.T) {
	source, err := os.ReadFile("messages.go")
	if err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile("../docs/reference/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`(\w+)\s+messageID = "([^"]*)"`).FindAllStringSubmatch(string(source), -1) {
		name, id := match[1], match[2]
		if !regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`).MatchString(id) || seen[id] {
			t.Errorf("%s has id %s: twice, or no random UUID without dashes", name, id)
		}
		seen[id] = true
		if !strings.Contains(string(contract), "`"+id+"`") {
			t.Errorf("%s, %s, is not in docs/reference/contract.md", name, id)
		}
	}
	for reason := range eventMessages {
		if !seen[string(eventMessages[reason])] || !strings.Contains(string(contract), "event `"+reason+"`") {
			t.Errorf("the event %s has no id in docs/reference/contract.md", reason)
		}
	}
	if len(seen) < 19 {
		t.Errorf("only %d ids were found", len(seen))
	}
}
