//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
)

// policyCells says, for everybody (first column: who, then which Node), each kind of request, and each change of what the
// supervisor is asked, what the API server answers. The last two columns change nothing of it, or ask for a retry.
//
//	ok         it is done
//	node       refused by the policy: a node does not assign
//	status     refused by the policy: not through the status
//	verb       refused by the policy: the verb is missing
//	malformed  refused by the policy: it may be done, but not with this value
//	RBAC       refused before: may not do such a request at all
//	foreign    refused before, by NodeRestriction: another node's
//	-          there is no such request
const policyCells = `
who                node  request       set        changed    removed  malformed  unchanged  retry
admin              n1    POST          ok         -          -        malformed  ok         ok
admin              n1    PUT           ok         ok         ok       malformed  ok         ok
admin              n1    PATCH         ok         ok         ok       malformed  ok         ok
admin              n1    APPLY         ok         ok         -        malformed  ok         ok
admin              n1    PUT/status    status     status     status   status     ok         status
admin              n1    PATCH/status  status     status     status   status     ok         status
admin              n1    APPLY/status  status     status     -        status     ok         status

operator           n1    POST          RBAC       -          -        RBAC       RBAC       RBAC
operator           n1    PUT           RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
operator           n1    PATCH         ok         ok         ok       malformed  ok         ok
operator           n1    APPLY         ok         ok         -        malformed  ok         ok
operator           n1    PUT/status    RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
operator           n1    PATCH/status  RBAC       RBAC       RBAC     RBAC       RBAC       RBAC

verb-and-all       n1    POST          ok         -          -        malformed  ok         ok
verb-and-all       n1    PUT           ok         ok         ok       malformed  ok         ok
verb-and-all       n1    PATCH         ok         ok         ok       malformed  ok         ok
verb-and-all       n1    PUT/status    status     status     status   status     ok         status
verb-and-all       n1    PATCH/status  status     status     status   status     ok         status

verb-for-n1        n1    PATCH         ok         ok         ok       malformed  ok         ok
verb-for-n1        n2    PATCH         verb       verb       verb     verb       ok         verb

node-n1            n1    POST          node       -          -        node       ok         node
node-n1            n1    PUT           node       node       node     node       ok         node
node-n1            n1    PATCH         node       node       node     node       ok         node
node-n1            n1    APPLY         node       node       -        node       ok         node
node-n1            n1    PUT/status    node       node       node     node       ok         node
node-n1            n1    PATCH/status  node       node       node     node       ok         node
node-n1            n1    APPLY/status  node       node       -        node       ok         node
node-n1            n2    POST          foreign    -          -        foreign    foreign    foreign
node-n1            n2    PUT           foreign    foreign    foreign  foreign    foreign    foreign
node-n1            n2    PATCH         foreign    foreign    foreign  foreign    foreign    foreign
node-n1            n2    PUT/status    foreign    foreign    foreign  foreign    foreign    foreign
node-n1            n2    PATCH/status  foreign    foreign    foreign  foreign    foreign    foreign

node-with-verb     n3    POST          node       -          -        node       ok         node
node-with-verb     n3    PATCH         node       node       node     node       ok         node
node-with-verb     n3    PATCH/status  node       node       node     node       ok         node
node-by-name       n1    PATCH         node       node       node     node       ok         node
node-by-group      n1    PATCH         node       node       node     node       ok         node

status-writer      n1    POST          RBAC       -          -        RBAC       RBAC       RBAC
status-writer      n1    PUT           RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
status-writer      n1    PATCH         RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
status-writer      n1    PUT/status    RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
status-writer      n1    PATCH/status  status     status     status   status     ok         status
status-writer      n1    APPLY/status  status     status     -        status     ok         status

node-writer        n1    POST          verb       -          -        verb       ok         verb
node-writer        n1    PUT           verb       verb       verb     verb       ok         verb
node-writer        n1    PATCH         verb       verb       verb     verb       ok         verb
node-writer        n1    APPLY         verb       verb       -        verb       ok         verb
node-writer        n1    PUT/status    status     status     status   status     ok         status
node-writer        n1    PATCH/status  status     status     status   status     ok         status

viewer             n1    PATCH         RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
viewer             n1    PATCH/status  RBAC       RBAC       RBAC     RBAC       RBAC       RBAC

plain              n1    POST          RBAC       -          -        RBAC       RBAC       RBAC
plain              n1    PUT           RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
plain              n1    PATCH         RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
plain              n1    APPLY         RBAC       RBAC       -        RBAC       RBAC       RBAC
plain              n1    PUT/status    RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
plain              n1    PATCH/status  RBAC       RBAC       RBAC     RBAC       RBAC       RBAC
`

// policyAnswers are the code and what the message has, for each word of policyCells but ok.
var policyAnswers = map[string]struct {
	code    int
	message string
}{
	"node":      {http.StatusForbidden, "denied request: a node may not assign a configuration to a node, itself included, nor ask for a retry; assign as a person who has the verb assign-kubelet-config"},
	"status":    {http.StatusForbidden, "denied request: an assignment, or a retry, is not set, changed or removed through the status of a Node, by nobody; patch the Node itself"},
	"verb":      {http.StatusForbidden, "denied request: user %q needs the verb assign-kubelet-config on node %q to set, change or remove its assignment or to ask for a retry; grant it with ClusterRole kubelet-supervisor-operator"},
	"malformed": {http.StatusUnprocessableEntity, "denied request: annotation kubelet-supervisor.io/config-source: spec.configSource.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set; write NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local"},
	"RBAC":      {http.StatusForbidden, "%q cannot "},
	"foreign":   {http.StatusForbidden, `node "n1" is not allowed to modify node "n2"`},
}

// policyChanges are the annotations before and after; nil is none.
var policyChanges = map[string]struct{ before, after object }{
	"set":       {nil, object{assignmentAnnotation: "kubelet-config/a/kubelet"}},
	"changed":   {object{assignmentAnnotation: "kubelet-config/a/kubelet"}, object{assignmentAnnotation: "local"}},
	"removed":   {object{assignmentAnnotation: "kubelet-config/a/kubelet"}, object{assignmentAnnotation: nil}},
	"malformed": {nil, object{assignmentAnnotation: "kubelet-config/a"}},
	"unchanged": {object{assignmentAnnotation: "kubelet-config/a/kubelet", retryAnnotation: "1"}, object{assignmentAnnotation: "kubelet-config/a/kubelet", retryAnnotation: "1", statusAnnotation: "{}", "example.com/foreign": "set"}},
	"retry":     {object{assignmentAnnotation: "kubelet-config/a/kubelet"}, object{assignmentAnnotation: "kubelet-config/a/kubelet", retryAnnotation: "now"}},
}

func TestPolicyCells(t *testing.T) {
	n := guardedNode(t)
	people := n.policyPeople(t)
	var changes []string
	for line := range strings.Lines(policyCells) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		who, name, request, cells := words[0], words[1], words[2], words[3:]
		if who == "who" {
			changes = cells
			continue
		}
		for i, want := range cells {
			if want == "-" {
				continue
			}
			t.Run(strings.Join([]string{who, name, request, changes[i]}, " "), func(t *testing.T) {
				n.policyCell(t, people[who], name, request, changes[i], want)
			})
		}
	}
}

// policyCell makes the request and looks at the answer, and at the Node.
func (n *node) policyCell(t *testing.T, who *person, name, request, change, want string) {
	t.Helper()
	method, subresource, _ := strings.Cut(request, "/")
	before, after := policyChanges[change].before, policyChanges[change].after
	itself := "/api/v1/nodes/" + name
	path, content := itself, nodeObject(name, "")
	n.remove(t, itself)
	t.Cleanup(func() { n.remove(t, itself) })
	if method == http.MethodPost {
		path = "/api/v1/nodes"
		if before = nil; change == "unchanged" {
			after = object{"example.com/foreign": "set"}
		}
	} else {
		made := nodeObject(name, "")
		made["metadata"].(object)["annotations"] = before
		n.must(t, http.MethodPost, "/api/v1/nodes", made, &made)
		if method == http.MethodPut {
			content = made // with the taint that a Node is made with, which a node may not remove
		}
		if subresource != "" {
			path += "/" + subresource
		}
	}
	if method == http.MethodPatch {
		content["metadata"].(object)["annotations"] = after
	} else {
		content["metadata"].(object)["annotations"] = withoutNil(after)
	}

	code, err := requestAs(who.identity, method, path, content, nil)
	var now struct {
		Metadata struct{ Annotations map[string]string }
	}
	_, _ = n.request(http.MethodGet, itself, nil, &now)
	if want == "ok" {
		if err != nil {
			t.Errorf("refused: %v", err)
		} else if fmt.Sprint(now.Metadata.Annotations) != fmt.Sprint(withoutNil(after)) {
			t.Errorf("the Node has %v", now.Metadata.Annotations)
		}
		return
	}
	answer := policyAnswers[want]
	message := answer.message
	switch want {
	case "RBAC":
		message = fmt.Sprintf(message, who.name)
	case "verb":
		message = fmt.Sprintf(message, who.name, name)
	}
	if quoted := strings.ReplaceAll(message, `"`, `\"`); err == nil || code != answer.code || !strings.Contains(err.Error(), quoted) {
		t.Errorf("answered %d, %v, want %d with %s", code, err, answer.code, message)
	}
	if fmt.Sprint(now.Metadata.Annotations) != fmt.Sprint(withoutNil(before)) {
		t.Errorf("refused, and the Node has %v", now.Metadata.Annotations)
	}
}

func withoutNil(annotations object) map[string]string {
	kept := map[string]string{}
	for name, value := range annotations {
		if text, is := value.(string); is {
			kept[name] = text
		}
	}
	return kept
}

// A person is anybody who makes requests.
type person struct {
	name     string // as the API server knows him
	identity *rest.Config
}

// policyPeople are those of policyCells.
func (n *node) policyPeople(t *testing.T) map[string]*person {
	t.Helper()
	const account = "system:serviceaccount:default:"
	rule := func(resource string, verbs ...string) object {
		return object{"apiGroups": []string{""}, "resources": []string{resource}, "verbs": verbs}
	}
	everything := []string{"create", "get", "list", "watch", "update", "patch"}
	n.bind(t, "verb-and-all", "all-of-nodes", rule("nodes", append(everything, packaging.AssignVerb)...), rule("nodes/status", everything...))
	n.bind(t, "verb-for-n1", "patch-nodes", rule("nodes", "patch"))
	n.bind(t, "verb-for-n1", "assign-n1", object{"apiGroups": []string{""}, "resources": []string{"nodes"}, "resourceNames": []string{"n1"}, "verbs": []string{packaging.AssignVerb}})
	for _, user := range []string{"system:node:n3", "system:node:n1-by-name", "by-group"} {
		n.bind(t, user, "all-of-nodes")
	}
	n.bind(t, account+"status-writer", "patch-status", rule("nodes/status", "patch"))
	n.bind(t, account+"node-writer", "write-nodes", rule("nodes", everything...), rule("nodes/status", everything...))
	n.bindViewer(t)
	return map[string]*person{
		"admin":          {"admin", n.AdminConfig()},
		"operator":       {"operator", n.operator(t)},
		"verb-and-all":   {"verb-and-all", n.identity(t, "verb-and-all")},
		"verb-for-n1":    {"verb-for-n1", n.identity(t, "verb-for-n1")},
		"node-n1":        {"system:node:n1", n.nodeIdentity(t, "n1")},
		"node-with-verb": {"system:node:n3", n.nodeIdentity(t, "n3")},
		// Neither is what the API server takes for a node, which has both name and group, so RBAC alone lets them in.
		"node-by-name":  {"system:node:n1-by-name", n.identity(t, "system:node:n1-by-name")},
		"node-by-group": {"by-group", n.identity(t, "by-group", "system:nodes")},
		"status-writer": {account + "status-writer", n.serviceAccount(t, "status-writer")},
		"node-writer":   {account + "node-writer", n.serviceAccount(t, "node-writer")},
		"viewer":        {"viewer", n.identity(t, "viewer")},
		"plain":         {"plain", n.identity(t, "plain")},
	}
}

func (n *node) bindViewer(t *testing.T) {
	t.Helper()
	const folder = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	n.replace(t, folder, "viewer", object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": packaging.ViewerRole},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}},
	})
}
