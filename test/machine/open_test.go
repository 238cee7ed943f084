//go:build machine

package machine

import (
	"os"
	"testing"
)

// openFault skips a test that fails because of a fault that is known and not mended yet, and says so. Whoever mends the fault removes the
// line. KUBELET_SUPERVISOR_TEST_OPEN_FAULTS=1 runs these tests all the same.
func openFault(t *testing.T, fault string) {
	t.Helper()
	if os.Getenv("KUBELET_SUPERVISOR_TEST_OPEN_FAULTS") == "" {
		t.Skipf("NOT TESTED, FOR A KNOWN FAULT IS OPEN: %s", fault)
	}
}
