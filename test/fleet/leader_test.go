//go:build e2e && long

package fleet

import (
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// These tests are not parallel: they have controllers of their own, and end before the shared one begins.

// A leader that stands still in the middle of its PATCHes sends none when it goes on: another leads by then, and has seen a verdict.
func TestLongALeaderThatStandsStill(t *testing.T) {
	c := newCrew(t, "stands-still", 80, nil)
	first := c.f.start(t, "first")
	c.roll(together)
	c.awaitPatches(12, time.Minute)
	first.Signal(syscall.SIGSTOP)
	c.quiet(2 * time.Second)
	before := c.attempts()
	victim := c.puppets[before[len(before)-1].node]
	var n *corev1.Node
	for i := range 80 {
		if n = c.node(i + 1); n.Name == victim.name {
			break
		}
	}
	victim.say(n.Annotations[nodev1.ConfigSourceAnnotation], rollout.ParseRetry(n.Annotations[nodev1.RetryAnnotation]), nodev1.ReasonRefused, "")
	c.f.start(t, "second")
	c.await("the second one has stopped the pool", 90*time.Second, func(p *v1alpha1.KubeletPool) bool { return len(p.Status.Stops) == 1 })
	c.quiet(3 * time.Second)
	sent := len(c.attempts())
	first.Signal(syscall.SIGCONT)
	select {
	case <-first.Done:
	case <-time.After(30 * time.Second):
		t.Error("a leader that has lost its Lease goes on")
	}
	if now := len(c.attempts()); now != sent {
		t.Errorf("the one that stood still sent %d more", now-sent)
	}
	t.Logf("%d were patched before it stood still, %d in all", len(before), sent)
}

// Killed again and again, a rollout comes to its end; no node is assigned twice, and no wave is exceeded.
func TestLongKilledControllers(t *testing.T) {
	c := newCrew(t, "killed", 60, nil)
	c.roll(quick, func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(5)}, {Nodes: intstr.FromString("50%")}, {Nodes: intstr.FromString("100%")}}
		all := intstr.FromString("100%")
		p.Spec.Rollout.MaxUnavailable = &all
	})
	for _, after := range []int{1, 3, 10, 20} {
		p := c.f.start(t, "killed", "--leader-elect=false")
		c.awaitPatches(after, time.Minute)
		p.Signal(syscall.SIGKILL)
		<-p.Done
	}
	c.f.start(t, "killed", "--leader-elect=false")
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 90*time.Second)
	c.checkWaves(c.source(), 0, 60, 5, 30, 60)
}
