//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// applyText applies manifests, which go with the test.
func (f *fleet) applyText(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := f.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", file); err != nil {
			t.Error(err)
		}
	})
}

// tamperer has the controller's rights.
type tamperer struct {
	c  *crew
	as client.Client
}

func (c *crew) tamperer() *tamperer {
	c.t.Helper()
	config, err := c.f.IdentityConfig(controllerUser)
	if err != nil {
		c.t.Fatal(err)
	}
	as, err := newClient(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return &tamperer{c, as}
}

// mutation is a MutatingAdmissionPolicy with its binding, for objects of which the condition holds.
func mutation(name, resource, condition, patch string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%[2]s]}
  matchConditions:
  - {name: these, expression: %[3]q}
  mutations:
  - {patchType: JSONPatch, jsonPatch: {expression: %[4]q}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`, name, resource, condition, patch)
}

// asked counts the controller's requests for objects whose names begin so, by the audit log.
func (f *fleet) asked(t *testing.T, verb, resource, prefix string) (n int) {
	t.Helper()
	text, err := os.ReadFile(f.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e struct {
			Verb   string
			Stage  string
			User   struct{ Username string }
			Object struct{ Resource, Subresource, Name string } `json:"objectRef"`
		}
		if json.Unmarshal(line, &e) == nil && e.Stage == "ResponseComplete" && e.User.Username == controllerUser && e.Verb == verb && e.Object.Resource == resource &&
			e.Object.Subresource == "" && strings.HasPrefix(e.Object.Name, prefix) {
			n++
		}
	}
	return n
}

// altersNodes waits until a policy has its effect, which takes the API server a moment.
func (c *crew) altersNodes(node, annotation string) {
	c.t.Helper()
	until(c.t, "the policy has its effect", 30*time.Second, func() bool {
		out, err := c.f.Kubectl(c.t.Context(), "annotate", "node", node, annotation+"=kubelet-config/x/kubelet", "--dry-run=server", "-o", "yaml")
		return err == nil && !strings.Contains(out, annotation+":")
	})
}

// refusedWith waits for the Event on a Node that says why the pool cannot write to it.
func (c *crew) refusedWith(node, words string) {
	c.t.Helper()
	until(c.t, "the Event on "+node+" says "+words, 30*time.Second, func() bool {
		out, err := c.f.Kubectl(c.t.Context(), "get", "events", "-n", "default", "-o", "jsonpath={.items[*].message}",
			"--field-selector", "reason="+rollout.EventPoolRefused+",involvedObject.name="+node)
		return err == nil && strings.Contains(out, words)
	})
}

// A policy that takes the assignment off one Node stops no other, is reported, and costs few requests. When it is gone the Node is assigned.
func TestAPolicyStripsTheAssignment(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "strips", 8, nil)
	c.f.steady(t)
	const key = nodev1.ConfigSourceAnnotation
	policy := mutation("strips-assignment", "nodes", "object.metadata.name == 'strips-3' && '"+key+"' in object.metadata.?annotations.orValue({})",
		`[JSONPatch{op: "remove", path: "/metadata/annotations/`+strings.ReplaceAll(key, "/", "~1")+`"}]`)
	c.f.applyText(t, policy)
	c.altersNodes("strips-3", key)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	c.refusedWith("strips-3", "admission takes the annotation "+key+" away")
	c.quiet(10 * time.Second)
	p := c.now()
	if n := c.f.asked(t, "patch", "nodes", "strips-3"); n < 2 || n > 12 || p.Status.Nodes.Proven != 7 {
		t.Errorf("the stripped Node was patched %d times, and the others are %+v", n, p.Status.Nodes)
	}
	if annotations := c.node(3).Annotations; annotations[rollout.MarkAnnotation] != "" || annotations[key] != "" {
		t.Errorf("the Node has a part of an assignment: %v", annotations)
	}
	if _, err := c.f.Kubectl(t.Context(), "delete", "mutatingadmissionpolicybinding", "strips-assignment"); err != nil {
		t.Fatal(err)
	}
	c.await("all have it", 2*time.Minute, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Proven == 8 })
}

// A webhook that is away for one Node, with failurePolicy Fail, stops no other, is reported, and costs few requests.
func TestAWebhookThatIsAway(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "away", 8, nil)
	c.f.steady(t)
	c.f.applyText(t, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: away}
webhooks:
- name: away.example.com
  clientConfig: {url: "https://127.0.0.1:1/away"}
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 2
  admissionReviewVersions: [v1]
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}
  matchConditions:
  - {name: one, expression: "object.metadata.name == 'away-3'"}
`)
	until(t, "the webhook is asked", 30*time.Second, func() bool {
		_, err := c.f.Kubectl(t.Context(), "annotate", "node", "away-3", "try=it", "--dry-run=server")
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	c.refusedWith("away-3", "failed calling webhook")
	c.quiet(5 * time.Second)
	if n, p := c.f.asked(t, "patch", "nodes", "away-3"), c.now(); n != failuresInARow || p.Status.Nodes.Proven != 7 {
		t.Errorf("the Node behind the webhook was patched %d times, and the others are %+v", n, p.Status.Nodes)
	}
}

// What a policy does to the ConfigMaps of a pool is reported in its words, and no node is assigned one that is not what its name says.
func TestAPolicyChangesConfigMaps(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ patch, words string }{
		"adds-key":     {`[JSONPatch{op: "add", path: "/data/checksum", value: "1"}]`, "admission adds the key checksum"},
		"strips-label": {`[JSONPatch{op: "remove", path: "/metadata/labels/kubelet-supervisor.io~1pool"}]`, "admission takes the label kubelet-supervisor.io/pool away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, name, 3, nil)
			c.f.steady(t)
			c.f.applyText(t, mutation(name, "configmaps", "object.metadata.name.startsWith('pool-"+name+"-')", row.patch))
			as := c.tamperer().as
			until(t, "the policy has its effect", 30*time.Second, func() bool {
				probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: "pool-" + name + "-0123456789",
					Labels: map[string]string{"kubelet-supervisor.io/pool": name}}, Data: map[string]string{"kubelet": ""}}
				return as.Create(t.Context(), probe, client.DryRunAll) == nil && (len(probe.Data) > 1 || len(probe.Labels) == 0)
			})
			before := c.f.asked(t, "create", "configmaps", "pool-"+name)
			c.roll(quick)
			c.await("it says so", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
				is := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing)
				return is.Reason == rollout.ReasonHeld && strings.Contains(is.Message, row.words)
			})
			c.quiet(10 * time.Second)
			if made, gone := c.f.asked(t, "create", "configmaps", "pool-"+name)-before, c.f.asked(t, "delete", "configmaps", "pool-"+name); made > 10 || gone != 1 {
				t.Errorf("it was made %d times, by dry runs and without, and deleted %d times", made, gone)
			}
			if sent := c.attempts(); len(sent) > 0 {
				t.Errorf("patched were %v", sent)
			}
		})
	}
}

// A ConfigMap that nodes have been assigned is not made and deleted in turns by a policy that changes it.
func TestAPolicyChangesWhatNodesName(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "named", 3, nil)
	c.f.steady(t)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	c.f.applyText(t, mutation("named", "configmaps", "object.metadata.name.startsWith('pool-named-')", `[JSONPatch{op: "add", path: "/data/checksum", value: "1"}]`))
	as := c.tamperer().as
	until(t, "the policy has its effect", 30*time.Second, func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: "pool-named-0123456789"}, Data: map[string]string{"kubelet": ""}}
		return as.Create(t.Context(), probe, client.DryRunAll) == nil && len(probe.Data) > 1
	})
	before := c.f.asked(t, "create", "configmaps", "pool-named-")
	c.remove(as, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: strings.Split(c.source(), "/")[1]}})
	c.await("it says so", 30*time.Second, func(p *v1alpha1.KubeletPool) bool {
		is := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled)
		return is.Reason == rollout.ReasonRevisionTampered && strings.Contains(is.Message, "admission adds the key checksum")
	})
	c.quiet(10 * time.Second)
	if made := c.f.asked(t, "create", "configmaps", "pool-named-") - before; made > 10 {
		t.Errorf("it was made %d times, by dry runs and without", made)
	}
}

// failuresInARow is how many errors of the API server count against a Node.
const failuresInARow = 3
