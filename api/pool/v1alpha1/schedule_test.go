package v1alpha1

import (
	"os"
	"strings"
	"testing"
)

// A marker cannot be put together from parts, so it repeats what they make.
func TestTheMarkerOfAScheduleHasItsPattern(t *testing.T) {
	text, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	if rule := "self.matches('" + schedulePattern.String() + "')"; !strings.Contains(string(text), `rule="`+rule+`"`) {
		t.Errorf("limits.go does not have the rule\n%s", rule)
	}
}
