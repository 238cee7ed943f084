//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// policyCells says, for everybody (first column: who, then which Node), each kind of request, and each change of what a
// node is asked or answers, what the API server answers. "unchanged" changes none of it; record and consent are asked as an
// assignment is; "answer" writes a node's words, and "forgotten" removes them. "label" puts it into a pool, "relabel" into another one, and
// "unlabel" into none.
//
//	ok         it is done
//	node       refused by the policy: a node does not assign
//	joins      refused by the policy: a node does not label itself into a pool
//	status     refused by the policy: not through the status
//	verb       refused by the policy: the verb is missing
//	malformed  refused by the policy: it may be done, but not with this value
//	itself     refused by the policy: a node's words are its own
//	remover    refused by the policy: they are removed by the node, or with the verb, from the Node itself
//	RBAC       refused before: may not do such a request at all
//	foreign    refused before, by NodeRestriction: another node's
//	-          there is no such request
const policyCells = `
who             node  request       set      changed  removed  malformed  unchanged  retry    record   consent  answer   forgotten  label    relabel  unlabel
admin           n1    POST          ok       -        -        malformed  ok         ok       ok       ok       itself   -          ok       -        -
admin           n1    PUT           ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
admin           n1    PATCH         ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
admin           n1    APPLY         ok       ok       -        malformed  ok         ok       ok       ok       itself   -          ok       ok       -
admin           n1    PUT/status    status   status   status   status     ok         status   status   status   itself   remover    status   status   status
admin           n1    PATCH/status  status   status   status   status     ok         status   status   status   itself   remover    status   status   status
admin           n1    APPLY/status  status   status   -        status     ok         status   status   status   itself   -          status   status   -

operator        n1    POST          RBAC     -        -        RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     -          RBAC     -        -
operator        n1    PUT           RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
operator        n1    PATCH         ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
operator        n1    APPLY         ok       ok       -        malformed  ok         ok       ok       ok       itself   -          ok       ok       -
operator        n1    PUT/status    RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
operator        n1    PATCH/status  RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC

verb-and-all    n1    POST          ok       -        -        malformed  ok         ok       ok       ok       itself   -          ok       -        -
verb-and-all    n1    PUT           ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
verb-and-all    n1    PATCH         ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
verb-and-all    n1    PUT/status    status   status   status   status     ok         status   status   status   itself   remover    status   status   status
verb-and-all    n1    PATCH/status  status   status   status   status     ok         status   status   status   itself   remover    status   status   status

verb-for-n1     n1    PATCH         ok       ok       ok       malformed  ok         ok       ok       ok       itself   ok         ok       ok       ok
verb-for-n1     n2    PATCH         verb     verb     verb     verb       ok         verb     verb     verb     itself   remover    verb     verb     verb

node-n1         n1    POST          node     -        -        node       ok         node     node     node     ok       -          joins    -        -
node-n1         n1    PUT           node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-n1         n1    PATCH         node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-n1         n1    APPLY         node     node     -        node       ok         node     node     node     ok       -          joins    joins    -
node-n1         n1    PUT/status    node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-n1         n1    PATCH/status  node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-n1         n1    APPLY/status  node     node     -        node       ok         node     node     node     ok       -          joins    joins    -
node-n1         n2    POST          foreign  -        -        foreign    foreign    foreign  foreign  foreign  foreign  -          foreign  -        -
node-n1         n2    PUT           foreign  foreign  foreign  foreign    foreign    foreign  foreign  foreign  foreign  foreign    foreign  foreign  foreign
node-n1         n2    PATCH         foreign  foreign  foreign  foreign    foreign    foreign  foreign  foreign  foreign  foreign    foreign  foreign  foreign
node-n1         n2    PUT/status    foreign  foreign  foreign  foreign    foreign    foreign  foreign  foreign  foreign  foreign    foreign  foreign  foreign
node-n1         n2    PATCH/status  foreign  foreign  foreign  foreign    foreign    foreign  foreign  foreign  foreign  foreign    foreign  foreign  foreign

node-with-verb  n3    POST          node     -        -        node       ok         node     node     node     ok       -          joins    -        -
node-with-verb  n3    PATCH         node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-with-verb  n3    PATCH/status  node     node     node     node       ok         node     node     node     ok       ok         joins    joins    joins
node-by-name    n1    PATCH         node     node     node     node       ok         node     node     node     itself   remover    joins    joins    joins
node-by-group   n1    PATCH         node     node     node     node       ok         node     node     node     itself   remover    joins    joins    joins

status-writer   n1    POST          RBAC     -        -        RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     -          RBAC     -        -
status-writer   n1    PUT           RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
status-writer   n1    PATCH         RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
status-writer   n1    PUT/status    RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
status-writer   n1    PATCH/status  status   status   status   status     ok         status   status   status   itself   remover    status   status   status
status-writer   n1    APPLY/status  status   status   -        status     ok         status   status   status   itself   -          status   status   -

node-writer     n1    POST          verb     -        -        verb       ok         verb     verb     verb     itself   -          verb     -        -
node-writer     n1    PUT           verb     verb     verb     verb       ok         verb     verb     verb     itself   remover    verb     verb     verb
node-writer     n1    PATCH         verb     verb     verb     verb       ok         verb     verb     verb     itself   remover    verb     verb     verb
node-writer     n1    APPLY         verb     verb     -        verb       ok         verb     verb     verb     itself   -          verb     verb     -
node-writer     n1    PUT/status    status   status   status   status     ok         status   status   status   itself   remover    status   status   status
node-writer     n1    PATCH/status  status   status   status   status     ok         status   status   status   itself   remover    status   status   status

viewer          n1    PATCH         RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
viewer          n1    PATCH/status  RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC

plain           n1    POST          RBAC     -        -        RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     -          RBAC     -        -
plain           n1    PUT           RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
plain           n1    PATCH         RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
plain           n1    APPLY         RBAC     RBAC     -        RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     -          RBAC     RBAC     -
plain           n1    PUT/status    RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
plain           n1    PATCH/status  RBAC     RBAC     RBAC     RBAC       RBAC       RBAC     RBAC     RBAC     RBAC     RBAC       RBAC     RBAC     RBAC
`

// policyAnswers are the code and what the message has, for each word of policyCells but ok. WHO is the user, NODE the Node,
// and WHAT what the request changes.
var policyAnswers = map[string]struct {
	code    int
	message string
}{
	"node":      {http.StatusForbidden, "denied request: a node may not change WHAT, not even its own; somebody with the verb assign-kubelet-config on nodes may"},
	"joins":     {http.StatusUnprocessableEntity, "denied request: a node may not change WHAT, not even its own; take it out of --node-labels of the kubelet"},
	"status":    {http.StatusForbidden, "denied request: nobody may change WHAT through nodes/status; patch the Node itself"},
	"verb":      {http.StatusForbidden, `denied request: user "WHO" needs the verb assign-kubelet-config on node "NODE" to change WHAT; ClusterRole kubelet-supervisor-operator grants it`},
	"malformed": {http.StatusUnprocessableEntity, "denied request: annotation kubelet-supervisor.io/config-source: spec.configSource.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set; write NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local"},
	"itself":    {http.StatusForbidden, `denied request: only node "NODE" itself may write WHAT; leave it as it is, or remove it`},
	"remover":   {http.StatusForbidden, `denied request: only node "NODE" itself may remove WHAT, and those with the verb assign-kubelet-config on it, who patch the Node and not nodes/status`},
	"RBAC":      {http.StatusForbidden, `"WHO" cannot `},
	"foreign":   {http.StatusForbidden, `node "n1" is not allowed to modify node "n2"`},
}

// poolOfLabel stands for all labels of its prefix.
const poolOfLabel = "kubelet-supervisor.io/pool-of"

// policyChanges are the annotations before and after, or the label; nil is none.
var policyChanges = map[string]struct {
	before, after object
	what          string // changes
}{
	"set":       {nil, object{assignmentAnnotation: "kubelet-config/a/kubelet"}, assignmentAnnotation},
	"changed":   {object{assignmentAnnotation: "kubelet-config/a/kubelet"}, object{assignmentAnnotation: "local"}, assignmentAnnotation},
	"removed":   {object{assignmentAnnotation: "kubelet-config/a/kubelet"}, object{assignmentAnnotation: nil}, assignmentAnnotation},
	"malformed": {nil, object{assignmentAnnotation: "kubelet-config/a"}, assignmentAnnotation},
	"unchanged": {
		object{assignmentAnnotation: "kubelet-config/a/kubelet", retryAnnotation: "1", recordAnnotation: "[]", statusAnnotation: "{}"},
		object{assignmentAnnotation: "kubelet-config/a/kubelet", retryAnnotation: "1", recordAnnotation: "[]", statusAnnotation: "{}", "example.com/foreign": "set"}, ""},
	"retry":     {nil, object{retryAnnotation: "now"}, retryAnnotation},
	"record":    {nil, object{recordAnnotation: "[]"}, recordAnnotation},
	"consent":   {nil, object{consentAnnotation: "0123456789ab"}, consentAnnotation},
	"answer":    {nil, object{statusAnnotation: "{}"}, statusAnnotation},
	"forgotten": {object{statusAnnotation: "{}"}, object{statusAnnotation: nil}, statusAnnotation},
	"label":     {nil, object{poolOfLabel: "a"}, poolOfLabel},
	"relabel":   {object{poolOfLabel: "a"}, object{poolOfLabel: "b"}, poolOfLabel},
	"unlabel":   {object{poolOfLabel: "a"}, object{poolOfLabel: nil}, poolOfLabel},
}

const (
	recordAnnotation  = "kubelet-supervisor.io/assignments"
	consentAnnotation = "kubelet-supervisor.io/allow-disruption"
)

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
	before, after, field := policyChanges[change].before, policyChanges[change].after, "annotation"
	if policyChanges[change].what == poolOfLabel {
		field = "label"
	}
	itself := "/api/v1/nodes/" + name
	path, content := itself, nodeObject(name, "")
	n.remove(t, itself)
	t.Cleanup(func() { n.remove(t, itself) })
	if method == http.MethodPost {
		path = "/api/v1/nodes"
		if before = nil; change == "unchanged" { // a Node that is made has said nothing yet
			after = object{"example.com/foreign": "set"}
		}
	} else {
		made := nodeObject(name, "")
		made["metadata"].(object)[field+"s"] = asked(before)
		n.must(t, http.MethodPost, "/api/v1/nodes", made, &made)
		if words := withoutNil(before)[statusAnnotation]; words != "" {
			say := object{"metadata": object{"annotations": object{statusAnnotation: words}}}
			if _, err := requestAs(n.nodeIdentity(t, name), http.MethodPatch, itself+"/status", say, &made); err != nil {
				t.Fatal(err)
			}
		}
		if method == http.MethodPut {
			content = made // with the taint that a Node is made with, which a node may not remove
		}
		if subresource != "" {
			path += "/" + subresource
		}
	}
	if method == http.MethodPatch {
		content["metadata"].(object)[field+"s"] = after
	} else {
		content["metadata"].(object)[field+"s"] = withoutNil(after)
	}

	code, err := requestAs(who.identity, method, path, content, nil)
	var there struct{ Metadata map[string]any }
	_, _ = n.request(http.MethodGet, itself, nil, &there)
	now, _ := there.Metadata[field+"s"].(map[string]any)
	if want == "ok" {
		if err != nil {
			t.Errorf("refused: %v", err)
		} else if fmt.Sprint(now) != fmt.Sprint(withoutNil(after)) {
			t.Errorf("the Node has %v", now)
		}
		return
	}
	answer := policyAnswers[want]
	message := strings.NewReplacer("WHO", who.name, "NODE", name, "WHAT", field+" "+policyChanges[change].what).Replace(answer.message)
	if quoted := strings.ReplaceAll(message, `"`, `\"`); err == nil || code != answer.code || !strings.Contains(err.Error(), quoted) {
		t.Errorf("answered %d, %v, want %d with %s", code, err, answer.code, message)
	}
	if fmt.Sprint(now) != fmt.Sprint(withoutNil(before)) {
		t.Errorf("refused, and the Node has %v", now)
	}
}

// asked are the annotations but for what a node says itself.
func asked(annotations object) object {
	kept := object{}
	for name, value := range annotations {
		if name != statusAnnotation {
			kept[name] = value
		}
	}
	return kept
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
	n.bind(t, "verb-and-all", "all-of-nodes", rule("nodes", append(everything, deploy.AssignVerb)...), rule("nodes/status", everything...))
	n.bind(t, "verb-for-n1", "patch-nodes", rule("nodes", "patch"))
	n.bind(t, "verb-for-n1", "assign-n1", object{"apiGroups": []string{""}, "resources": []string{"nodes"}, "resourceNames": []string{"n1"}, "verbs": []string{deploy.AssignVerb}})
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
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": deploy.ViewerRole},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}},
	})
}
