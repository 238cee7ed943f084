//go:build e2e && long

package fleet

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// The smallest pool, with everything at its defaults, moves 120 nodes by the default waves.
func TestLongSmallestPool(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 120, nil)
	c.f.steady(t)
	c.roll()
	began := time.Now()
	if _, err := c.f.Kubectl(t.Context(), "wait", "--for=condition=Ready", "kpool/"+c.pool, "--timeout=10m"); err != nil {
		t.Fatal(err)
	}
	t.Logf("120 nodes took %v", time.Since(began).Round(time.Second))
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Second)
	if p.Status.Nodes.Proven != 120 || p.Status.Stable.Revision != 1 {
		t.Errorf("its status is %+v", p.Status)
	}
	c.checkWaves(c.source(), 15*time.Second, 12, 1, 12, 60, 120)
}
