//go:build e2e && long

package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A real kubelet with real pods holds the change. It is drained with a PodDisruptionBudget in the way, passes by itself, and is uncordoned; the pod of a
// DaemonSet runs on.
func TestLongRealDrain(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 0, nil)
	c.f.steady(t)
	r := c.makeReal("")
	c.pod("agent", cluster.NodeName, ofDaemonSet)
	wait(t.Context(), 2*time.Second) // the API dates pods by the second, and the youngest is refused first
	c.pod("web-1", cluster.NodeName, nil)
	c.pod("web-2", cluster.NodeName, nil)
	running := func(name string) func() bool {
		return func() bool { return c.podNow(name).Status.Phase == corev1.PodRunning }
	}
	for _, name := range []string{"agent", "web-1", "web-2"} {
		c.awaitThat(name+" runs", time.Minute, running(name))
	}
	agent := c.podNow("agent").Status.ContainerStatuses[0].ContainerID
	c.protect(2)
	c.roll(quick, drainsWithin(10*time.Minute), func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":2}`) })
	r.await("it is cordoned by the pool", func(n *corev1.Node) bool { return rollout.ReadNode(n).Draining })
	wait(t.Context(), 15*time.Second)
	if !running("web-1")() || !running("web-2")() {
		t.Error("a pod went that its PodDisruptionBudget keeps")
	}
	c.allow(1)
	began := time.Now()
	c.awaitThat("the first one is gone", time.Minute, func() bool { return !c.hasPod("web-1") || !c.hasPod("web-2") })
	c.allow(0)
	c.awaitThat("both are gone", time.Minute, func() bool { return !c.hasPod("web-1") && !c.hasPod("web-2") })
	t.Logf("both pods were gone %v after the budget let them", time.Since(began).Round(time.Second))
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 8*time.Minute)
	t.Logf("the pool was through after %v", time.Since(began).Round(time.Second))
	r.await("it is uncordoned", func(n *corev1.Node) bool {
		return !n.Spec.Unschedulable && n.Annotations[rollout.DrainAnnotation] == ""
	})
	r.wantFields(map[string]any{"maxPods": 2})
	if now := c.podNow("agent"); now.Status.Phase != corev1.PodRunning || now.Status.ContainerStatuses[0].ContainerID != agent {
		t.Errorf("the pod of the DaemonSet is %s, container %s, and was %s", now.Status.Phase, now.Status.ContainerStatuses[0].ContainerID, agent)
	}
}
