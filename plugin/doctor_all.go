package plugin

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// auditPage says how to find who assigned what.
const auditPage = "docs/howto/audit.md"

// examineAll looks at what all nodes have in common, and lists the assignments that nothing on their Node accounts for. While a policy does not
// hold, that is how others assign; and it is how kubectl annotate and other tools do at any time.
func (d *diagnosis) examineAll(ctx context.Context) error {
	d.examineNamespace(ctx)
	if d.examinePolicy(ctx, packaging.Policy, "limits who may assign") {
		d.noteBinding(ctx)
	}
	d.examinePolicy(ctx, packaging.ConfigMapPolicy, "limits who may change configurations in namespace "+configNamespace)
	pools, err := d.listPools(ctx, d.client)
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
	d.examineRecords(views, pools)
	return nil
}

// noteBinding says since when the policy for Nodes holds: who broke the glass made the binding again afterwards.
func (d *diagnosis) noteBinding(ctx context.Context) {
	binding, err := d.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, packaging.Policy, metav1.GetOptions{})
	if err == nil && !binding.CreationTimestamp.IsZero() {
		d.note("the binding of the admission policy %s exists since %s: nothing is known of who could assign before", packaging.Policy,
			binding.CreationTimestamp.UTC().Format(time.RFC3339))
	}
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
		d.fine("the record or the pool of each of %s accounts for what it is assigned", countNodes(views))
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
	namespace, err := d.client.CoreV1().Namespaces().Get(ctx, configNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.note("namespace %s is not there; kubectl kubelet install", configNamespace)
	case err != nil:
		d.unknown("whether namespace %s admits privileged pods: %v", configNamespace, err)
	case strings.TrimSpace(namespace.Labels[enforceLabel]) != restricted:
		d.wrong("namespace %s does not have the label %s=%s, so whoever may make pods there may make privileged ones; kubectl kubelet install", configNamespace, enforceLabel, restricted)
	default:
		d.fine("namespace %s admits no privileged pod", configNamespace)
	}
}

// enforceLabel is what the API server's PodSecurity admission reads, in Kubernetes 1.23 and later.
const (
	enforceLabel = "pod-security.kubernetes.io/enforce"
	restricted   = "restricted"
)
