//go:build linux

package cli

import (
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli/signals"
)

// A program that is handed something over listens to signals from its first moment on: both go by the same variable.
func TestSignalsKnowAHandover(t *testing.T) {
	if supervisor.TakeHandover() != nil {
		t.Fatal("the test itself was handed something over")
	}
	t.Setenv(signals.HandoverVariable, "nothing that can be used")
	if supervisor.TakeHandover() == nil {
		t.Errorf("a handover is not in %s", signals.HandoverVariable)
	}
}
