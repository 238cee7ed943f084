package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

// examinePolicies checks the admission policies. Without them a node's identity can assign its own Node, as can
// users who may patch nodes/status, and users who may write ConfigMaps in ConfigNamespace can change what nodes
// run.
func (d *diagnosis) examinePolicies(ctx context.Context) {
	if d.examinePolicy(ctx, deploy.Policy, "limits who may assign") {
		d.probePolicy(ctx)
	}
	d.examinePolicy(ctx, deploy.ConfigMapPolicy, "limits who may change configurations in namespace "+cmdutil.ConfigNamespace)
}

// withoutPolicy says what is possible while a policy is not in force.
var withoutPolicy = map[string]string{
	deploy.Policy:                       "everybody who may patch nodes or nodes/status can assign",
	deploy.ConfigMapPolicy:              "everybody who may write ConfigMaps in namespace " + cmdutil.ConfigNamespace + " can change what nodes run",
	"kubelet-supervisor-pools":          "who may write KubeletPools can change what all nodes run, and who may write KubeletRolloutBudgets can stop that",
	"kubelet-supervisor-selectors":      "who makes a KubeletPool select by a label that others write is not warned",
	"kubelet-supervisor-pool-status":    "who may write the status of KubeletPools can have a stopped revision tried again",
	"kubelet-supervisor-budget-status":  "who may write the status of KubeletRolloutBudgets can say that they hold",
	"kubelet-supervisor-revisions":      "who may write ConfigMaps in namespace " + cmdutil.ConfigNamespace + " can change what pools have assigned, and have what deleted pools left deleted early",
	"kubelet-supervisor-controller-pod": "who may impersonate the ServiceAccount of the controller, or request a token for it, can do what the controller does",
	"kubelet-supervisor-layers":         "who makes a KubeletPool with a field that no kubelet knows is not warned",
}

// knowsPolicies reports whether the API server has admission policies. If it does not answer, the result is true.
func (d *diagnosis) knowsPolicies() bool {
	kinds, err := d.client.Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		return true
	}
	return slices.ContainsFunc(kinds.APIResources, func(r metav1.APIResource) bool { return r.Name == "validatingadmissionpolicies" })
}

// examinePolicy compares a policy and its binding with what install makes; installed reports whether both exist.
func (d *diagnosis) examinePolicy(ctx context.Context, name, does string) (installed bool) {
	without := withoutPolicy[name]
	api := d.client.AdmissionregistrationV1()
	policy, err := api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if !d.knowsPolicies() {
			d.note("this API server has no admission policies (Kubernetes 1.30 and later have), so %s is not installed: %s; RBAC alone limits that", name, without)
			return false
		}
		d.note("the admission policy %s is not installed: %s; %s", name, without, d.installing(ctx, name))
		return false
	}
	if err != nil {
		d.unknown("whether the admission policy %s is installed: %v", name, err)
		return false
	}
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		d.wrong("the admission policy %s has lost its binding: %s; %s", name, without, d.installing(ctx, name))
		return false
	}
	if err != nil {
		d.unknown("whether the admission policy %s is bound: %v", name, err)
		return false
	}
	others, err := differFromManifests(name, policy, binding)
	if err != nil {
		d.unknown("whether the admission policy %s is as install makes it: %v", name, err)
		return true
	}
	if len(others) > 0 {
		d.wrong("the admission policy %s is not as install makes it (%s), so it may be that %s; %s", name, strings.Join(others, "; "), without, d.installing(ctx, name))
		return true
	}
	d.fine("the admission policy %s %s, and is as install makes it", name, does)
	return true
}

// installing returns the command that repairs a policy. If the permissions are those of a controller outside of
// the cluster, the command keeps them.
func (d *diagnosis) installing(ctx context.Context, policy string) string {
	if !slices.Contains(deploy.PoolPolicies(), policy) {
		return "kubectl kubelet install"
	}
	binding, err := d.client.RbacV1().ClusterRoleBindings().Get(ctx, deploy.ControllerName, metav1.GetOptions{})
	if err == nil && slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && s.Name == deploy.ControllerUser }) {
		return "kubectl kubelet install --controller=" + external
	}
	return "kubectl kubelet install --controller"
}

// differFromManifests names the fields in which a policy and its binding differ from what install makes.
func differFromManifests(name string, policy, binding runtime.Object) (others []string, err error) {
	for kind, object := range map[string]runtime.Object{"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding} {
		fields, err := differsFromManifest(kind, name, object)
		if err != nil {
			return nil, err
		}
		if len(fields) > 0 {
			others = append(others, fmt.Sprintf("%s of the %s", strings.Join(fields, ", "), kind))
		}
	}
	return others, nil
}

// differsFromManifest names the fields in which an object differs from its manifest.
func differsFromManifest(kind, name string, object runtime.Object) ([]string, error) {
	objects, err := installOptions{controller: inCluster, image: noImage}.objects()
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	for _, manifest := range objects {
		if manifest.GetKind() == kind && manifest.GetName() == name {
			return otherFields(&unstructured.Unstructured{Object: content}, manifest), nil
		}
	}
	return nil, fmt.Errorf("no manifest has a %s %s", kind, name)
}

// probePolicy sends a dry run that the policy must refuse. As a user it tries to write the node's own status,
// because the policy refuses that with and without the verb.
func (d *diagnosis) probePolicy(ctx context.Context) {
	asks := map[string]string{nodev1.ConfigSourceAnnotation: cmdutil.ConfigNamespace + "/doctor/kubelet"}
	says := map[string]string{nodev1.ConfigObservedAnnotation: "doctor"}
	if node, err := d.ConnectAs(nodeUser(d.node.Name), "system:nodes", "system:authenticated"); err == nil {
		byNode, byStatus := d.probe(ctx, node, asks), d.probe(ctx, node, asks, "status")
		if byNode != probeUnknown && byStatus != probeUnknown {
			d.tellProbe("the node assigns itself", max(byNode, byStatus))
			return
		}
	}
	d.tellProbe("you write the node's own status", d.probe(ctx, d.client, says))
}

// probed is the result of a request that the policy must refuse; the worst is the greatest.
type probed int

const (
	probeUnknown probed = iota
	probeRefused
	probeTaken
)

func (d *diagnosis) probe(ctx context.Context, client kubernetes.Interface, annotations map[string]string, subresources ...string) probed {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return probeUnknown
	}
	options := metav1.PatchOptions{FieldManager: cmdutil.FieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err = client.CoreV1().Nodes().Patch(ctx, d.node.Name, types.MergePatchType, patch, options, subresources...)
	switch {
	case err == nil:
		return probeTaken
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+deploy.Policy+"'"):
		return probeRefused
	}
	return probeUnknown
}

func (d *diagnosis) tellProbe(what string, result probed) {
	switch result {
	case probeRefused:
		d.fine("the API server refuses a dry run in which %s", what)
	case probeTaken:
		d.wrong("the API server takes a dry run in which %s: the admission policy %s does not hold; kubectl kubelet install, and look for what excepts this request", what, deploy.Policy)
	case probeUnknown:
		d.unknown("whether the admission policy holds: you may neither impersonate the node nor patch it")
	}
}
