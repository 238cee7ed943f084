//go:build e2e

package fleet

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// A controller that is killed goes on within seconds of its next start in the same pod: it does not wait for its own Lease. Until no request of the
// one before can arrive it writes nothing, and no node is assigned twice. This test is not parallel: it has a controller of its own.
func TestAKilledControllerGoesOn(t *testing.T) {
	c := newCrew(t, "goes-on", 60, nil)
	c.trial = 5 * time.Second
	c.roll(quick, func(p *v1alpha1.KubeletPool) {
		one := intstr.FromInt32(1)
		p.Spec.Rollout.MaxUnavailable = &one
	})
	var took []time.Duration
	for i := range 4 {
		started, before := time.Now(), len(c.patches())
		p, err := c.f.launchIn("0b1c5a2e-pod", "goes-on")
		if err != nil {
			t.Fatal(err)
		}
		c.awaitPatches(before+1, time.Minute)
		if first := c.patches()[before]; i > 0 { // the first one has to take the Lease of whoever led before
			took = append(took, first.at.Sub(started))
		}
		p.Signal(syscall.SIGKILL)
		<-p.Done
	}
	t.Logf("it went on after %v", took)
	if slices.Sort(took); took[0] > 7*time.Second || took[len(took)-1] > 12*time.Second {
		t.Errorf("it went on after %v", took)
	}
	for _, each := range took {
		if each < 5*time.Second {
			t.Errorf("it went on after %v, when requests of the one before could still arrive", each)
		}
	}
	c.assigned() // none twice
}
