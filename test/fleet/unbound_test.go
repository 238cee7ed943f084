//go:build e2e

package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Pods that no scheduler has given a node, and pods that a kubelet turns away, hold up no pool: the controller looks at both.
func TestPodsWithoutANodeAndPodsTurnedAway(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 4, nil)
	c.pod("waits", "", func(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" })
	c.pod("turned", c.nodes(0)[0].Name, nil)
	turned := c.podNow("turned")
	turned.Status.Phase, turned.Status.Reason, turned.Status.Message = corev1.PodFailed, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
	if err := c.f.admin.Status().Update(t.Context(), turned); err != nil {
		t.Fatal(err)
	}
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	waits := c.podNow("waits")
	if err := c.f.admin.SubResource("binding").Create(t.Context(), waits, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: c.nodes(0)[1].Name}}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	c.change(`{"spec":{"layers":[{"name":"fleet","inline":{"maxPods":77}}]}}`)
	c.await("the next one is through", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Stable != nil && p.Status.Stable.Revision == 2 })
}
