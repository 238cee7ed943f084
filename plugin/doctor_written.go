package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// guarded has the objects that an admission policy protects, by the protected part, such as a label.
type guarded map[string][]written

type written struct {
	name string
	at   time.Time
}

func (g guarded) add(what string, object metav1.Object, field string) {
	g[what] = append(g[what], written{object.GetName(), writtenAt(object, field)})
}

// writtenAt returns when a field was last written, as the API server recorded it. A client that writes the field
// again, or removes managedFields, changes it.
func writtenAt(object metav1.Object, field string) time.Time {
	at := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(at) && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+field+`"`) {
			at = entry.Time.Time
		}
	}
	return at
}

// before names what was written until then, on a line for each kind of thing.
func (g guarded) before(since time.Time) (lines []string) {
	for _, what := range slices.Sorted(maps.Keys(g)) {
		var names []string
		for _, one := range g[what] {
			if !one.at.After(since) {
				names = append(names, one.name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			lines = append(lines, what+" "+view.FirstOf(names, ", "))
		}
	}
	return lines
}

// examineWritten reports since when each policy is in force, and what was written before, or while it is not.
// After an emergency in which the binding was deleted, it was made again.
func (d *diagnosis) examineWritten(ctx context.Context, views []view.Node, pools []view.Pool) {
	d.examineOlder(ctx, deploy.Policy, func() (guarded, error) { return guardedOfNodes(views), nil })
	d.examineOlder(ctx, deploy.ConfigMapPolicy, func() (guarded, error) { return d.guardedConfigMaps(ctx) })
	if len(pools) == 0 {
		return
	}
	d.examineOlder(ctx, "kubelet-supervisor-pools", func() (guarded, error) { return d.guardedPools(ctx, pools) })
	d.examineOlder(ctx, "kubelet-supervisor-pool-status", func() (guarded, error) {
		found := guarded{}
		for _, p := range pools {
			found.add("status of KubeletPool", p.Object, "status")
		}
		return found, nil
	})
	d.examineOlder(ctx, "kubelet-supervisor-revisions", func() (guarded, error) { return d.guardedRevisions(ctx) })
	d.examineOlder(ctx, "kubelet-supervisor-budget-status", func() (guarded, error) { return nil, nil })
	d.examineOlder(ctx, "kubelet-supervisor-controller-pod", func() (guarded, error) { return nil, nil }) // written by the controller's account
}

func (d *diagnosis) examineOlder(ctx context.Context, policy string, guards func() (guarded, error)) {
	since, bound, err := d.boundSince(ctx, policy)
	if err != nil || bound && since.IsZero() || !bound && !d.knowsPolicies() {
		return // examinePolicy has reported it
	}
	while := "while the admission policy " + policy + " does not hold"
	if bound {
		while = "before the admission policy " + policy + " held"
		d.note("the binding of the admission policy %s exists since %s: without it %s", policy, since.UTC().Format(time.RFC3339), withoutPolicy[policy])
	} else {
		since = d.Now()
	}
	found, err := guards()
	if err != nil {
		d.unknown("what was written %s: %v", while, err)
		return
	}
	for _, line := range found.before(since) {
		d.note("written %s: %s", while, line)
	}
}

// boundSince returns when the younger of a policy and its binding was created.
func (d *diagnosis) boundSince(ctx context.Context, name string) (since time.Time, bound bool, err error) {
	api := d.client.AdmissionregistrationV1()
	policy, err := api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		since = policy.CreationTimestamp.Time
		binding, failed := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
		if err = failed; err == nil && binding.CreationTimestamp.After(since) {
			since = binding.CreationTimestamp.Time
		}
	}
	if apierrors.IsNotFound(err) {
		return time.Time{}, false, nil
	}
	return since, err == nil, err
}

// answers are the annotations that nodes write.
var answers = []string{nodev1.ConfigStatusAnnotation, nodev1.ConfigObservedAnnotation, nodev1.StatusAnnotation}

// guardedOfNodes returns the assignments of nodes, and the labels that select nodes.
func guardedOfNodes(views []view.Node) guarded {
	found := guarded{}
	for _, v := range views {
		for label := range v.Labels {
			if strings.HasPrefix(label, guardedPrefix) {
				found.add("label "+label+" of node", v.Node, label)
			}
		}
		for annotation := range v.Annotations {
			if strings.HasPrefix(annotation, guardedPrefix) && !slices.Contains(answers, annotation) {
				found.add("annotation "+annotation+" of node", v.Node, annotation)
			}
		}
	}
	return found
}

func (d *diagnosis) guardedConfigMaps(ctx context.Context) (guarded, error) {
	list, err := d.client.CoreV1().ConfigMaps(cmdutil.ConfigNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := guarded{}
	for i := range list.Items {
		if one := &list.Items[i]; one.Name != "kube-root-ca.crt" { // every namespace has it
			found.add("ConfigMap", one, "data")
		}
	}
	return found, nil
}

func (d *diagnosis) guardedRevisions(ctx context.Context) (guarded, error) {
	list, err := d.client.AppsV1().ControllerRevisions(rollout.Namespace).List(ctx, metav1.ListOptions{LabelSelector: rollout.PoolLabel})
	if err != nil {
		return nil, err
	}
	found := guarded{}
	for i := range list.Items {
		found.add("ControllerRevision", &list.Items[i], "data")
	}
	return found, nil
}

// guardedPools returns pools and budgets.
func (d *diagnosis) guardedPools(ctx context.Context, pools []view.Pool) (guarded, error) {
	found := guarded{}
	for _, p := range pools {
		found.add("KubeletPool", p.Object, "spec")
	}
	client, err := d.ConnectDynamic()
	if err != nil {
		return nil, err
	}
	budgets, err := client.Resource(v1alpha1.GroupVersion().WithResource("kubeletrolloutbudgets")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range budgets.Items {
		found.add("KubeletRolloutBudget", &budgets.Items[i], "spec")
	}
	return found, nil
}
