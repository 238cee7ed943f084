//go:build e2e

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A real kubelet refuses the configuration as the canary: its own words stop the pool, it is not restarted, and no other Node is patched.
func TestRealCanaryRefuses(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 6, nil)
	c.f.steady(t)
	r := c.makeReal("")
	before := r.kubelet()
	number := r.rollToRealFirst(func(number int) string { return fmt.Sprintf(`{"maxPods":-%d}`, number) }, quick)
	stop := c.stopped(nodev1.ReasonRefused)
	if want := fmt.Sprintf("invalid configuration: maxPods (--max-pods) -%d must not be a negative number", number); !strings.Contains(stop.Message, want) {
		t.Errorf("the stop says %q, not what the kubelet says: %q", stop.Message, want)
	}
	if got := c.assigned(); len(got) != 1 || got[0].node != cluster.NodeName || stop.Node != cluster.NodeName {
		t.Errorf("patched were %v, and the stop names %s", got, stop.Node)
	}
	if after := r.kubelet(); after != before {
		t.Errorf("kubelet %d was replaced by %d", before, after)
	}
}

// A real kubelet dies of the configuration: held while it may be the node's fault, stopped at the verdict; the node runs what it ran, and no
// other Node is patched. A good one goes through the waves afterwards.
func TestRealCanaryDies(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 6, nil)
	c.f.steady(t)
	r := c.makeReal("")
	r.rollToRealFirst(func(number int) string { return fmt.Sprintf(`{"systemReserved":{"memory":"%dTi"}}`, number) }, quick)
	p := c.awaitReason(v1alpha1.ConditionProgressing, "Held", 2*time.Minute)
	if len(p.Status.Stops) > 0 {
		t.Errorf("it is stopped before the verdict: %+v", p.Status.Stops)
	}
	c.awaitReason(v1alpha1.ConditionStalled, "Stopped", 2*time.Minute)
	stop := c.stopped(nodev1.ReasonRejected)
	if !strings.Contains(stop.Message, "memory") {
		t.Errorf("the stop says %q", stop.Message)
	}
	if got := c.assigned(); len(got) != 1 || got[0].node != cluster.NodeName {
		t.Errorf("patched were %v", got)
	}
	r.wantFields(map[string]any{"maxPods": 20})
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":31}}]}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
	r.wantFields(map[string]any{"maxPods": 31, "eventRecordQPS": 7})
}

// Layers lie over whatever a node's own file says, for a member as for a node that joins, and a file that changes is the node's business: the
// pool stays completed, and sends nothing.
func TestRealLayersOverDifferingFiles(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 2, nil)
	c.f.steady(t)
	r := c.makeReal("podPidsLimit: 3000\n")
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":60}`) })
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
	r.wantFields(map[string]any{"maxPods": 60, "podPidsLimit": 3000, "eventRecordQPS": 7})
	source := c.source()
	sent := len(c.patches())

	before := r.kubelet()
	r.writeLocal("podPidsLimit: 3100\n")
	r.await("the change of its own file is seen", func(n *corev1.Node) bool {
		return slices.ContainsFunc(nodev1.Read(n).Status.Warnings, func(w string) bool { return strings.HasPrefix(w, "LocalChangePending") })
	})
	if after := r.kubelet(); after != before {
		t.Errorf("kubelet %d was replaced by %d because its own file changed", before, after)
	}
	r.end()

	second := c.startReal("podPidsLimit: 4000\n")
	second.awaitWord(source, nodev1.ReasonActive)
	second.wantFields(map[string]any{"maxPods": 60, "podPidsLimit": 4000})
	p := c.await("the pool knows of the second", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Proven == 3 })
	if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) || len(p.Status.Stops) > 0 {
		t.Errorf("its status is %+v", p.Status)
	}
	if more := c.patches()[sent:]; slices.ContainsFunc(more, func(sent request) bool { return sent.node != cluster.NodeName }) {
		t.Errorf("these Nodes were patched after the end: %v", more)
	}
}
