package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

// installOptions say what is installed, and how.
type installOptions struct {
	*cmdutil.Factory
	yes    bool
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags

	controller string // none, inCluster or external
	image      string
	hosts      string // label selector of the nodes that may host the controller; "": control planes
}

const (
	// inCluster is the meaning of --controller without a value; external is a controller outside of the cluster.
	inCluster = "cluster"
	external  = "external"
	// noImage installs everything except the program.
	noImage = "none"
	// controlPlanes are the nodes that host the controller unless --controller-hosts says otherwise.
	controlPlanes = "node-role.kubernetes.io/control-plane"
	hostsFlag     = "controller-node-selector"
)

func (o installOptions) objects() ([]*unstructured.Unstructured, error) {
	objects, err := manifests()
	switch {
	case err != nil:
		return nil, err
	case o.controller != "" && o.controller != inCluster && o.controller != external:
		return nil, fmt.Errorf("--controller=%s is unknown: give --controller, or --controller=%s for one outside of the cluster", o.controller, external)
	case o.controller != inCluster && o.image != "":
		return nil, errors.New("--image is that of a controller in the cluster; give --controller, too")
	case o.hosts != "" && !o.runs():
		return nil, errors.New("--" + hostsFlag + " places the controller; give --controller and its --image, too")
	case o.controller == "":
		return objects, nil
	case o.controller == inCluster && (o.image == "" || strings.ContainsAny(o.image, " \t\n")):
		return nil, errors.New("--image is required: name the controller's image with --image=REGISTRY/kubelet-supervisor-controller:VERSION, because there is no public one; --image=none installs everything except the program, and --controller=external what a controller outside of the cluster needs")
	}
	others, err := o.controllerManifests()
	return append(objects, others...), err
}

// runs reports whether the program is installed, too.
func (o installOptions) runs() bool { return o.controller == inCluster && o.image != noImage }

// examineHosts refuses to install the controller if no node can host it by default, and prints a note if no named
// node can host it yet. A node that hosts it can request its token, and so has root on all nodes; therefore the
// user names the nodes, and they are never guessed.
func (o installOptions) examineHosts(ctx context.Context, f *cmdutil.Factory) error {
	client, err := f.Connect()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: cmp.Or(o.hosts, controlPlanes), Limit: 1})
	switch {
	case err != nil:
		return fmt.Errorf("looking for nodes that may host the controller: %w", err)
	case len(nodes.Items) > 0:
	case o.hosts == "":
		return errors.New("no node has the label " + controlPlanes + ". A node that hosts the controller is root on all nodes, so name those that may with --" + hostsFlag +
			"=KEY=VALUE; or run it outside of the cluster, with --controller=" + external)
	default:
		f.Note("No node has %s, so the controller waits for one that has.", o.hosts)
	}
	return nil
}

// controllerManifests returns the objects of deploy/manifests/controller, the program last.
func (o installOptions) controllerManifests() ([]*unstructured.Unstructured, error) {
	objects, err := readManifests(deploy.ControllerManifests, "manifests/controller/*.yaml")
	if err != nil {
		return nil, err
	}
	isProgram := func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}, object.GetKind())
	}
	var rest, program []*unstructured.Unstructured
	for _, object := range objects {
		if !isProgram(object) {
			if o.controller == external {
				if err := bindUser(object); err != nil {
					return nil, err
				}
			}
			rest = append(rest, object)
			continue
		}
		if object.GetKind() == "Deployment" {
			if err := errors.Join(setImage(object, o.image), setHosts(object, o.hosts)); err != nil {
				return nil, err
			}
		}
		program = append(program, object)
	}
	if !o.runs() {
		return rest, nil
	}
	return append(rest, program...), nil
}

// bindUser gives the permissions of the controller's ServiceAccount to the user of a controller outside of the
// cluster, as deploy/manifests/external does. The account then has none, so that no pod has root on all nodes.
func bindUser(object *unstructured.Unstructured) error {
	if !strings.HasSuffix(object.GetKind(), "RoleBinding") || object.GetName() != deploy.ControllerName {
		return nil
	}
	user := map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": deploy.ControllerUser}
	return unstructured.SetNestedSlice(object.Object, []any{user}, "subjects")
}

func setImage(deployment *unstructured.Unstructured, image string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, is, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || !is || len(containers) != 1 {
		return fmt.Errorf("the manifest of Deployment %s has not one container", deployment.GetName())
	}
	container, is := containers[0].(map[string]any)
	if !is {
		return fmt.Errorf("the manifest of Deployment %s has no container", deployment.GetName())
	}
	container["image"] = image
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// nodeOperators maps the operators of a label selector to those of a nodeAffinity.
var nodeOperators = map[operators.Operator]corev1.NodeSelectorOperator{
	operators.In: corev1.NodeSelectorOpIn, operators.Equals: corev1.NodeSelectorOpIn, operators.DoubleEquals: corev1.NodeSelectorOpIn,
	operators.NotIn: corev1.NodeSelectorOpNotIn, operators.NotEquals: corev1.NodeSelectorOpNotIn,
	operators.Exists: corev1.NodeSelectorOpExists, operators.DoesNotExist: corev1.NodeSelectorOpDoesNotExist,
	operators.GreaterThan: corev1.NodeSelectorOpGt, operators.LessThan: corev1.NodeSelectorOpLt,
}

// setHosts replaces the manifest's node affinity by a label selector.
func setHosts(deployment *unstructured.Unstructured, hosts string) error {
	if hosts == "" {
		return nil
	}
	selector, err := labels.Parse(hosts)
	if err != nil {
		return fmt.Errorf("--%s: %w", hostsFlag, err)
	}
	requirements, _ := selector.Requirements()
	if len(requirements) == 0 {
		return errors.New("--" + hostsFlag + " takes every node, and each of them would be root on all nodes; name a label")
	}
	var expressions []any
	for _, r := range requirements {
		expression := map[string]any{"key": r.Key(), "operator": string(nodeOperators[r.Operator()])}
		if values := r.Values().List(); len(values) > 0 {
			if err := unstructured.SetNestedStringSlice(expression, values, "values"); err != nil {
				return err
			}
		}
		expressions = append(expressions, expression)
	}
	return unstructured.SetNestedSlice(deployment.Object, []any{map[string]any{"matchExpressions": expressions}},
		"spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
}
