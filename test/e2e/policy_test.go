//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// guarded is a cluster of its own: with the manifests installed, other tests would meet the policy.
var guarded *node

// guardedNode is the node of a cluster that has deploy/manifests, with no Node object and no kubelet.
func guardedNode(t *testing.T) *node {
	t.Helper()
	if guarded == nil {
		n := up(t, "e2e-policy", newest)
		if said, err := n.Kubectl(t.Context(), "apply", "-k", "../../deploy/manifests"); err != nil {
			t.Fatal(err)
		} else {
			t.Logf("kubectl apply -k deploy/manifests:\n%s", said)
		}
		awaitPolicy(t, n)
		guarded = n
	}
	guarded.reset(t)
	return guarded
}

// awaitPolicy waits until the API server, which learns of a policy a moment after it is made, holds to it.
func awaitPolicy(t *testing.T, n *node) {
	t.Helper()
	await(t, "the API server knows the policy", func() error {
		code, err := n.request(http.MethodPost, "/api/v1/nodes?dryRun=All", nodeObject("probe", "malformed"), nil)
		if code != http.StatusUnprocessableEntity {
			return fmt.Errorf("a malformed assignment: %d, %w", code, err)
		}
		return nil
	})
}

// nodeObject is a Node, assigned unless assignment is "".
func nodeObject(name, assignment string) object {
	metadata := object{"name": name}
	if assignment != "" {
		metadata["annotations"] = object{assignmentAnnotation: assignment}
	}
	return object{"apiVersion": "v1", "kind": "Node", "metadata": metadata}
}

// identity is a user with a certificate.
func (n *node) identity(t *testing.T, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := n.IdentityConfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// nodeIdentity is a node's, as its kubelet has it.
func (n *node) nodeIdentity(t *testing.T, name string) *rest.Config {
	t.Helper()
	return n.identity(t, "system:node:"+name, "system:nodes")
}

// serviceAccount is one of the namespace default with a token, as a pod has it.
func (n *node) serviceAccount(t *testing.T, name string) *rest.Config {
	t.Helper()
	const folder = "/api/v1/namespaces/default/serviceaccounts"
	n.remove(t, folder+"/"+name)
	n.must(t, http.MethodPost, folder, object{"metadata": object{"name": name}}, nil)
	var answer struct{ Status struct{ Token string } }
	n.must(t, http.MethodPost, folder+"/"+name+"/token", object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{}}, &answer)
	config := rest.AnonymousClientConfig(n.AdminConfig())
	config.BearerToken = answer.Status.Token
	return config
}

// bind lets a user, by its full name, do what a ClusterRole says, and waits until the API server knows it. rules make that
// ClusterRole; without, it exists.
func (n *node) bind(t *testing.T, user, role string, rules ...object) {
	t.Helper()
	const folder = "/apis/rbac.authorization.k8s.io/v1/"
	if len(rules) > 0 {
		n.replace(t, folder+"clusterroles", role, object{"rules": rules})
	}
	n.replace(t, folder+"clusterrolebindings", strings.ReplaceAll(role+"-"+user, ":", "-"), object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	})
	await(t, user+" is "+role, func() error {
		// The first rule, which has to have a verb and a resource, stands for all: they come together.
		resource, verb := "nodes", "patch"
		if len(rules) > 0 {
			resource, verb = rules[0]["resources"].([]string)[0], rules[0]["verbs"].([]string)[0]
		}
		if !n.allowed(t, user, nil, verb, resource, "", cluster.NodeName) {
			return fmt.Errorf("may not %s %s", verb, resource)
		}
		return nil
	})
}

// replace makes an object anew.
func (n *node) replace(t *testing.T, folder, name string, content object) {
	t.Helper()
	n.remove(t, folder+"/"+name)
	content["metadata"] = object{"name": name}
	n.must(t, http.MethodPost, folder, content, nil)
}

// allowed asks the API server whether somebody may do something; resource may have a subresource and a group:
// RESOURCE[/SUBRESOURCE][.GROUP].
func (n *node) allowed(t *testing.T, user string, groups []string, verb, resource, namespace, name string) bool {
	t.Helper()
	resource, group, _ := strings.Cut(resource, ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	var answer struct{ Status struct{ Allowed bool } }
	n.must(t, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", object{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": object{
			"user": user, "groups": groups, "resourceAttributes": object{
				"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name,
			},
		},
	}, &answer)
	return answer.Status.Allowed
}

// The operator of these tests.
func (n *node) operator(t *testing.T) *rest.Config {
	t.Helper()
	n.bind(t, "operator", deploy.OperatorRole)
	return n.identity(t, "operator")
}
