//go:build e2e

package e2e

import (
	"testing"
	"time"
)

// A look is about the files that the kubelet is to be started with: the local one is edited a moment before the way back to it, sooner than the
// supervisor hears of that.
func TestALocalFileThatWasJustEdited(t *testing.T) {
	n := sharedNode(t)
	h := n.running(t, options{}, 4)
	h.k.allRun(t, 4)
	h.assigns(t, with("maxPods", 19))
	h.awaitReason(t, h.change.assignment("kubelet"), "Active")
	h.pods = h.k.allRun(t, 4)
	h.s.writeLocal(t, n.kubeletConfig(with("maxPods", 2)))
	h.unassign(t)
	h.awaitReason(t, "", "WouldDisrupt")
	h.untouched(t, 5*time.Second, "the local file was edited just before")
}
