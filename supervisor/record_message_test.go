//go:build linux

package supervisor

import (
	"strings"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// However much there is to say, the Node's condition and systemctl keep what runs and what to do.
func TestAMessageKeepsItsEnd(t *testing.T) {
	parts := []string{"using current (default)", strings.Repeat("w", 600), "last exit: " + strings.Repeat("e", 500), "approve with 0123456789ab"}
	shown := core.Statement{Reason: nodev1.ReasonWouldDisrupt, Parts: parts}
	for what, got := range map[string]struct {
		text  string
		limit int
		begin string
	}{
		"condition": {nodeReport(shown).Condition.Message, 1024, "using current (default); www"},
		"STATUS=":   {statusLine(shown), statusLimit, "WouldDisrupt: using current (default); www"},
	} {
		if len(got.text) > got.limit || !strings.HasPrefix(got.text, got.begin) || !strings.HasSuffix(got.text, "e…; approve with 0123456789ab") {
			t.Errorf("%s: %s", what, got.text)
		}
	}
	if parts[0] != "using current (default)" {
		t.Error("the parts were changed")
	}
}
