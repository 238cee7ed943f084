//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

var errNotYet = errors.New("not yet")

const securityPage = "../../docs/why/security.md"

// The table of docs/why/security.md is true: who it names tries what it names, and is let or refused by what it says.
func TestRights(t *testing.T) {
	n := guardedNode(t)
	for _, file := range []string{"rbac.yaml", "policies.yaml"} {
		if _, err := n.Kubectl(t.Context(), "apply", "--server-side", "-f", "../../deploy/manifests/controller/"+file); err != nil {
			t.Fatal(err)
		}
	}
	header, rows := rightsTable(t)
	replica := n.replica(t, "n3")
	acts, people := n.rightsActs(replica), n.rightsPeople(t)
	for _, row := range rows {
		who, known := people[row[0]]
		if !known {
			t.Fatalf("the table has %q, whom this test does not know", row[0])
		}
		delete(people, row[0])
		yes := map[string]bool{}
		for column, want := range row[2 : len(row)-1] {
			name := header[column+2]
			act, known := acts[name]
			if !known {
				t.Fatalf("the table has the act %q, which this test does not know", name)
			}
			t.Run(row[0]+": "+name, func(t *testing.T) {
				n.rightsObjects(t)
				got := refusedBy(act(who))
				if yes[name] = got == "yes"; got != want {
					t.Errorf("the page says %s, and the answer is %s", want, got)
				}
			})
		}
		if want := rootOn(row[0], yes); row[len(row)-1] != want {
			t.Errorf("%s: the page says root on %s, and by its cells it is %s", row[0], row[len(row)-1], want)
		}
	}
	for who := range people {
		t.Errorf("the table does not have %q", who)
	}
	if len(header)-3 != len(acts) {
		t.Errorf("the table has %d acts, want %d", len(header)-3, len(acts))
	}
}

// rightsTable reads the page.
func rightsTable(t *testing.T) (header []string, rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	header, rows, found := pages.Table(string(page), "| who | has |")
	if !found {
		t.Fatalf("%s has no table of rights", securityPage)
	}
	return header, rows
}

// rootOn says on which nodes one is root who may do these. A node is root on itself anyway.
func rootOn(who string, yes map[string]bool) string {
	switch {
	case yes["assign n2"], yes["edit the assigned one"], yes["delete it and make it again"], yes["act as the controller of pools"], yes["act as the pipeline"]:
		return "all nodes"
	case yes["assign n1"], yes["assign n1 by nodes/status"]:
		return "n1"
	case yes["edit one in kube-system"]:
		return "nodes assigned from there"
	case yes["label n1 otherwise"] && who != "node n1":
		return "nodes of pools that select by other labels"
	}
	return "none"
}

// refusedBy names who refused a request.
func refusedBy(_ int, err error) string { return cluster.RefusedBy(err) }

const (
	rightsFolder  = "/api/v1/namespaces/kubelet-config/configmaps"
	rightsBinding = rbacPath + "kubelet-config/rolebindings/joined"
)

// rightsObjects makes what the acts are about: two Nodes that are assigned and have spoken, and two ConfigMaps.
func (n *node) rightsObjects(t *testing.T) {
	t.Helper()
	for _, name := range []string{"n1", "n2"} {
		n.remove(t, "/api/v1/nodes/"+name)
		n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject(name, "kubelet-config/rights/kubelet"), nil)
		say := object{"metadata": object{"annotations": object{statusAnnotation: "{}"}}}
		if _, err := requestAs(n.nodeIdentity(t, name), http.MethodPatch, "/api/v1/nodes/"+name+"/status", say, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.remove(t, "/api/v1/nodes/"+name) })
	}
	n.remove(t, rightsFolder+"/made")
	n.remove(t, rightsBinding)
	for _, namespace := range []string{"kubelet-config", "kube-system"} {
		n.replaceConfigMap(t, namespace, "rights")
	}
}

func (n *node) replaceConfigMap(t *testing.T, namespace, name string) {
	t.Helper()
	folder := "/api/v1/namespaces/" + namespace + "/configmaps"
	n.replace(t, folder, name, object{"data": object{"kubelet": "a"}})
	t.Cleanup(func() { n.remove(t, folder+"/"+name) })
}

// replica places a pod of the controller on a node, and gives what a token is bound to.
func (n *node) replica(t *testing.T, on string) object {
	t.Helper()
	const folder = "/api/v1/namespaces/" + deploy.ControllerNamespace + "/pods"
	n.remove(t, "/api/v1/nodes/"+on)
	n.must(t, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": on}}, nil)
	n.replace(t, folder, "rights-replica", object{"spec": object{
		"nodeName": on, "serviceAccountName": deploy.ControllerName, "terminationGracePeriodSeconds": 0,
		"securityContext": object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{{"name": "controller", "image": "controller", "securityContext": object{
			"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}}}},
	}})
	t.Cleanup(func() {
		n.remove(t, folder+"/rights-replica")
		n.remove(t, "/api/v1/nodes/"+on)
	})
	var pod struct{ Metadata struct{ UID string } }
	n.must(t, http.MethodGet, folder+"/rights-replica", nil, &pod)
	return object{"kind": "Pod", "apiVersion": "v1", "name": "rights-replica", "uid": pod.Metadata.UID}
}

// rightsActs are the columns. A token of the controller is bound to its replica.
func (n *node) rightsActs(replica object) map[string]func(*person) (int, error) {
	annotate := func(who *person, path, name string, value any) (int, error) {
		return requestAs(who.identity, http.MethodPatch, path, object{"metadata": object{"annotations": object{name: value}}}, nil)
	}
	// onN1 tries both ways.
	onN1 := func(name string, value any) func(*person) (int, error) {
		return func(who *person) (int, error) {
			code, err := annotate(who, "/api/v1/nodes/n1", name, value)
			if refusedBy(code, err) == "RBAC" {
				return annotate(who, "/api/v1/nodes/n1/status", name, value)
			}
			return code, err
		}
	}
	content := object{"data": object{"kubelet": "staticPodURL: http://example.com"}}
	return map[string]func(*person) (int, error){
		"assign n1": func(who *person) (int, error) {
			return annotate(who, "/api/v1/nodes/n1", assignmentAnnotation, "local")
		},
		"assign n2": func(who *person) (int, error) {
			return annotate(who, "/api/v1/nodes/n2", assignmentAnnotation, "local")
		},
		"assign n1 by nodes/status": func(who *person) (int, error) {
			return annotate(who, "/api/v1/nodes/n1/status", assignmentAnnotation, "local")
		},
		"make a ConfigMap": func(who *person) (int, error) {
			return requestAs(who.identity, http.MethodPost, rightsFolder, object{"metadata": object{"name": "made"}, "data": content["data"]}, nil)
		},
		"edit the assigned one": func(who *person) (int, error) {
			return requestAs(who.identity, http.MethodPatch, rightsFolder+"/rights", content, nil)
		},
		"delete it and make it again": func(who *person) (int, error) {
			if code, err := requestAs(who.identity, http.MethodDelete, rightsFolder+"/rights", nil, nil); err != nil {
				return code, err
			}
			return requestAs(who.identity, http.MethodPost, rightsFolder, object{"metadata": object{"name": "rights"}, "data": content["data"]}, nil)
		},
		"edit one in kube-system": func(who *person) (int, error) {
			return requestAs(who.identity, http.MethodPatch, "/api/v1/namespaces/kube-system/configmaps/rights", content, nil)
		},
		"write n1's record": onN1(recordAnnotation, "[]"),
		"write n1's words":  onN1(observedAnnotation, "kubelet-config/rights/kubelet"),
		"remove n1's words": onN1(statusAnnotation, nil),
		"act as the controller of pools": func(who *person) (int, error) {
			var answer struct{ Status struct{ Token string } }
			code, err := requestAs(who.identity, http.MethodPost, "/api/v1/namespaces/"+deploy.ControllerNamespace+"/serviceaccounts/"+deploy.ControllerName+"/token",
				object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"boundObjectRef": replica}}, &answer)
			if err != nil {
				return code, err
			}
			as := rest.AnonymousClientConfig(who.identity)
			as.BearerToken = answer.Status.Token
			return annotate(&person{deploy.ControllerName, as}, "/api/v1/nodes/n2", assignmentAnnotation, "local")
		},
		"act as the pipeline": func(who *person) (int, error) {
			as := rest.CopyConfig(who.identity)
			as.Impersonate.UserName = "system:serviceaccount:default:pipeline"
			return annotate(&person{as.Impersonate.UserName, as}, "/api/v1/nodes/n2", assignmentAnnotation, "local")
		},
		"label n1 otherwise": func(who *person) (int, error) {
			label := object{"metadata": object{"labels": object{"example.com/pool": "debug"}}}
			code, err := requestAs(who.identity, http.MethodPatch, "/api/v1/nodes/n1", label, nil)
			if refusedBy(code, err) == "RBAC" {
				return requestAs(who.identity, http.MethodPatch, "/api/v1/nodes/n1/status", label, nil)
			}
			return code, err
		},
		"join kubelet-config": func(who *person) (int, error) {
			return requestAs(who.identity, http.MethodPost, rbacPath+"kubelet-config/rolebindings", object{
				"metadata": object{"name": "joined"},
				"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": deploy.OperatorRole},
				"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who.name}},
			}, nil)
		},
	}
}

// rightsPeople are the rows.
func (n *node) rightsPeople(t *testing.T) map[string]*person {
	t.Helper()
	const account = "system:serviceaccount:default:"
	rule := func(resource string, verbs ...string) object {
		return object{"apiGroups": []string{""}, "resources": []string{resource}, "verbs": verbs}
	}
	onN1 := rule("nodes", "patch", deploy.AssignVerb)
	onN1["resourceNames"] = []string{"n1"}
	for user, role := range map[string]string{"rights-operator": deploy.OperatorRole, account + "pipeline": deploy.PipelineRole} {
		n.bind(t, user, role)
		n.bindRole(t, deploy.Namespace, user, "Role", deploy.OperatorRole)
	}
	n.bind(t, "operator-of-n1", "rights-of-n1", onN1)
	n.bindRole(t, deploy.Namespace, "operator-of-n1", "Role", deploy.OperatorRole)
	n.bind(t, "rights-patcher", "rights-patch-nodes", rule("nodes", "patch"))
	n.bind(t, "rights-status", "rights-patch-status", rule("nodes/status", "patch"))
	n.bindEdit(t, deploy.Namespace, "rights-editor")
	n.bindEdit(t, "default", "rights-beside-pipeline")
	n.bindEdit(t, deploy.Namespace, "rights-administrator")
	n.bindRole(t, deploy.Namespace, "rights-administrator", "ClusterRole", "system:aggregate-to-admin")
	n.bindRole(t, "kube-system", "rights-granter", "ClusterRole", deploy.GranterRole)
	for user, role := range map[string]string{"rights-viewer": deploy.ViewerRole, "rights-everywhere": "system:aggregate-to-edit"} {
		n.replace(t, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", user, object{
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
		})
	}
	n.bindRole(t, deploy.Namespace, "rights-viewer", "Role", deploy.ViewerRole)
	people := map[string]*person{
		"administrator":          {"admin", n.AdminConfig()},
		"pipeline":               {account + "pipeline", n.serviceAccount(t, "pipeline")},
		"node n1":                {"system:node:n1", n.nodeIdentity(t, "n1")},
		"node n2":                {"system:node:n2", n.nodeIdentity(t, "n2")},
		"host of the controller": {"system:node:n3", n.nodeIdentity(t, "n3")},
	}
	for row, user := range map[string]string{
		"operator": "rights-operator", "operator of n1": "operator-of-n1", "patcher": "rights-patcher", "status patcher": "rights-status", "editor": "rights-editor", "editor everywhere": "rights-everywhere",
		"editor of the pipeline's namespace": "rights-beside-pipeline",
		"namespace administrator":            "rights-administrator", "granter in kube-system": "rights-granter", "viewer": "rights-viewer",
	} {
		people[row] = &person{user, n.identity(t, user)}
	}
	return people
}

// bindEdit binds what the ClusterRole edit consists of: that one is put together by a controller manager, of which there is none here.
func (n *node) bindEdit(t *testing.T, namespace, user string) {
	t.Helper()
	n.bindRole(t, namespace, user, "ClusterRole", "system:aggregate-to-view")
	n.bindRole(t, namespace, user, "ClusterRole", "system:aggregate-to-edit")
}

// bindRole lets a user do in a namespace what a role says, and waits until the API server knows it.
func (n *node) bindRole(t *testing.T, namespace, user, kind, role string) {
	t.Helper()
	n.replace(t, rbacPath+namespace+"/rolebindings", strings.ReplaceAll(role+"-"+user, ":", "-"), object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	})
	await(t, user+" is "+role+" in "+namespace, func() error {
		if !n.allowed(t, user, nil, "get", "configmaps", namespace, "") {
			return errNotYet
		}
		return nil
	})
}

// Kubernetes' own controllers end a namespace, collect what has lost its owner, and put their certificates into each namespace.
// What is no content of a ConfigMap is free.
func TestConfigMapPolicyLeavesTheRestAlone(t *testing.T) {
	n := guardedNode(t)
	n.rightsPeople(t)
	const controllers, manager = "system:serviceaccount:kube-system:", "system:kube-controller-manager"
	editor := n.identity(t, "rights-editor")
	n.bindEdit(t, "elsewhere", "rights-editor")
	n.bindEdit(t, deploy.Namespace, manager)
	owned := object{"metadata": object{"ownerReferences": []object{{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"}}}}
	certificates := object{"metadata": object{"name": "kube-root-ca.crt"}, "data": object{"ca.crt": "a"}}
	for _, test := range []struct {
		name         string
		who          *rest.Config
		method, path string
		body         object
		want         string
	}{
		{"the end of the namespace", n.identity(t, controllers+"namespace-controller"), http.MethodDelete, rightsFolder, nil, "yes"},
		{"the end of an owner", n.identity(t, controllers+"generic-garbage-collector"), http.MethodDelete, rightsFolder + "/rights", nil, "yes"},
		{"the end of an owner, where all controllers have one account", n.identity(t, manager), http.MethodDelete, rightsFolder + "/rights", nil, "yes"},
		{"an edit by that account", n.identity(t, manager), http.MethodPatch, rightsFolder + "/rights", object{"data": object{"kubelet": "b"}}, "policy"},
		{"certificates", n.identity(t, controllers+"root-ca-cert-publisher"), http.MethodPost, rightsFolder, certificates, "yes"},
		{"certificates by somebody else", editor, http.MethodPost, rightsFolder, certificates, "policy"},
		{"something else by their publisher", n.identity(t, controllers+"root-ca-cert-publisher"), http.MethodPost, rightsFolder, object{"metadata": object{"name": "made"}, "data": object{"a": "b"}}, "policy"},
		{"a label", editor, http.MethodPatch, rightsFolder + "/rights", object{"metadata": object{"labels": object{"a": "b"}}}, "yes"},
		{"an annotation", editor, http.MethodPatch, rightsFolder + "/rights", object{"metadata": object{"annotations": object{"a": "b"}}}, "yes"},
		{"an owner", editor, http.MethodPatch, rightsFolder + "/rights", owned, "policy"},
		{"no edit any more", editor, http.MethodPatch, rightsFolder + "/rights", object{"immutable": true}, "policy"},
		{"a binary key", editor, http.MethodPatch, rightsFolder + "/rights", object{"binaryData": object{"b": "AA=="}}, "policy"},
		{"all of them", editor, http.MethodDelete, rightsFolder, nil, "policy"},
		{"one of another namespace", editor, http.MethodPost, "/api/v1/namespaces/elsewhere/configmaps", object{"metadata": object{"name": "made"}}, "yes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.replaceConfigMap(t, deploy.Namespace, "rights")
			for _, path := range []string{rightsFolder + "/made", rightsFolder + "/kube-root-ca.crt", "/api/v1/namespaces/elsewhere/configmaps/made"} {
				n.remove(t, path)
			}
			code, err := requestAs(test.who, test.method, test.path, test.body, nil)
			if got := refusedBy(code, err); got != test.want {
				t.Errorf("answered %s, want %s: %v", got, test.want, err)
			}
			if want := "needs the verb assign-kubelet-config on all nodes to "; test.want == "policy" && err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("the message is %v, want %q in it", err, want)
			}
		})
	}
}

// Each of the words that a node says is guarded, also those that no other test of the policy forges.
func TestEachWordIsTheNodesOwn(t *testing.T) {
	n := guardedNode(t)
	n.rightsObjects(t)
	for _, word := range nodev1.AnnotationsOfTheNode() {
		forge := object{"metadata": object{"annotations": object{word: "forged"}}}
		for _, path := range []string{"/api/v1/nodes/n1", "/api/v1/nodes/n1/status"} {
			if got := refusedBy(requestAs(n.AdminConfig(), http.MethodPatch, path, forge, nil)); got != "policy" {
				t.Errorf("an administrator forges %s by %s: %s", word, path, got)
			}
		}
		if got := refusedBy(requestAs(n.nodeIdentity(t, "n1"), http.MethodPatch, "/api/v1/nodes/n1/status", forge, nil)); got != "yes" {
			t.Errorf("the node itself says %s: %s", word, got)
		}
	}
}
