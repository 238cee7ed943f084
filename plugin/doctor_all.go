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

// auditPage says how to find who assigned what.
const auditPage = "docs/howto/audit.md"

// examineAll looks at what all nodes have in common, lists what was written before a policy held, and the assignments that nothing on their Node
// accounts for. While a policy does not hold, that is how others assign; and it is how kubectl annotate and other tools do at any time.
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

// examineRecords compares what each Node is assigned with the record of the plugin and the mark of the controller. Both can be forged by whoever
// could assign, so that they account for an assignment is no proof.
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

// unaccounted says what the record of a Node does not account for; "" where it does.
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

// examineNamespace: whoever may make pods in the namespace of configurations would be root on a node by a privileged one.
func (d *diagnosis) examineNamespace(ctx context.Context) {
	namespace, err := d.client.CoreV1().Namespaces().Get(ctx, cmdutil.ConfigNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.note("namespace %s is not there; kubectl kubelet install", cmdutil.ConfigNamespace)
	case err != nil:
		d.unknown("whether namespace %s admits privileged pods: %v", cmdutil.ConfigNamespace, err)
	case strings.TrimSpace(namespace.Labels[enforceLabel]) != restricted:
		d.wrong("namespace %s does not have the label %s=%s, so whoever may make pods there may make privileged ones; kubectl kubelet install", cmdutil.ConfigNamespace, enforceLabel, restricted)
	default:
		d.fine("namespace %s admits no privileged pod", cmdutil.ConfigNamespace)
	}
}

// enforceLabel is what the API server's PodSecurity admission reads, in Kubernetes 1.23 and later.
const (
	enforceLabel = "pod-security.kubernetes.io/enforce"
	restricted   = "restricted"
)
