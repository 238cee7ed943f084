//go:build e2e

package fleet

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// The smallest pool that settles at once moves 40 nodes by the default waves, one PATCH each.
func TestDefaultWaves(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 40, nil)
	c.f.steady(t)
	c.roll(quick)
	if _, err := c.f.Kubectl(t.Context(), "wait", "--for=condition=Ready", "kpool/"+c.pool, "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
	c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Second)
	c.checkWaves(c.source(), 0, 4, 1, 4, 20, 40)
}
