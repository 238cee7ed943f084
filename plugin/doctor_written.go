package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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

func (g guarded) add(what string, object metav1.Object, fields ...fieldPath) {
	g[what] = append(g[what], written{object.GetName(), writtenAt(object, fields...)})
}

// fieldPath leads to a field, as FieldsV1 spells it.
type fieldPath []string

var (
	specField    = fieldPath{"f:spec"}
	statusField  = fieldPath{"f:status"}
	configFields = []fieldPath{{"f:data"}, {"f:binaryData"}, {"f:immutable"}}
)

func labelField(name string) fieldPath { return fieldPath{"f:metadata", "f:labels", "f:" + name} }
func annotationField(name string) fieldPath {
	return fieldPath{"f:metadata", "f:annotations", "f:" + name}
}

// isIn reports whether what managedFields says of a manager has the field.
func (p fieldPath) isIn(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var below map[string]json.RawMessage
	raw := json.RawMessage(fields.GetRawBytes())
	for _, name := range p {
		below = nil
		if json.Unmarshal(raw, &below) != nil {
			return false
		}
		var is bool
		if raw, is = below[name]; !is {
			return false
		}
	}
	return true
}

// writtenAt is when one of the fields was written last, according to the API server. A user who writes a field again, or removes managedFields, moves that. A
// field that was added and removed leaves no entry.
func writtenAt(object metav1.Object, fields ...fieldPath) time.Time {
	at := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(at) && slices.ContainsFunc(fields, func(f fieldPath) bool { return f.isIn(entry.FieldsV1) }) {
			at = entry.Time.Time
		}
	}
	return at
}

// mostWritten is how many objects a line names; those that were written before these are counted.
const mostWritten = 30

// before names what was written no later than that, or all where it is zero, the newest first: a policy was away shortly before it came back. A line
// for each kind of thing.
func (g guarded) before(since time.Time) (lines []string) {
	for _, what := range slices.Sorted(maps.Keys(g)) {
		older := slices.DeleteFunc(slices.Clone(g[what]), func(w written) bool { return !since.IsZero() && w.at.After(since) })
		slices.SortFunc(older, func(a, b written) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name)) })
		var names []string
		for _, one := range older[:min(len(older), mostWritten)] {
			names = append(names, one.name+" ("+one.at.UTC().Format(time.RFC3339)+")")
		}
		line := what + " " + strings.Join(names, ", ")
		if left := len(older) - len(names); left > 0 {
			line += fmt.Sprintf(" and %d older", left)
		}
		if len(names) > 0 {
			lines = append(lines, line)
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
			found.add("status of KubeletPool", p.Object, statusField)
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
		d.note("no field that the admission policy %s has was written since %s (an exception that was added and removed leaves no trace): without it %s", policy, since.UTC().Format(time.RFC3339), withoutPolicy[policy])
	} else {
		since = time.Time{} // everything: the API server's clock is not that of this machine
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

// boundSince is when a policy or its binding was made or changed last. One that is not as install makes it may refuse nothing.
func (d *diagnosis) boundSince(ctx context.Context, name string) (since time.Time, bound bool, err error) {
	api := d.client.AdmissionregistrationV1()
	policy, err := api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, false, unlessNotFound(err)
	}
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, false, unlessNotFound(err)
	}
	if others, err := differFromManifests(name, policy, binding); err != nil || len(others) > 0 {
		return time.Time{}, false, err
	}
	if since = writtenAt(policy, specField); since.Before(writtenAt(binding, specField)) {
		since = writtenAt(binding, specField)
	}
	return since, true, nil
}

func unlessNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// answers are the annotations that nodes write.
var answers = []string{nodev1.ConfigStatusAnnotation, nodev1.ConfigObservedAnnotation, nodev1.StatusAnnotation}

// guardedOfNodes returns the assignments of nodes, and the labels that select nodes.
func guardedOfNodes(views []view.Node) guarded {
	found := guarded{}
	for _, v := range views {
		for label := range v.Labels {
			if strings.HasPrefix(label, guardedPrefix) {
				found.add("label "+label+" of node", v.Node, labelField(label))
			}
		}
		for annotation := range v.Annotations {
			if strings.HasPrefix(annotation, guardedPrefix) && !slices.Contains(answers, annotation) {
				found.add("annotation "+annotation+" of node", v.Node, annotationField(annotation))
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
		if one := &list.Items[i]; one.Name != "kube-root-ca.crt" { // which every namespace gets
			found.add("ConfigMap", one, configFields...)
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
		found.add("ControllerRevision", &list.Items[i], configFields...)
	}
	return found, nil
}

// guardedPools returns pools and budgets.
func (d *diagnosis) guardedPools(ctx context.Context, pools []view.Pool) (guarded, error) {
	found := guarded{}
	for _, p := range pools {
		found.add("KubeletPool", p.Object, specField)
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
		found.add("KubeletRolloutBudget", &budgets.Items[i], specField)
	}
	return found, nil
}
