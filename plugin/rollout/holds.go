package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// warnOfHolds prints what prevents all nodes of a pool from going back: a pause, a maxUnavailable of 0, and
// budgets that allow nothing. A user without read access to budgets can still change the pool.
func warnOfHolds(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, p pool) {
	if p.Spec.Rollout.Paused {
		f.Note("warning: pool %s is paused, so nothing moves; kubectl kubelet rollout resume %s", p.Name, p.Name)
	}
	if most := p.Spec.Rollout.MaxUnavailable; isZero(most) {
		f.Note("warning: spec.rollout.maxUnavailable of pool %s is %s, so no node goes back; kubectl edit kpool %s", p.Name, most, p.Name)
	}
	api, err := f.ConnectDynamic()
	var budgets []holdingBudget
	if err == nil {
		budgets, err = holdingBudgets(ctx, api)
	}
	if err != nil {
		f.Note("warning: whether a KubeletRolloutBudget holds nodes of the pool was not looked at: %s", bounded.Line(err.Error()))
	}
	if len(budgets) == 0 {
		return
	}
	members, err := membersOf(ctx, client, api, p, f.Now())
	for _, b := range budgets {
		names := b.taken(members)
		switch {
		case err != nil:
			f.Note("warning: %s, so the nodes that it takes do not go back; whether the pool has such nodes was not looked at: %s", b.why, bounded.Line(err.Error()))
		case len(names) > 0:
			f.Note("warning: %s, so these nodes of the pool do not go back: %s; kubectl edit kbudget %s", b.why, view.FirstOf(names, ", "), b.name)
		}
	}
}

func isZero(amount *intstr.IntOrString) bool {
	return amount != nil && strings.TrimSuffix(amount.String(), "%") == "0"
}

// A holdingBudget is a KubeletRolloutBudget that allows no change of the nodes that it selects.
type holdingBudget struct {
	name, why string
	selector  labels.Selector
}

func (b holdingBudget) taken(members []*rollout.Node) (names []string) {
	for _, n := range members {
		if b.selector.Matches(labels.Set(n.Labels)) {
			names = append(names, n.Name)
		}
	}
	return names
}

func holdingBudgets(ctx context.Context, api dynamic.Interface) (holding []holdingBudget, err error) {
	list, err := api.Resource(v1alpha1.GroupVersion().WithResource("kubeletrolloutbudgets")).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for i := range list.Items {
		var b v1alpha1.KubeletRolloutBudget
		text, err := list.Items[i].MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			return nil, fmt.Errorf("reading KubeletRolloutBudget %s: %w", list.Items[i].GetName(), err)
		}
		selector, err := metav1.LabelSelectorAsSelector(&b.Spec.Selector)
		if err != nil { // the controller cannot read it either, and applies it to all nodes
			selector = labels.Everything()
		}
		if why := whyHolds(&b); why != "" {
			holding = append(holding, holdingBudget{b.Name, why, selector})
		}
	}
	slices.SortFunc(holding, func(a, b holdingBudget) int { return cmp.Compare(a.name, b.name) })
	return holding, nil
}

// whyHolds returns why a budget allows no change; "" if it may allow one.
func whyHolds(b *v1alpha1.KubeletRolloutBudget) string {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	switch most := b.Spec.MaxUnavailable; {
	case b.Spec.Frozen:
		return fmt.Sprintf("KubeletRolloutBudget %s is frozen", b.Name)
	case isZero(most):
		return fmt.Sprintf("the maxUnavailable of KubeletRolloutBudget %s is %s", b.Name, most)
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == rollout.ReasonInvalidSpec:
		return fmt.Sprintf("KubeletRolloutBudget %s cannot be read (%s)", b.Name, bounded.Line(ready.Message))
	}
	return ""
}

// membersOf returns the nodes of a pool. Another pool may own some of those that its selector matches.
func membersOf(ctx context.Context, client kubernetes.Interface, api dynamic.Interface, p pool, now time.Time) (members []*rollout.Node, err error) {
	w := rollout.World{Now: now}
	if w.Pools, err = allPools(ctx, api.Resource(v1alpha1.GroupVersion().WithResource("kubeletpools")), p, nil); err != nil {
		return nil, err
	}
	nodes, _, err := view.ListNodes(ctx, client, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&p.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		w.Nodes = append(w.Nodes, rollout.ReadNode(&nodes[i]))
	}
	for _, m := range rollout.Look(w, p.Name).Members {
		members = append(members, m.Node)
	}
	return members, nil
}
