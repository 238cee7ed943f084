//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

const admissionPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"

// Whatever somebody changed in the policies: doctor sees it, and install makes them again as they were.
func TestInstallOverChangesByHand(t *testing.T) {
	n := pluginNode(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject("n1", ""), nil)
	itself := n.nodeIdentity(t, "n1")
	assigns := func() (int, error) {
		return requestAs(itself, http.MethodPatch, nodePath+"/status?dryRun=All", object{"metadata": object{"annotations": object{assignmentAnnotation: "kubelet-config/own/kubelet"}}}, nil)
	}
	const never = `{"name": "never", "expression": "false"}`
	for _, test := range []struct {
		name, kind, patch string // a strategic merge or JSON patch, as kubectl takes it
		arguments         []string
		opens             bool // the node may assign itself then
	}{
		{"a binding that only notes", "binding", `{"spec": {"validationActions": ["Audit"]}}`, nil, true},
		{"a foreign match condition", "policy", `[{"op": "add", "path": "/spec/matchConditions/-", "value": ` + never + `}]`, []string{"--type=json"}, true},
		{"another match constraint", "policy", `[{"op": "replace", "path": "/spec/matchConstraints/resourceRules/0/resources", "value": ["nodes"]}]`, []string{"--type=json"}, true},
		{"names that it is not for", "policy", `[{"op": "add", "path": "/spec/matchConstraints/excludeResourceRules", "value": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nodes", "nodes/status"], "resourceNames": ["n1"]}]}]`, []string{"--type=json"}, true},
		{"failures that are ignored", "policy", `{"spec": {"failurePolicy": "Ignore"}}`, nil, false},
		{"a parameter", "policy", `{"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}`, nil, false},
		{"a binding to some objects", "binding", `{"spec": {"matchResources": {"objectSelector": {"matchLabels": {"guarded": "yes"}}}}}`, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			resource := map[string]string{"policy": "validatingadmissionpolicy", "binding": "validatingadmissionpolicybinding"}[test.kind]
			if _, err := n.Kubectl(t.Context(), append([]string{"patch", resource, deploy.Policy, "-p", test.patch}, test.arguments...)...); err != nil {
				t.Fatal(err)
			}
			want := []string{"WRONG   the admission policy kubelet-supervisor-assignment is not as install makes it"}
			if test.opens {
				await(t, "the node assigns itself", func() error { _, err := assigns(); return err })
				want = append([]string{"WRONG   the API server takes a dry run in which the node assigns itself"}, want...)
			}
			stdout, _, code := n.runPlugin(t, pluginRun{}, "doctor", "n1", "--answer-timeout=0s")
			if code != 1 {
				t.Errorf("doctor: exit code %d", code)
			}
			for _, words := range want {
				wantIn(t, stdout, words)
			}
			n.plugin(t, "install", "--yes")
			await(t, "the node does not assign itself", func() error {
				if code, err := assigns(); code != http.StatusForbidden || !strings.Contains(err.Error(), deploy.Policy) {
					return errNotYet
				}
				return nil
			})
			stdout, _, _ = n.runPlugin(t, pluginRun{}, "doctor", "n1", "--answer-timeout=0s")
			wantIn(t, stdout, "ok      the admission policy kubelet-supervisor-assignment limits who may assign, and is as install makes it",
				"ok      the API server refuses a dry run in which the node assigns itself", "ok      the admission policy kubelet-supervisor-configmaps limits")
		})
	}

	// What is as it should be is left alone.
	versions := func() (text string) {
		for _, kind := range []string{"ies/", "ybindings/"} {
			for _, name := range []string{deploy.Policy, deploy.ConfigMapPolicy} {
				var found struct {
					Metadata struct{ ResourceVersion string }
				}
				n.must(t, http.MethodGet, admissionPath+kind+name, nil, &found)
				text += found.Metadata.ResourceVersion + " "
			}
		}
		return text
	}
	before := versions()
	n.plugin(t, "install", "--yes")
	if after := versions(); after != before {
		t.Errorf("a second install writes: versions %s, then %s", before, after)
	}

	// An operator may not impersonate a node, and tries it as a person.
	n.bind(t, "doctors-operator", deploy.OperatorRole)
	stdout, _, _ := n.runPlugin(t, pluginRun{}, "doctor", "n1", "--answer-timeout=0s", "--as=doctors-operator")
	wantIn(t, stdout, "ok      the API server refuses a dry run in which you write the node's own status")
}

// What install prints is what install makes, for kubectl and for tools that keep manifests in Git.
func TestInstallByKubectl(t *testing.T) {
	n := pluginNode(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject("n1", ""), nil)
	for _, name := range []string{deploy.Policy, deploy.ConfigMapPolicy} {
		if _, err := n.Kubectl(t.Context(), "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name); err != nil {
			t.Fatal(err)
		}
	}
	desk := n.deskFor(t)
	applied := n.shell(t, desk, "kubectl kubelet install --dry-run=client -o yaml | kubectl apply -f - 2>/dev/null")
	wantIn(t, applied, "/"+deploy.Policy+" created", "/"+deploy.ConfigMapPolicy+" created", "/"+deploy.OperatorRole+" ")
	installed := n.shell(t, desk, "kubectl kubelet install --dry-run=client")
	if got, want := strings.Count(applied, "\n"), strings.Count(installed, "\n"); got != want || want == 0 {
		t.Errorf("kubectl applied %d objects, install has %d:\n%s", got, want, applied)
	}
	stdout, _, _ := n.runPlugin(t, pluginRun{}, "doctor", "n1", "--answer-timeout=0s")
	wantIn(t, stdout, "ok      the admission policy kubelet-supervisor-assignment limits who may assign, and is as install makes it",
		"ok      the admission policy kubelet-supervisor-configmaps limits")
}
