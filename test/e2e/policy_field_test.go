//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// spec.configSource assigns too, on a Node that carries it since Kubernetes 1.25: the API server keeps it there, and would
// let everybody change it who may patch nodes.
func TestPolicyOnTheField(t *testing.T) {
	n := guardedNode(t)
	people := n.policyPeople(t)
	source := func(name string) object {
		return object{"configMap": object{"namespace": "kubelet-config", "name": name, "kubeletConfigKey": "kubelet"}}
	}
	for _, test := range []struct {
		who, name string
		path      string
		change    object
		want      string // of policyAnswers
	}{
		{"operator", "changed", nodePath, object{"spec": object{"configSource": source("b")}}, "ok"},
		{"operator", "removed", nodePath, object{"spec": object{"configSource": nil}}, "ok"},
		{"node-writer", "changed", nodePath, object{"spec": object{"configSource": source("b")}}, "verb"},
		{"node-writer", "removed", nodePath, object{"spec": object{"configSource": nil}}, "verb"},
		{"node-writer", "unchanged", nodePath, object{"spec": object{"unschedulable": true}}, "ok"},
		{"node-n1", "removed", nodePath, object{"spec": object{"configSource": nil}}, "node"},
		{"node-n1", "unchanged", nodePath + "/status", object{"metadata": object{"annotations": object{statusAnnotation: "{}"}}}, "ok"},
		// The API server lets a status patch change no spec.
		{"status-writer", "changed", nodePath + "/status", object{"spec": object{"configSource": source("b")}}, "ok"},
	} {
		t.Run(test.who+" "+test.name, func(t *testing.T) {
			n.remove(t, nodePath)
			n.store(t, "/registry/minions/"+cluster.NodeName, object{
				"apiVersion": "v1", "kind": "Node", "spec": object{"configSource": source("a")},
				"metadata": object{"name": cluster.NodeName, "uid": uniqueName("uid"), "creationTimestamp": "2026-01-01T00:00:00Z"},
			})
			var now struct{ Spec struct{ ConfigSource object } }
			await(t, "the API server has the Node with its field", func() error {
				_, err := n.request(http.MethodGet, nodePath, nil, &now)
				return err
			})
			if now.Spec.ConfigSource == nil {
				t.Fatal("the API server does not keep the field")
			}
			code, err := requestAs(people[test.who].identity, http.MethodPatch, test.path, test.change, nil)
			if test.want == "ok" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			answer := policyAnswers[test.want]
			message := strings.NewReplacer("WHO", people[test.who].name, "NODE", cluster.NodeName, "WHAT", "spec.configSource", `"`, `\"`).Replace(answer.message)
			if code != answer.code || !strings.Contains(err.Error(), message) {
				t.Errorf("answered %d, %v, want %d with %s", code, err, answer.code, message)
			}
		})
	}
}

// store writes an object into etcd, as an older API server did.
func (n *node) store(t *testing.T, key string, value object) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(object{"key": base64.StdEncoding.EncodeToString([]byte(key)), "value": base64.StdEncoding.EncodeToString(text)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(&rest.Config{Dial: n.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:2379/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("writing %s into etcd: %s: %s", key, response.Status, answer)
	}
}

// withoutPolicy does something while the policy binds nobody.
func (n *node) withoutPolicy(t *testing.T, do func()) {
	t.Helper()
	const folder = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	var binding object
	n.must(t, http.MethodGet, folder+"/"+deploy.Policy, nil, &binding)
	n.remove(t, folder+"/"+deploy.Policy)
	await(t, "the API server has forgotten the policy", func() error {
		_, err := n.request(http.MethodPost, "/api/v1/nodes?dryRun=All", nodeObject("probe", "malformed"), nil)
		return err
	})
	do()
	n.replace(t, folder, deploy.Policy, object{"spec": binding["spec"]})
	awaitPolicy(t, n)
}
