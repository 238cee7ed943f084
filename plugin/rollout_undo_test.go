package plugin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// budget puts a KubeletRolloutBudget of the nodes with the label zone=a into the fake API server.
func (b *bench) budget(t *testing.T, name string, change func(*v1alpha1.KubeletRolloutBudget)) {
	t.Helper()
	budget := &v1alpha1.KubeletRolloutBudget{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "KubeletRolloutBudget"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	budget.Spec.Selector.MatchLabels = map[string]string{"zone": "a"}
	change(budget)
	text, err := json.Marshal(budget)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	if err := b.pools.Tracker().Create(budgetsResource(), object, ""); err != nil {
		t.Fatal(err)
	}
}

// forbids lets a fake API server refuse to list something.
func forbids(fake *clienttesting.Fake, resource string) {
	fake.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
}

// What lets no node go back is said before anything is asked or sent, and stops nothing: the pool goes back when it is gone.
func TestUndoSaysWhatHoldsIt(t *testing.T) {
	amount := func(text string) *intstr.IntOrString { a := intstr.Parse(text); return &a }
	frozen := func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.Frozen = true }
	for name, row := range map[string]struct {
		cluster func(p *fakePool, b *bench)
		says    []string // none: no warning
	}{
		"nothing": {func(*fakePool, *bench) {}, nil},
		"paused": {func(p *fakePool, b *bench) { p.Spec.Rollout.Paused = true }, []string{
			"warning: pool workers is paused, so nothing moves; kubectl kubelet rollout resume workers\n"}},
		"maxUnavailable 0": {func(p *fakePool, b *bench) { p.Spec.Rollout.MaxUnavailable = amount("0") }, []string{
			"warning: spec.rollout.maxUnavailable of pool workers is 0, so no node goes back; kubectl edit kpool workers\n"}},
		"maxUnavailable 0%": {func(p *fakePool, b *bench) { p.Spec.Rollout.MaxUnavailable = amount("0%") }, []string{
			"warning: spec.rollout.maxUnavailable of pool workers is 0%, so no node goes back"}},
		"a frozen budget": {func(p *fakePool, b *bench) { b.budget(t, "nights", frozen) }, []string{
			"warning: KubeletRolloutBudget nights is frozen, so these nodes of the pool do not go back: n1, n2; kubectl edit kbudget nights\n"}},
		"two budgets": {func(p *fakePool, b *bench) {
			b.budget(t, "zero", func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.MaxUnavailable = amount("0") })
			b.budget(t, "all", func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.Selector, b.Spec.Frozen = metav1.LabelSelector{}, true })
		}, []string{
			"warning: KubeletRolloutBudget all is frozen, so these nodes of the pool do not go back: n1, n2, n3; kubectl edit kbudget all\n",
			"warning: the maxUnavailable of KubeletRolloutBudget zero is 0, so these nodes of the pool do not go back: n1, n2; kubectl edit kbudget zero\n"}},
		"a budget that the controller cannot read": {func(p *fakePool, b *bench) {
			b.budget(t, "odd", func(b *v1alpha1.KubeletRolloutBudget) {
				b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: rollout.ReasonInvalidSpec, Message: "spec.windows[0].timeZone: unknown"}}
			})
		}, []string{"warning: KubeletRolloutBudget odd cannot be read (spec.windows[0].timeZone: unknown), so these nodes of the pool do not go back: n1, n2;"}},
		"a budget that leaves room": {func(p *fakePool, b *bench) {
			b.budget(t, "room", func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.MaxUnavailable = amount("1%") })
		}, nil},
		"a frozen budget of other nodes": {func(p *fakePool, b *bench) {
			b.budget(t, "others", func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.Selector.MatchLabels["zone"], b.Spec.Frozen = "b", true })
		}, nil},
		"budgets that may not be listed": {func(p *fakePool, b *bench) { forbids(&b.pools.Fake, "kubeletrolloutbudgets") }, []string{
			"warning: whether a KubeletRolloutBudget holds nodes of the pool was not looked at: kubeletrolloutbudgets.kubelet-supervisor.io is forbidden: no\n"}},
		"nodes that may not be listed": {func(p *fakePool, b *bench) { b.budget(t, "nights", frozen); forbids(&b.Fake, "nodes") }, []string{
			"warning: KubeletRolloutBudget nights is frozen, so the nodes that it takes do not go back; whether the pool has such nodes was not looked at: listing nodes: "}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"rollout undo workers", "rollout undo workers --to-local"} {
				p := newFakePool(t, few, `{"maxPods":111}`, many)
				var nodes []runtime.Object
				for name, zone := range map[string]string{"n1": "a", "n2": "a", "n3": "c", "outside": "b", "released": "a"} {
					n := p.member(name, 2, "Active")
					n.Labels["zone"] = zone
					switch name {
					case "outside":
						n.Labels["pool"] = "others"
					case "released":
						n.Labels[rollout.PoolLabel] = view.NoPool
					}
					nodes = append(nodes, n)
				}
				b := newBench(t, append(nodes, p.objects...)...)
				row.cluster(p, b)
				b.set(t, p)
				b.input.WriteString("y\n")
				_, stderr := b.do(t, strings.Fields(command)...)
				if strings.Contains(command, "local") {
					contains(t, stderr, append(row.says, "Go to the nodes' own configuration? [y/N]")...)
				}
				contains(t, stderr, append(row.says, "and pinned there")...)
				if n := strings.Count(stderr, "warning: "); n != len(row.says) {
					t.Errorf("%s: there are %d warnings:\n%s", command, n, stderr)
				}
				if pin(b.pool(t)) < 0 {
					t.Errorf("%s: the pool is not pinned", command)
				}
			}
		})
	}
}

// Where an undo is under way already, what holds it is said, too.
func TestUndoSaysWhatHoldsAnUndoUnderWay(t *testing.T) {
	p := newFakePool(t, few, `{"maxPods":111}`, many)
	p.undoes(2)
	b := newPoolBench(t, p, p.member("n1", 3, "Active"))
	b.budget(t, "nights", func(b *v1alpha1.KubeletRolloutBudget) { b.Spec.Selector, b.Spec.Frozen = metav1.LabelSelector{}, true })
	_, stderr := b.do(t, "rollout", "undo", "workers")
	contains(t, stderr, "warning: KubeletRolloutBudget nights is frozen, so these nodes of the pool do not go back: n1;", "is on its way back to revision 2 already")
}
