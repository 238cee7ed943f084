//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const joinTaint = "kubelet-supervisor.io/joining"

// young is a new node: not Ready yet, and kept from pods by the pool's taint and by another one.
func young(n *corev1.Node) {
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	n.Spec.Taints = []corev1.Taint{{Key: joinTaint, Effect: corev1.TaintEffectNoSchedule}, {Key: "other", Effect: corev1.TaintEffectNoSchedule}}
}

func tainted(p *v1alpha1.KubeletPool) { p.Spec.JoinTaint = joinTaint }

// nodes are the crew's Nodes from a number on.
func (c *crew) nodes(from int) (all []corev1.Node) {
	c.t.Helper()
	var list corev1.NodeList
	if err := c.f.admin.List(c.t.Context(), &list, client.MatchingLabels{poolLabel: c.pool}); err != nil {
		c.t.Fatal(err)
	}
	for _, n := range list.Items {
		var number int
		if _, err := fmt.Sscanf(strings.TrimPrefix(n.Name, c.pool+"-"), "%d", &number); err == nil && number >= from {
			all = append(all, n)
		}
	}
	return all
}

// awaitNodes waits until all Nodes from a number on are so.
func (c *crew) awaitNodes(what string, from int, within time.Duration, holds func(*corev1.Node) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(within); ; wait(c.t.Context(), 100*time.Millisecond) {
		all := c.nodes(from)
		i := slices.IndexFunc(all, func(n corev1.Node) bool { return !holds(&n) })
		if i < 0 {
			return
		}
		if n := all[i]; time.Now().After(deadline) {
			c.t.Fatalf("waited %v in vain until %s: %s has %v and %v", within, what, n.Name, n.Annotations, n.Spec.Taints)
		}
	}
}

func has(n *corev1.Node, taint string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint })
}

// arrived: it has what new nodes get, its pods may come, and nobody else's taint was touched.
func arrived(source string) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool {
		return n.Annotations[nodev1.ConfigSourceAnnotation] == source && !has(n, joinTaint) && has(n, "other")
	}
}

// checkArrivals: of each new node two PATCHes, the second of which removes the taint when the node has told that it runs what it was given;
// the last of the first ones came that soon after they were there. Nothing else was sent.
func (c *crew) checkArrivals(before []request, from int, source string, within time.Duration) {
	c.t.Helper()
	sent, own := c.patches()[len(before):], c.requests(true)
	of := map[string][]time.Time{}
	first := sent[0].at
	for _, r := range sent {
		if of[r.node] = append(of[r.node], r.at); len(of[r.node]) == 1 && r.at.Sub(first) > within {
			c.t.Errorf("%s was assigned %v after the first", r.node, r.at.Sub(first))
		}
	}
	for _, n := range c.nodes(from) {
		at, runs := of[n.Name], c.told(own, n.Name, "InTrial", source).at
		if len(at) != 2 || runs.IsZero() || at[1].Before(runs) {
			c.t.Errorf("%s was patched at %v, and ran it at %v", n.Name, at, runs)
		}
		delete(of, n.Name)
	}
	if len(of) > 0 {
		c.t.Errorf("these were patched, too: %v", of)
	}
}

// A hundred new nodes at once get what is stable, promptly and outside all waves. Their taint goes when they run it, and not before.
func TestJoiners(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 5, nil)
	c.f.steady(t)
	c.roll(quick, tainted)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	stable := c.source()
	before := c.patches()
	c.add(100, young)
	c.awaitNodes("the new ones run what is stable", 6, 30*time.Second, arrived(stable))
	c.checkArrivals(before, 6, stable, 20*time.Second)
}

// While wave 2 is open and the budget is used up, new nodes get the last completed revision at once, and move in the waves when they are Ready.
func TestJoinersInWaveTwo(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 10, nil)
	c.f.steady(t)
	c.roll(quick, tainted, inThreeWaves)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	stable := c.source()
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":249}}],"rollout":` + inWaveTwo + `}}`)
	before := c.freezeInWaveTwo()
	c.add(3, young)
	c.awaitNodes("the new ones run what is stable", 11, 30*time.Second, arrived(stable)) // the hundred of TestJoiners may go before
	c.checkArrivals(before, 11, stable, 20*time.Second)
	if p := c.now(); p.Status.Wave == nil || p.Status.Wave.Number != 2 || p.Status.Target.Revision != 2 {
		t.Errorf("the wave was over meanwhile: %+v", p.Status)
	}
	c.settleIn(11)
	c.change(`{"spec":{"rollout":` + onward + `}}`)
	c.await("all have the second revision, those who came later after the others", 60*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Stable.Revision == 2 && p.Status.Nodes.Proven == 13
	})
}

// As long as nothing is stable, new nodes get nothing, and pods may come at once. They take part in the waves when they are Ready.
func TestJoinersWithNothingStable(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 10, nil)
	c.f.steady(t)
	c.roll(quick, tainted, inThreeWaves, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Waves[1].Soak = &metav1.Duration{Duration: time.Hour} })
	before := c.freezeInWaveTwo()
	c.add(3, young)
	c.awaitNodes("pods may come to the new ones", 11, 30*time.Second, arrived(""))
	c.quiet(2 * time.Second)
	if sent := c.patches()[len(before):]; len(sent) != 3 {
		t.Errorf("sent were %v", sent)
	}
	for _, n := range c.nodes(11) {
		if is := rollout.ReadNode(&n); is.Source != "" || is.Mark.Pool != "" || is.Reason != "Local" {
			t.Errorf("%s has %v", n.Name, n.Annotations)
		}
	}
	c.settleIn(11)
	c.change(`{"spec":{"rollout":` + onward + `}}`)
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if p.Status.Nodes.Proven != 13 {
		t.Errorf("its status is %+v", p.Status)
	}
}

func inThreeWaves(p *v1alpha1.KubeletPool) {
	two := intstr.FromInt32(2)
	p.Spec.Rollout.MaxUnavailable = &two
	p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: intstr.FromString("50%")}, {Nodes: intstr.FromString("100%")}}
}

// inWaveTwo stays there, and onward goes on.
const (
	inWaveTwo = `{"waves":[{"nodes":1},{"nodes":"50%","soak":"1h"},{"nodes":"100%"}]}`
	onward    = `{"maxUnavailable":2,"waves":[{"nodes":1},{"nodes":"50%"},{"nodes":"100%"}]}`
)

// freezeInWaveTwo lets nobody be moved any more when five of ten have proven a revision, and gives what has been sent by then.
func (c *crew) freezeInWaveTwo() []request {
	c.t.Helper()
	c.await("wave 2 soaks", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return p.Status.Wave != nil && p.Status.Wave.Number == 2 && p.Status.Nodes.Proven == 5 && p.Status.Nodes.Old == 5
	})
	c.change(`{"spec":{"rollout":{"maxUnavailable":0}}}`)
	c.await("it knows of that", 10*time.Second, func(*v1alpha1.KubeletPool) bool { return true })
	return c.patches()
}

// settleIn lets new nodes become Ready.
func (c *crew) settleIn(from int) {
	c.t.Helper()
	for _, n := range c.nodes(from) {
		c.puppets[n.Name].ready(context.Background(), true)
	}
}
