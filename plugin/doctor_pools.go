package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// leaseSilence is the longest time in which a running controller may not renew its Lease. It allows for clock
// skew.
const leaseSilence = 2 * time.Minute

// examinePools prints nothing if there are no pools, because most clusters need no controller.
func (d *diagnosis) examinePools(ctx context.Context) {
	pools, err := d.ListPools(ctx, d.client)
	mark := d.node.Mark()
	switch {
	case err != nil:
		d.unknown("whether the node is in a pool: %v", err)
		return
	case len(pools) == 0 && mark.Pool == "":
		return
	case len(pools) == 0:
		d.note("the node was assigned its configuration by pool %s, and there are no pools now: it keeps that", bounded.Line(mark.Pool))
		return
	}
	d.examineMembership(pools)
	d.examineController(ctx, pools)
	d.examinePoolPolicies(ctx)
}

func (d *diagnosis) examinePoolPolicies(ctx context.Context) {
	for _, policy := range deploy.PoolPolicies() {
		d.examinePolicy(ctx, policy, "limits who may write pools and what they are rendered to")
	}
}

func (d *diagnosis) examineMembership(pools []view.Pool) {
	node := rollout.ReadNode(d.node.Node)
	owners := rollout.Owners(view.CorePools(pools), &node)
	switch {
	case d.node.HeldOut():
		d.note("the node is in no pool, by its label %s=%s; kubectl kubelet rollout adopt %s", rollout.PoolLabel, view.NoPool, d.node.Name)
	case len(owners) == 0:
		d.fine("no pool selects the node")
	case len(owners) > 1:
		d.wrong("the pools %s select the node with the same priority, so that none moves it; change a priority or a selector", strings.Join(owners, ", "))
	case node.Mark.Pool == "" && (node.Source != "" || view.PoolNamed(pools, owners[0]).Spec.Adoption == v1alpha1.AdoptNever),
		node.Mark.Pool != "" && !node.Mark.Records(node.Source):
		d.note("pool %s selects the node, and leaves it alone: a person has assigned or reset it; kubectl kubelet rollout adopt %s", owners[0], d.node.Name)
	default:
		d.fine("the node is in pool %s", owners[0])
		if labels := unguarded(&view.PoolNamed(pools, owners[0]).Spec.Selector); len(labels) > 0 {
			d.note("pool %s selects by the label %s, which everybody writes who may patch nodes or nodes/status, and so chooses what a node runs; select by labels that begin with %s",
				owners[0], strings.Join(labels, ", "), guardedPrefix)
		}
		if node.Supervised && !node.Layered {
			d.wrong("its supervisor is too old for pools: it knows no layers; upgrade kubelet-supervisor there")
		}
	}
}

// guardedPrefix is the prefix of the labels that the admission policy for Nodes reserves for users with the verb.
const guardedPrefix = v1alpha1.GroupName + "/"

// unguarded returns the labels of a selector that users without the verb can write.
func unguarded(selector *metav1.LabelSelector) []string {
	labels := slices.Sorted(maps.Keys(selector.MatchLabels))
	for _, term := range selector.MatchExpressions {
		labels = append(labels, term.Key)
	}
	return slices.DeleteFunc(labels, func(label string) bool { return strings.HasPrefix(label, guardedPrefix) })
}

// examineController checks the Lease, which the controller renews every few seconds, and whether it has seen the
// newest generation of the pools.
func (d *diagnosis) examineController(ctx context.Context, pools []view.Pool) {
	lease, err := d.client.CoordinationV1().Leases(deploy.ControllerNamespace).Get(ctx, deploy.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.wrong("no %s has run yet: pools change nothing without it; kubectl kubelet install --controller", deploy.ControllerName)
		return
	case err != nil:
		d.unknown("whether %s runs: %v", deploy.ControllerName, err)
	case lease.Spec.RenewTime == nil || d.Now().Sub(lease.Spec.RenewTime.Time) > leaseSilence:
		renewed := "never"
		if lease.Spec.RenewTime != nil {
			renewed = view.Age(d.Now(), lease.Spec.RenewTime.Time) + " ago"
		}
		d.wrong("no %s leads: its Lease was renewed last %s; kubectl get pods -n %s", deploy.ControllerName, renewed, deploy.ControllerNamespace)
		return
	default:
		d.fine("%s runs: its Lease was renewed %s ago", deploy.ControllerName, view.Age(d.Now(), lease.Spec.RenewTime.Time))
	}
	for _, p := range pools {
		if !p.Observed() {
			d.note("the controller has not seen pool %s as it is now; where that stays so, see kubectl logs -n %s deployment/%s", p.Name, deploy.ControllerNamespace, deploy.ControllerName)
		}
	}
}
