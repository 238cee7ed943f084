package plugin

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// auditPage describes how to find which user assigned what.
const auditPage = "docs/howto/audit.md"

// examineAll examines what all nodes have in common. It lists what was written before a policy was in force, and
// assignments that no record on their Node accounts for: users without permission can make those while no policy
// is in force, and kubectl annotate and other tools can make them at any time.
func (d *diagnosis) examineAll(ctx context.Context) error {
	d.examineNamespace(ctx)
	d.examinePolicy(ctx, deploy.Policy, "limits who may assign")
	d.examinePolicy(ctx, deploy.ConfigMapPolicy, "limits who may change configurations in namespace "+cmdutil.ConfigNamespace)
	pools, err := d.ListPools(ctx, d.client)
	if err != nil {
		d.unknown("whether there are pools: %v", err)
	}
	if len(pools) > 0 {
		d.examineController(ctx, pools)
		d.examinePoolPolicies(ctx)
	}
	views, err := view.Selection{}.Nodes(ctx, d.client)
	if err != nil {
		return err
	}
	d.examineWritten(ctx, views, pools)
	d.examineRecords(views, pools)
	return nil
}

// examineRecords compares each Node's assignment with the plugin's record and the controller's mark. A user who
// could assign could forge both, so a match proves nothing.
func (d *diagnosis) examineRecords(views []view.Node, pools []view.Pool) {
	left := 0
	for _, v := range views {
		owned := slices.ContainsFunc(pools, func(p view.Pool) bool { return p.Name == v.MemberOf() })
		if why := unaccounted(v); why != "" && !owned {
			left++
			d.note("node %s: %s", v.Name, why)
		}
	}
	switch left {
	case 0:
		d.fine("the record or the pool of each of %s accounts for what it is assigned", view.CountNodes(views))
	default:
		d.note("who assigned these is in the audit log of the API server: %s", auditPage)
	}
}

// unaccounted returns what the record of a Node does not account for; "" if nothing.
func unaccounted(v view.Node) string {
	current, ok := v.Current()
	entries, err := v.Record()
	switch {
	case !ok:
		return "the assignment " + bounded.Line(v.Says.Assignment) + " is malformed"
	case err != nil && current.IsLocal():
		return "its record cannot be read"
	case err != nil:
		return "it is assigned " + current.String() + ", and its record cannot be read"
	case len(entries) == 0 && current.IsLocal():
		return ""
	case len(entries) == 0:
		return "it is assigned " + current.String() + " without a record"
	}
	last := entries[len(entries)-1]
	switch {
	case view.SameSource(last.Source, current.String()):
		return ""
	case current.IsLocal():
		return "its assignment " + last.Source + " was removed without a record"
	}
	return "it is assigned " + current.String() + ", and the last record is of " + last.Source
}

// examineNamespace checks that the namespace of configurations refuses privileged pods: with one, a user who may
// create pods there gets root on a node.
func (d *diagnosis) examineNamespace(ctx context.Context) {
	namespace, err := d.client.CoreV1().Namespaces().Get(ctx, cmdutil.ConfigNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.note("namespace %s is not there; kubectl kubelet install", cmdutil.ConfigNamespace)
	case err != nil:
		d.unknown("whether namespace %s admits privileged pods: %v", cmdutil.ConfigNamespace, err)
	case strings.TrimSpace(namespace.Labels[enforceLabel]) != restricted:
		d.wrong("namespace %s does not have the label %s=%s, so users who may create pods there may create privileged ones; kubectl kubelet install", cmdutil.ConfigNamespace, enforceLabel, restricted)
	default:
		d.fine("namespace %s admits no privileged pod", cmdutil.ConfigNamespace)
	}
}

// enforceLabel is read by the API server's PodSecurity admission, in Kubernetes 1.23 and later.
const (
	enforceLabel = "pod-security.kubernetes.io/enforce"
	restricted   = "restricted"
)
