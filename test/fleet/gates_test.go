//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

const zoneLabel = "topology.kubernetes.io/zone"

// zoned makes puppets in a zone of the same name.
func (c *crew) zoned(count int, zone string) {
	c.t.Helper()
	c.add(count, func(n *corev1.Node) { n.Labels[zoneLabel] = zone })
}

// together is a pool that nothing holds up but what the test is about.
func together(p *v1alpha1.KubeletPool) {
	all := intstr.FromString("100%")
	quick(p)
	p.Spec.Rollout.MaxUnavailable = &all
	p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: all}}
}

// budget makes a KubeletRolloutBudget over the crew. It goes with the test.
func (c *crew) budget(change func(*v1alpha1.KubeletRolloutBudgetSpec)) {
	c.t.Helper()
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: c.pool}}
	b.Spec.Selector.MatchLabels = map[string]string{poolLabel: c.pool}
	change(&b.Spec)
	if err := c.f.admin.Create(c.t.Context(), b); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.f.admin.Delete(context.Background(), b) })
}

func (c *crew) changeBudget(patch string) {
	c.t.Helper()
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: c.pool}}
	if err := c.f.admin.Patch(c.t.Context(), b, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
}

// One zone at a time: none is entered before all nodes of another have proven what they got. After the canary the zones come one after the
// other, each as a whole.
func TestZonesOneAtATime(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 0, nil)
	for _, zone := range []string{"a", "b", "c"} {
		c.zoned(5, zone)
	}
	c.f.steady(t)
	c.roll(together, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Topology = &v1alpha1.Topology{Key: zoneLabel} })
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
	zones := c.checkZones(c.source())
	if len(zones) < 3 || len(zones) > 4 { // the canary's zone may not be the first
		t.Errorf("the zones came in this order: %v", zones)
	}
}

// checkZones: when a Node was patched, all nodes of other zones that had been patched before had said Active. It gives the zones in their order.
func (c *crew) checkZones(source string) (zones []string) {
	c.t.Helper()
	sent := c.assigned()
	zoneOf := map[string]string{}
	var nodes corev1.NodeList
	if err := c.f.admin.List(c.t.Context(), &nodes, client.MatchingLabels{poolLabel: c.pool}); err != nil {
		c.t.Fatal(err)
	}
	for i := range nodes.Items {
		zoneOf[nodes.Items[i].Name] = nodes.Items[i].Labels[zoneLabel]
	}
	for i, r := range sent {
		for _, before := range sent[:i] {
			proven := c.puppets[before.node].said("Active", source).wanted
			if zoneOf[before.node] != zoneOf[r.node] && (proven.IsZero() || proven.After(r.at)) {
				c.t.Errorf("%s of zone %s was patched while %s of zone %s was under way", r.node, zoneOf[r.node], before.node, zoneOf[before.node])
			}
		}
		if len(zones) == 0 || zones[len(zones)-1] != zoneOf[r.node] {
			zones = append(zones, zoneOf[r.node])
		}
	}
	return zones
}

// Two pools share the zones of a KubeletRolloutBudget.
func TestTwoPoolsShareABudget(t *testing.T) {
	t.Parallel()
	one, other := newCrew(t, name(t)+"-1", 0, nil), newCrew(t, name(t)+"-2", 0, nil)
	for _, c := range []*crew{one, other} {
		c.zoned(3, "a")
		c.zoned(3, "b")
	}
	most := intstr.FromInt32(2)
	one.budget(func(b *v1alpha1.KubeletRolloutBudgetSpec) {
		b.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: poolLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{one.pool, other.pool}}}}
		b.Topology, b.MaxUnproven = &v1alpha1.Topology{Key: zoneLabel}, &most
	})
	one.f.steady(t)
	one.roll(together)
	other.roll(together)
	for _, c := range []*crew{one, other} {
		c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
		c.checkZones(c.source())
	}
	all := append(one.assigned(), other.assigned()...)
	for _, r := range all {
		unproven := 0
		for _, before := range all {
			c := one
			if strings.HasPrefix(before.node, other.pool+"-") {
				c = other
			}
			if proven := c.puppets[before.node].said("Active", c.source()).wanted; !before.at.After(r.at) && (proven.IsZero() || proven.After(r.at)) {
				unproven++
			}
		}
		if unproven > 2 {
			t.Errorf("when %s was patched, %d nodes of both pools had not proven what they got", r.node, unproven)
		}
	}
}

// A frozen budget freezes in the middle of a wave, the way back too, and says so; new nodes still come in. A budget that nobody can read does
// the same.
func TestAFrozenBudget(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 8, nil)
	c.trial = 2 * time.Second
	c.f.steady(t)
	c.budget(func(*v1alpha1.KubeletRolloutBudgetSpec) {})
	c.roll(together)
	c.await("the canary is assigned", 30*time.Second, func(*v1alpha1.KubeletPool) bool { return len(c.patches()) > 0 })
	c.changeBudget(`{"spec":{"frozen":true}}`)
	c.quiet(4 * time.Second)
	p := c.awaitReason(v1alpha1.ConditionProgressing, "BudgetExhausted", 30*time.Second)
	if got := messageOf(p, v1alpha1.ConditionProgressing); got != "KubeletRolloutBudget "+c.pool+" is frozen" {
		t.Errorf("it says %q", got)
	}
	if got := len(c.patches()); got != 1 {
		t.Errorf("%d Nodes were patched", got)
	}
	c.change(`{"spec":{"rollout":{"pin":{"local":true}}}}`)
	c.quiet(3 * time.Second)
	if got := len(c.patches()); got != 1 {
		t.Errorf("frozen, and undone: %d Nodes were patched", got)
	}
	c.change(`{"spec":{"rollout":{"pin":null}}}`)
	c.changeBudget(`{"spec":{"frozen":false,"windows":[{"schedule":"0 0 30 2 *","duration":"1h"}]}}`)
	c.await("the budget is said to be unreadable", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		return strings.Contains(messageOf(p, v1alpha1.ConditionProgressing), "never comes")
	})
	c.awaitBudget("False InvalidSpec", 8)
	c.changeBudget(`{"spec":{"windows":null}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
	c.awaitBudget("True Valid", 8)
}

func messageOf(p *v1alpha1.KubeletPool, condition string) string {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Message
		}
	}
	return ""
}

// Outside of its window a pool sends nothing forward, but goes back and lets new nodes in; it goes on when the window is open. A time zone that
// nobody knows is InvalidSpec, and keeps the window closed.
func TestAClosedWindow(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 4, nil)
	c.f.steady(t)
	// Twelve hours from now, for a minute.
	closed := time.Now().UTC().Add(12 * time.Hour)
	c.roll(together, func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.Windows = []v1alpha1.Window{{Schedule: fmt.Sprintf("%d %d * * *", closed.Minute(), closed.Hour()), Duration: metav1.Duration{Duration: time.Minute}}}
	})
	p := c.awaitReason(v1alpha1.ConditionProgressing, "WindowClosed", 30*time.Second)
	if want := "before " + closed.Truncate(time.Minute).Format(time.RFC3339); !strings.Contains(messageOf(p, v1alpha1.ConditionProgressing), want) {
		t.Errorf("it says %q, not %q", messageOf(p, v1alpha1.ConditionProgressing), want)
	}
	c.quiet(3 * time.Second)
	if got := len(c.patches()); got > 0 {
		t.Errorf("%d Nodes were patched in a closed window", got)
	}
	c.change(`{"spec":{"rollout":{"windows":[{"schedule":"* * * * *","duration":"2m","timeZone":"Mars/Olympus"}]}}}`)
	p = c.awaitReason(v1alpha1.ConditionReady, "InvalidSpec", 30*time.Second)
	if got := messageOf(p, v1alpha1.ConditionReady); !strings.Contains(got, "spec.rollout.windows[0].timeZone: unknown time zone Mars/Olympus") {
		t.Errorf("it says %q", got)
	}
	c.quiet(3 * time.Second)
	if got := len(c.patches()); got > 0 {
		t.Errorf("%d Nodes were patched in a time zone that nobody knows", got)
	}
	c.change(`{"spec":{"rollout":{"windows":[{"schedule":"* * * * *","duration":"2m","timeZone":"Europe/Berlin"}]}}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
}

// awaitBudget waits until the crew's budget says so of itself as it is now, and of how many nodes it takes.
func (c *crew) awaitBudget(ready string, nodes int32) {
	c.t.Helper()
	var b v1alpha1.KubeletRolloutBudget
	c.awaitThat("the budget says "+ready, 30*time.Second, func() bool {
		if err := c.f.admin.Get(c.t.Context(), types.NamespacedName{Name: c.pool}, &b); err != nil {
			c.t.Fatal(err)
		}
		is := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return is != nil && string(is.Status)+" "+is.Reason == ready && b.Status.ObservedGeneration == b.Generation && b.Status.Nodes == nodes
	})
}

// What CEL can know of windows, topology and budgets is refused when it is written.
func TestGatesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := shared(t)
	window := func(change func(*v1alpha1.Window)) func(*v1alpha1.Rollout) {
		return func(r *v1alpha1.Rollout) {
			w := v1alpha1.Window{Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: time.Hour}}
			change(&w)
			r.Windows = []v1alpha1.Window{w}
		}
	}
	for words, change := range map[string]func(*v1alpha1.Rollout){
		"a duration of at least 1m":          window(func(w *v1alpha1.Window) { w.Duration.Duration = time.Second }),
		"the time zone is in timeZone":       window(func(w *v1alpha1.Window) { w.Schedule = "TZ=UTC 0 22 * * *" }),
		"five fields of cron":                window(func(w *v1alpha1.Window) { w.Schedule = "x" }),
		"or @daily and its like":             window(func(w *v1alpha1.Window) { w.Schedule = "@every 1h" }),
		"such as 0 22 * * 1-5":               window(func(w *v1alpha1.Window) { w.Schedule = "0 22 * *" }),
		"Local is another zone":              window(func(w *v1alpha1.Window) { w.TimeZone = "Local" }),
		"spec.rollout.disruption":            func(r *v1alpha1.Rollout) { r.Disruption = "Perhaps" },
		"spec.rollout.drainTimeout":          func(r *v1alpha1.Rollout) { r.DrainTimeout = &metav1.Duration{} },
		"spec.rollout.topology.key":          func(r *v1alpha1.Rollout) { r.Topology = &v1alpha1.Topology{} },
		"spec.rollout.topology.maxDomains":   func(r *v1alpha1.Rollout) { r.Topology = &v1alpha1.Topology{Key: "zone", MaxDomains: -1} },
		"spec.rollout.windows: Too many: 11": func(r *v1alpha1.Rollout) { r.Windows = make([]v1alpha1.Window, 11) },
	} {
		p := smallPool("refused")
		change(&p.Spec.Rollout)
		if err := f.admin.Create(t.Context(), p, client.DryRunAll); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", words, err)
		}
	}
	b := &v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: "refused"}}
	b.Spec.MaxUnavailable = &intstr.IntOrString{Type: intstr.String, StrVal: "many"}
	if err := f.admin.Create(t.Context(), b, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "spec.maxUnavailable") {
		t.Errorf("a budget of many: %v", err)
	}
	b.Spec.MaxUnavailable = nil
	if err := f.admin.Create(t.Context(), b, client.DryRunAll); err != nil {
		t.Errorf("a budget over all nodes: %v", err)
	}
}

// disruption: Allow consents to the change that a node holds for its pods, to no other, and not while a verdict stands.
func TestAPoolThatConsents(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 3, nil)
	c.nature = always(nodev1.ReasonWouldDisrupt)
	c.f.steady(t)
	c.roll(together)
	c.awaitReason(v1alpha1.ConditionProgressing, "WaitsForPods", 30*time.Second)
	c.quiet(3 * time.Second)
	for i := range 3 {
		if got := c.node(i + 1).Annotations[nodev1.AllowDisruptionAnnotation]; got != "" {
			t.Errorf("node %d was told %q", i+1, got)
		}
	}
	c.change(`{"spec":{"rollout":{"disruption":"Allow"}}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
	for i := range 3 {
		if got := c.node(i + 1).Annotations[nodev1.AllowDisruptionAnnotation]; got != nodev1.Approval(wouldDisruptDigest).WithAny() {
			t.Errorf("node %d was told %q", i+1, got)
		}
	}
}
