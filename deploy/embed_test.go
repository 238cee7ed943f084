package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// kustomized gives a folder and its files in the order of its kustomization, which has to list them all.
func kustomized(t *testing.T, embedded fs.FS, name string) (folder fs.FS, files []string) {
	t.Helper()
	folder, err := fs.Sub(embedded, name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(folder, "kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := sigsyaml.Unmarshal(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	if files, err = fs.Glob(folder, "*"); err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "kustomization.yaml" })
	if listed := slices.Sorted(slices.Values(kustomization.Resources)); !slices.Equal(files, listed) {
		t.Errorf("the folder has %v, kustomization.yaml lists %v", files, listed)
	}
	return folder, kustomization.Resources
}

// What is embedded is what kustomize builds, and keeps what the package promises of it.
func TestManifests(t *testing.T) {
	folder, files := kustomized(t, deploy.Manifests, "manifests")

	made := map[string]bool{}
	for _, file := range files {
		for _, object := range decode(t, folder, file) {
			name := object.GetKind() + " " + object.GetName()
			if space := object.GetNamespace(); space != "" {
				if !made["Namespace "+space] {
					t.Errorf("%s: %s comes before its namespace %s", file, name, space)
				}
				name += " in " + space
			}
			made[name] = true
			if object.GetLabels()["app.kubernetes.io/name"] != "kubelet-supervisor" {
				t.Errorf("%s: %s is not labelled as ours", file, name)
			}
			if object.GetKind() != "Namespace" && !strings.HasPrefix(object.GetName(), "kubelet-supervisor-") {
				t.Errorf("%s: %s does not have our prefix", file, name)
			}
		}
	}
	for _, name := range []string{
		"Namespace " + deploy.Namespace,
		"ValidatingAdmissionPolicy " + deploy.Policy, "ValidatingAdmissionPolicyBinding " + deploy.Policy,
		"ValidatingAdmissionPolicy " + deploy.ConfigMapPolicy, "ValidatingAdmissionPolicyBinding " + deploy.ConfigMapPolicy,
		"ClusterRole " + deploy.OperatorRole, "Role " + deploy.OperatorRole + " in " + deploy.Namespace,
		"ClusterRole " + deploy.PipelineRole, "ClusterRole " + deploy.ViewerRole, "Role " + deploy.ViewerRole + " in " + deploy.Namespace,
		"ClusterRole " + deploy.GranterRole,
	} {
		if !made[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

func decode(t *testing.T, folder fs.FS, file string) []unstructured.Unstructured {
	t.Helper()
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	var objects []unstructured.Unstructured
	for {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
}

// The controller's folder is what its kustomization lists, each thing with our label and name, after its namespace or in one that is there.
func TestControllerManifests(t *testing.T) {
	folder, files := kustomized(t, deploy.ControllerManifests, "manifests/controller")
	made, named := map[string]bool{"default": true, deploy.Namespace: true}, map[string]bool{}
	for _, file := range files {
		for _, object := range decode(t, folder, file) {
			name := object.GetKind() + " " + object.GetName()
			if object.GetKind() == "Namespace" {
				made[object.GetName()] = true
			}
			if space := object.GetNamespace(); space != "" && !made[space] {
				t.Errorf("%s: %s comes before its namespace %s", file, name, space)
			}
			named[strings.TrimSuffix(name+" in "+object.GetNamespace(), " in ")] = true
			if view := object.GetLabels()["rbac.authorization.k8s.io/aggregate-to-view"] == "true"; view != (name == "ClusterRole "+deploy.PoolViewerRole) {
				t.Errorf("%s: %s is part of the ClusterRole view: %v", file, name, view)
			}
			if object.GetKind() == "CustomResourceDefinition" {
				continue
			}
			if object.GetLabels()["app.kubernetes.io/name"] != "kubelet-supervisor" || !strings.HasPrefix(object.GetName(), "kubelet-supervisor") {
				t.Errorf("%s: %s is not labelled or named as ours", file, name)
			}
		}
	}
	wanted := []string{"Namespace " + deploy.ControllerNamespace, "Deployment " + deploy.ControllerName + " in " + deploy.ControllerNamespace,
		"ClusterRole " + deploy.PoolViewerRole, "Role " + deploy.PoolViewerRole + " in " + deploy.Namespace, "ClusterRole " + deploy.PoolOperatorRole,
		"FlowSchema " + deploy.ControllerName, "FlowSchema " + deploy.ControllerName + "-lease"}
	for _, policy := range deploy.PoolPolicies() {
		wanted = append(wanted, "ValidatingAdmissionPolicy "+policy, "ValidatingAdmissionPolicyBinding "+policy)
	}
	for _, name := range wanted {
		if !named[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// Who wants no pool to drain removes one rule, and takes nothing else from the controller.
func TestEvictionIsARuleOfItsOwn(t *testing.T) {
	folder, _ := kustomized(t, deploy.ControllerManifests, "manifests/controller")
	found := 0
	for _, object := range decode(t, folder, "rbac.yaml") {
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			rule := rule.(map[string]any)
			if resources, _ := rule["resources"].([]any); slices.Contains(resources, any("pods/eviction")) {
				found++
				if len(resources) != 1 || !slices.Equal(rule["verbs"].([]any), []any{"create"}) {
					t.Errorf("%s %s has more in this rule: %v", object.GetKind(), object.GetName(), rule)
				}
			}
		}
	}
	if found != 1 {
		t.Errorf("%d rules have pods/eviction", found)
	}
}

// The role of pipelines has nothing that the operator's lacks, and cannot ask kubelets: neither by nodes/proxy nor by a finer one of its parts. It
// is the one that the page about pipelines binds.
func TestPipelineRole(t *testing.T) {
	folder, files := kustomized(t, deploy.Manifests, "manifests")
	roles := map[string]*rbacv1.ClusterRole{}
	for _, file := range files {
		for _, object := range decode(t, folder, file) {
			var role rbacv1.ClusterRole
			if object.GetKind() != "ClusterRole" {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			roles[role.Name] = &role
		}
	}
	for _, rule := range roles[deploy.PipelineRole].Rules {
		for _, resource := range rule.Resources {
			if resource == "*" || strings.HasPrefix(resource, "nodes/") || strings.HasPrefix(resource, "pods") || slices.Contains(rule.Verbs, "*") {
				t.Errorf("a pipeline may %v %s", rule.Verbs, resource)
			}
			if !slices.ContainsFunc(roles[deploy.OperatorRole].Rules, func(theirs rbacv1.PolicyRule) bool {
				return slices.Equal(theirs.APIGroups, rule.APIGroups) && slices.Contains(theirs.Resources, resource) && slices.Equal(theirs.Verbs, rule.Verbs)
			}) {
				t.Errorf("a pipeline may %v %s, and an operator may not", rule.Verbs, resource)
			}
		}
	}
	page, err := os.ReadFile("../docs/howto/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "--clusterrole="+deploy.PipelineRole+" ") || strings.Contains(string(page), "--clusterrole="+deploy.OperatorRole) {
		t.Errorf("docs/howto/ci.md binds another ClusterRole than %s", deploy.PipelineRole)
	}
}
