//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// What the manifests let people and nodes do, and what they do not.
func TestRoles(t *testing.T) {
	n := guardedNode(t)
	n.bindPeople(t)
	nodes := []string{"system:nodes"}
	for _, test := range []struct {
		user     string
		groups   []string
		verbs    string
		resource string
		place    string // the namespace
		want     bool
	}{
		{"system:node:n1", nodes, "get list watch", "configmaps", "kubelet-config", true},
		{"system:node:n1", nodes, "create update patch delete", "configmaps", "kubelet-config", false},
		{"system:node:n1", nodes, "get list watch", "configmaps", "kube-system", false},
		{"system:node:n1", nodes, "get list", "secrets", "kubelet-config", false},
		{"system:node:n1", nodes, deploy.AssignVerb, "nodes", "", false},

		{"operator", nil, "get list watch patch " + deploy.AssignVerb, "nodes", "", true},
		{"operator", nil, "create update delete", "nodes", "", false},
		{"operator", nil, "get update patch", "nodes/status", "", false},
		{"operator", nil, "get", "nodes/configz", "", true},
		{"operator", nil, "get", "nodes/proxy", "", true},
		{"operator", nil, "create update patch delete", "nodes/proxy", "", false},
		{"operator", nil, "get list watch create update patch delete", "configmaps", "kubelet-config", true},
		{"operator", nil, "get list create", "configmaps", "kube-system", false},
		{"operator", nil, "get list create", "secrets", "kubelet-config", false},
		{"operator", nil, "create update patch", "roles.rbac.authorization.k8s.io", "kubelet-config", false},
		{"operator", nil, "list", "events", "default", true},
		{"operator", nil, "create", "subjectaccessreviews.authorization.k8s.io", "", true},
		{"operator", nil, "get", "validatingadmissionpolicies.admissionregistration.k8s.io", "", true},
		{"operator", nil, "update patch delete", "validatingadmissionpolicies.admissionregistration.k8s.io", "", false},
		{"operator", nil, "update patch delete", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "", false},

		{"viewer", nil, "get list watch", "nodes", "", true},
		{"viewer", nil, "create update patch delete " + deploy.AssignVerb, "nodes", "", false},
		{"viewer", nil, "get", "nodes/configz", "", true},
		{"viewer", nil, "get", "nodes/proxy", "", false},
		{"viewer", nil, "get list watch", "configmaps", "kubelet-config", true},
		{"viewer", nil, "create update patch delete", "configmaps", "kubelet-config", false},
		{"viewer", nil, "get list", "configmaps", "kube-system", false},
		{"viewer", nil, "list", "events", "default", true},
		{"viewer", nil, "get", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "", true},

		{"granter", nil, "get list watch create update patch delete", "configmaps", "elsewhere", true},
		{"granter", nil, "get list watch create update patch delete", "roles.rbac.authorization.k8s.io", "elsewhere", true},
		{"granter", nil, "get list watch create update patch delete", "rolebindings.rbac.authorization.k8s.io", "elsewhere", true},
		{"granter", nil, "escalate bind", "roles.rbac.authorization.k8s.io", "elsewhere", false},
		{"granter", nil, "create", "roles.rbac.authorization.k8s.io", "kubelet-config", false},
		{"granter", nil, deploy.AssignVerb, "nodes", "", false},
	} {
		for verb := range strings.FieldsSeq(test.verbs) {
			name := "" // any, for those that have a name only sometimes
			if strings.HasPrefix(test.resource, "validating") {
				name = deploy.ConfigMapPolicy // and Policy, by the same rule
			}
			if got := n.allowed(t, test.user, test.groups, verb, test.resource, test.place, name); got != test.want {
				t.Errorf("%s may %s %s in %q: %v, want %v", test.user, verb, test.resource, test.place, got, test.want)
			}
		}
	}
}

// bindPeople binds operator, viewer and granter as the comments of the manifests tell.
func (n *node) bindPeople(t *testing.T) {
	t.Helper()
	for _, line := range []string{
		"delete clusterrolebinding --ignore-not-found operator-assigns viewer-looks",
		"delete rolebinding -n kubelet-config --ignore-not-found operator-assigns viewer-looks",
		"delete rolebinding -n elsewhere --ignore-not-found granter-assigns",
		"create clusterrolebinding operator-assigns --clusterrole=kubelet-supervisor-operator --user=operator",
		"create rolebinding operator-assigns -n kubelet-config --role=kubelet-supervisor-operator --user=operator",
		"create clusterrolebinding viewer-looks --clusterrole=kubelet-supervisor-viewer --user=viewer",
		"create rolebinding viewer-looks -n kubelet-config --role=kubelet-supervisor-viewer --user=viewer",
		"create rolebinding granter-assigns -n elsewhere --clusterrole=kubelet-supervisor-granter --user=granter",
	} {
		if _, err := n.Kubectl(t.Context(), strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the API server knows the bindings", func() error {
		_, err := n.Kubectl(t.Context(), "auth", "can-i", "create", "roles", "-n", "elsewhere", "--as=granter")
		return err
	})
}

// Who may grant a ConfigMap to a node grants no more than that.
func TestGranter(t *testing.T) {
	n := guardedNode(t)
	n.bindPeople(t)
	granter := n.identity(t, "granter")
	const folder = "/apis/rbac.authorization.k8s.io/v1/namespaces/elsewhere/"
	role := func(name, resource string, verbs ...string) object {
		return object{"metadata": object{"name": name}, "rules": []object{{"apiGroups": []string{""}, "resources": []string{resource}, "resourceNames": []string{"a"}, "verbs": verbs}}}
	}
	binding := func(kind, name string) object {
		return object{"metadata": object{"name": "granted-" + name}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:node:n1"}}}
	}
	for _, test := range []struct {
		name, path string
		body       object
		want       int
	}{
		{"a ConfigMap", folder + "roles", role("one", "configmaps", "get", "list", "watch"), http.StatusCreated},
		{"to a node", folder + "rolebindings", binding("Role", "one"), http.StatusCreated},
		{"a Secret", folder + "roles", role("secret", "secrets", "get"), http.StatusForbidden},
		{"everything", folder + "rolebindings", binding("ClusterRole", "cluster-admin"), http.StatusForbidden},
	} {
		if code, err := requestAs(granter, http.MethodPost, test.path, test.body, nil); code != test.want {
			t.Errorf("granting %s: answered %d, %v, want %d", test.name, code, err, test.want)
		}
	}
	n.remove(t, folder+"rolebindings/granted-one")
	n.remove(t, folder+"roles/one")
}

// What people and controllers do with Nodes every day, without the verb, is not the policy's business, assigned or not.
func TestPolicyLeavesTheRestAlone(t *testing.T) {
	n := guardedNode(t)
	n.policyPeople(t)
	for _, assignment := range []string{"", "kubelet-config/a/kubelet"} {
		n.remove(t, nodePath)
		n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject(cluster.NodeName, assignment), nil)
		for _, line := range []string{
			"cordon n1",
			"uncordon n1",
			"taint node n1 example.com/dedicated=db:NoSchedule",
			"taint node n1 example.com/dedicated-",
			"label node n1 example.com/rack=7",
			"annotate node n1 example.com/note=x",
			"annotate node n1 example.com/note-",
			"patch node n1 --subresource=status -p {\"status\":{\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"}]}}",
			"patch node n1 --subresource=status -p {\"metadata\":{\"annotations\":{\"example.com/seen\":\"x\"}}}",
		} {
			if _, err := n.Kubectl(t.Context(), append(strings.Fields(line), "--as=system:serviceaccount:default:node-writer")...); err != nil {
				t.Errorf("assigned %q: %v", assignment, err)
			}
		}
		_, err := n.Kubectl(t.Context(), "annotate", "node", "n1", "--overwrite", assignmentAnnotation+"=local", "--as=system:serviceaccount:default:node-writer")
		if err == nil || !strings.Contains(err.Error(), "needs the verb assign-kubelet-config on node") {
			t.Errorf("assigned %q: assigning without the verb: %v", assignment, err)
		}
		if _, err := n.Kubectl(t.Context(), "delete", "node", "n1"); err != nil {
			t.Error(err)
		}
	}
}
