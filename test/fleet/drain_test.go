//go:build e2e

package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

func drainsWithin(timeout time.Duration) func(*v1alpha1.KubeletPool) {
	return func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.Disruption, p.Spec.Rollout.DrainTimeout = v1alpha1.DisruptionDrain, &metav1.Duration{Duration: timeout}
	}
}

// drainOf is what the Node says of a drain, and whether it is cordoned.
func (c *crew) drainOf(i int) (annotation string, cordoned bool) {
	c.t.Helper()
	n := c.node(i)
	return n.Annotations[rollout.DrainAnnotation], n.Spec.Unschedulable
}

func (c *crew) awaitDrain(i int) {
	c.t.Helper()
	c.awaitThat(fmt.Sprintf("node %d is drained", i), time.Minute, func() bool {
		annotation, cordoned := c.drainOf(i)
		return cordoned && rollout.ParseDrain(annotation).Pool == c.pool
	})
}

// awaitOver waits until a node was drained in vain, and gives the reason.
func (c *crew) awaitOver(i int) (words string) {
	c.t.Helper()
	c.awaitThat(fmt.Sprintf("node %d was drained in vain", i), 90*time.Second, func() bool {
		annotation, _ := c.drainOf(i)
		words = rollout.ParseDrain(annotation).Over
		return words != ""
	})
	return words
}

// A node that waits for its pods is cordoned, and its pods are evicted once their PodDisruptionBudget lets them; then it passes by itself and is
// uncordoned. The controller is killed in the middle, and the next one goes on. Pods of a DaemonSet stay, and so does somebody else's cordon.
//
// It is not parallel: it has controllers of its own, and ends before the shared one begins.
func TestADrain(t *testing.T) {
	c := newCrew(t, "drained", 3, nil)
	c.nature, c.holds = always(nodev1.ReasonWouldDisrupt), c.heldByPods
	c.pod("web-1", "drained-1", nil)
	c.pod("agent", "drained-1", ofDaemonSet)
	c.protect(1)
	if _, err := c.f.Kubectl(t.Context(), "cordon", "drained-2"); err != nil {
		t.Fatal(err)
	}
	first := c.f.start(t, "drain-first", "--leader-elect=false")
	c.roll(together, drainsWithin(10*time.Minute))
	c.awaitDrain(1)
	c.await("the pool tells of it", time.Minute, func(p *v1alpha1.KubeletPool) bool {
		return strings.Contains(messageOf(p, v1alpha1.ConditionProgressing), "1 of them are being drained")
	})
	c.quiet(3 * time.Second)
	first.Signal(syscall.SIGKILL)
	<-first.Done
	if _, cordoned := c.drainOf(1); !cordoned || !c.hasPod("web-1") {
		t.Errorf("when the controller was killed the node was cordoned: %v; web-1 was there: %v", cordoned, c.hasPod("web-1"))
	}
	c.f.start(t, "drain-second", "--leader-elect=false")
	c.pod("web-2", "drained-2", nil)
	c.awaitThat("web-1 is gone", time.Minute, func() bool { return !c.hasPod("web-1") })
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
	c.awaitThat("node 1 is uncordoned", 30*time.Second, func() bool {
		annotation, cordoned := c.drainOf(1)
		return annotation == "" && !cordoned
	})
	if !c.hasPod("agent") || !c.hasPod("web-2") {
		t.Error("pods are gone that nobody had to evict")
	}
	if n := c.node(2); !n.Spec.Unschedulable || n.Annotations[rollout.DrainAnnotation] != "" || n.Annotations[nodev1.ConfigSourceAnnotation] != "" {
		t.Errorf("the node that somebody else has cordoned: %v, %v", n.Spec.Unschedulable, n.Annotations)
	}
	if p.Status.Nodes.Skipped != 1 || p.Status.Nodes.Proven != 2 {
		t.Errorf("its status is %+v", p.Status.Nodes)
	}
}

// A drain that comes to nothing ends: after its time with the PodDisruptionBudget that stood in the way, and at once for a pod that nobody would make
// again. The node is uncordoned, and waits; the pool says why. It is drained again when the annotation is gone.
func TestADrainInVain(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 2, nil)
	c.nature, c.holds = always(nodev1.ReasonWouldDisrupt), c.heldByPods
	one, two := c.pool+"-1", c.pool+"-2"
	c.rewrite(2, func(n *corev1.Node) { n.Status.NodeInfo.Architecture = "arm64" }) // a cohort has one place as long as it has proven nothing
	c.pod("web", one, nil)
	c.pod("other", two, func(p *corev1.Pod) { delete(p.Labels, appLabel) })
	c.pod("bare", two, unowned)
	c.protect(1)
	c.f.steady(t)
	c.roll(together, drainsWithin(6*time.Second))
	want := fmt.Sprintf("timed out after 6s: default/%s-web: The disruption budget %s needs 1 healthy pods and has 1 currently", c.pool, c.pool)
	if got := c.awaitOver(1); got != want {
		t.Errorf("it timed out with %q, not %q", got, want)
	}
	if got, want := c.awaitOver(2), "no drain may take default/"+c.pool+"-bare (it has no controller)"; got != want {
		t.Errorf("it ended with %q, not %q", got, want)
	}
	for i, pod := range []string{"web", "other", "bare"} {
		if !c.hasPod(pod) {
			t.Errorf("pod %d, %s, is gone", i, pod)
		}
	}
	// The pool is told a moment after the Nodes.
	c.await("it says that two were drained in vain", time.Minute, func(p *v1alpha1.KubeletPool) bool {
		return strings.Contains(messageOf(p, v1alpha1.ConditionProgressing), "; 2 were drained without effect, such as "+one+": "+want)
	})
	c.quiet(12 * time.Second)
	for i := range 2 {
		if _, cordoned := c.drainOf(i + 1); cordoned {
			t.Errorf("node %d is cordoned", i+1)
		}
	}
	c.pod("web-2", two, nil)
	if _, err := c.f.Kubectl(t.Context(), "annotate", "node", one, rollout.DrainAnnotation+"-"); err != nil {
		t.Fatal(err)
	}
	c.awaitThat("web is gone", time.Minute, func() bool { return !c.hasPod("web") })
	c.awaitThat("node 1 runs it, and is uncordoned", time.Minute, func() bool {
		n := rollout.ReadNode(c.node(1))
		return n.Reason == nodev1.ReasonActive && !n.Draining && !n.Cordoned && n.Drain == rollout.Drain{}
	})
}

// Whoever uncordons a node ends its drain; whoever cordons it again right after that keeps his cordon.
func TestCordonsOfOthers(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 1, nil)
	c.nature, c.holds = always(nodev1.ReasonWouldDisrupt), c.heldByPods
	one := c.pool + "-1"
	c.pod("web", one, nil)
	c.protect(1)
	c.f.steady(t)
	c.roll(together, drainsWithin(10*time.Minute))
	c.awaitDrain(1)
	for _, act := range []string{"uncordon", "cordon"} {
		if _, err := c.f.Kubectl(t.Context(), act, one); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.awaitOver(1); got != "another user or program has uncordoned the node" {
		t.Errorf("it is over: %q", got)
	}
	c.change(`{"spec":{"rollout":{"disruption":"Hold"}}}`)
	if err := c.f.admin.Delete(t.Context(), c.now()); err != nil {
		t.Fatal(err)
	}
	c.quiet(12 * time.Second)
	if _, cordoned := c.drainOf(1); !cordoned || !c.hasPod("web") {
		t.Errorf("cordoned: %v, the pod is there: %v", cordoned, c.hasPod("web"))
	}
}

// A pool that is deleted in the middle leaves no cordon behind.
func TestAPoolThatIsDeletedInADrain(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "deleted-in-a-drain", 1, nil)
	c.nature, c.holds = always(nodev1.ReasonWouldDisrupt), c.heldByPods
	c.pod("web", c.pool+"-1", nil)
	c.protect(1)
	c.f.steady(t)
	c.roll(together, drainsWithin(10*time.Minute))
	c.awaitDrain(1)
	if err := c.f.admin.Delete(t.Context(), c.now()); err != nil {
		t.Fatal(err)
	}
	c.awaitThat("the node is uncordoned", 30*time.Second, func() bool {
		annotation, cordoned := c.drainOf(1)
		return annotation == "" && !cordoned
	})
	if !c.hasPod("web") {
		t.Error("its pod is gone")
	}
}
