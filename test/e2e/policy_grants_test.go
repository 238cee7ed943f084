//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

// Many nodes at a time are assigned a ConfigMap that each has to be let read: without conflicts, and for the same number of requests
// each, however many they are.
func TestAssignOfManyNodes(t *testing.T) {
	n := pluginNode(t)
	perNode := map[int]int{}
	for _, count := range []int{60, 120} {
		n.replaceConfigMap(t, "kube-system", "many")
		var names []string
		for i := range count {
			name := fmt.Sprintf("many-%03d", i)
			object := nodeObject(name, "")
			object["metadata"].(map[string]any)["labels"] = map[string]any{"pool": "many"}
			n.remove(t, "/api/v1/nodes/"+name)
			n.must(t, http.MethodPost, "/api/v1/nodes", object, nil)
			names = append(names, name)
		}
		n.must(t, http.MethodPatch, "/api/v1/namespaces/kube-system/configmaps/many", map[string]any{"data": map[string]any{"kubelet": n.kubeletConfig()}}, nil)
		before := n.requestsServed(t)
		_, stderr, code := n.runPlugin(t, pluginRun{}, "assign", "-l", "pool=many", "--config=kube-system/many", "--yes", "--wait=false", "--parallel=20")
		if code != 0 {
			t.Errorf("%d nodes: exit code %d\n%.600s", count, code, stderr)
		}
		perNode[count] = (n.requestsServed(t) - before) / count
		var binding struct{ Subjects []struct{ Name string } }
		n.must(t, http.MethodGet, rbacPath+"kube-system/rolebindings/kubelet-supervisor:many", nil, &binding)
		if len(binding.Subjects) != count {
			t.Errorf("%d of %d nodes are let read it", len(binding.Subjects), count)
		}
		n.plugin(t, "reset", "-l", "pool=many", "--yes", "--wait=false", "--parallel=20")
		if code, err := n.request(http.MethodGet, rbacPath+"kube-system/rolebindings/kubelet-supervisor:many", nil, nil); code != http.StatusNotFound {
			t.Errorf("after the reset the grant is there: %d, %v", code, err)
		}
		for _, name := range names {
			n.remove(t, "/api/v1/nodes/"+name)
		}
	}
	t.Logf("requests for each node: %v", perNode)
	if perNode[120] > perNode[60] || perNode[120] > 6 {
		t.Errorf("requests for each node: %v, want the same number of both, and 6 at most", perNode)
	}
}

// One RoleBinding holds the nodes of a large cluster, with names as clouds give them.
func TestGrantOfTenThousandNodes(t *testing.T) {
	n := guardedNode(t)
	var subjects []map[string]any
	for i := range 10_000 {
		name := fmt.Sprintf("system:node:ip-10-100-%03d-%03d.eu-central-1.compute.internal", i/100, i%100)
		subjects = append(subjects, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
	}
	folder := rbacPath + "kube-system/rolebindings"
	n.remove(t, folder+"/kubelet-supervisor:large")
	n.must(t, http.MethodPost, folder, map[string]any{
		"metadata": map[string]any{"name": "kubelet-supervisor:large"}, "subjects": subjects,
		"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kubelet-supervisor:large"},
	}, nil)
	n.remove(t, folder+"/kubelet-supervisor:large")
}

var servedLine = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="(?:nodes|roles|rolebindings|configmaps|subjectaccessreviews|selfsubjectreviews)"[^}]*\} (\d+)`)

// requestsServed is how many requests the API server has answered, of the resources that the plugin asks for.
func (n *node) requestsServed(t *testing.T) (sum int) {
	t.Helper()
	client, err := rest.HTTPClientFor(n.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(n.AdminConfig().Host + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range servedLine.FindAllSubmatch(text, -1) {
		count, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	return sum
}
