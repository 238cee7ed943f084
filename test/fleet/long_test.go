//go:build e2e && long

package fleet

import (
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
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

// In a wave of 400 one node refuses when 200 have been assigned: what was in flight arrives, and nothing is sent a second later.
func TestLongFailureInAWaveOf400(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 401, nil)
	c.nature = refusedByThe(200)
	c.f.steady(t)
	c.roll(together)
	stop := c.awaitReason(v1alpha1.ConditionStalled, "Stopped", 3*time.Minute).Status.Stops[0]
	c.checkAfterVerdict(stop)
	if sent := len(c.patches()); sent < 200 || sent > 215 {
		t.Errorf("%d were patched", sent)
	}
}
