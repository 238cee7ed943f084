//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A kubelet that is started with --node-labels of our prefix cannot register, because the label would let it choose its pool. It says what
// to do in its log, and registers without.
func TestKubeletLabelsItselfIntoAPool(t *testing.T) {
	n := guardedNode(t)
	s := n.startSupervisor(t, options{KubeletFlags: []string{"--node-labels=" + poolOfLabel + "=workers"}})
	await(t, "the kubelet says why it is refused", func() error {
		if !strings.Contains(s.log(t), "a node may not change label "+poolOfLabel+", not even its own; take it out of --node-labels") {
			return errNotYet
		}
		return nil
	})
	if code, _ := n.request(http.MethodGet, nodePath, nil, nil); code != http.StatusNotFound {
		t.Errorf("the Node is there: %d", code)
	}
	s.stop(t)
	n.startSupervisor(t, options{After: s})
	n.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready })
}

// Who gives new nodes their labels, as Karpenter does, by one patch with the removal of its taint, needs the verb for a label of ours: without
// it the whole patch is refused.
func TestProvisionerLabelsNodes(t *testing.T) {
	n := guardedNode(t)
	labelled := object{"metadata": object{"labels": object{poolOfLabel: "workers", "karpenter.sh/registered": "true"}},
		"spec": object{"taints": []object{}}}
	for user, verbs := range map[string][]string{"provisioner": {"patch"}, "provisioner-with-verb": {"patch", deploy.AssignVerb}} {
		n.bind(t, user, user, object{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": verbs})
		n.remove(t, nodePath)
		made := nodeObject(cluster.NodeName, "")
		made["spec"] = object{"taints": []object{{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}}}
		n.must(t, http.MethodPost, "/api/v1/nodes", made, nil)
		want := "policy"
		if len(verbs) > 1 {
			want = "yes"
		}
		if got := refusedBy(requestAs(n.identity(t, user), http.MethodPatch, nodePath, labelled, nil)); got != want {
			t.Errorf("%s: answered %s, want %s", user, got, want)
		}
	}
}

// What is not ours is as free as it was, on a Node with very many labels, too.
func TestManyLabels(t *testing.T) {
	n := guardedNode(t)
	n.policyPeople(t)
	labels := object{poolOfLabel: "workers"}
	for i := range 5000 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = "a"
	}
	made := nodeObject(cluster.NodeName, "")
	made["metadata"].(object)["labels"] = labels
	n.must(t, http.MethodPost, "/api/v1/nodes", made, nil)
	writer := n.serviceAccount(t, "node-writer")
	for change, want := range map[string]string{"example.com/rack": "yes", "kubelet-supervisor.io.example.com/a": "yes", poolOfLabel: "policy", "kubelet-supervisor.io/of-somebody": "policy"} {
		body := object{"metadata": object{"labels": object{change: "changed"}}}
		if got := refusedBy(requestAs(writer, http.MethodPatch, nodePath, body, nil)); got != want {
			t.Errorf("%s: answered %s, want %s", change, got, want)
		}
	}
}
