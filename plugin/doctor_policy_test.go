package plugin

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// policies are those of packaging, with their bindings.
func policies(t *testing.T) []runtime.Object {
	t.Helper()
	return policiesAmong(t, manifests)
}

// poolPolicies are those for pools.
func poolPolicies(t *testing.T) []runtime.Object {
	t.Helper()
	return policiesAmong(t, func() ([]*unstructured.Unstructured, error) {
		return installOptions{controller: inCluster, image: noImage}.controllerManifests()
	})
}

func policiesAmong(t *testing.T, manifests func() ([]*unstructured.Unstructured, error)) (installed []runtime.Object) {
	t.Helper()
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range objects {
		var object runtime.Object
		switch manifest.GetKind() {
		case "ValidatingAdmissionPolicy":
			object = &admissionregistrationv1.ValidatingAdmissionPolicy{}
		case "ValidatingAdmissionPolicyBinding":
			object = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, object); err != nil {
			t.Fatal(err)
		}
		installed = append(installed, object)
	}
	return installed
}

// enforces refuses dry runs as the policy does.
func (b *bench) enforces() {
	b.answersProbes("ValidatingAdmissionPolicy '" + deploy.Policy + "' denied request: no")
}

// answersProbes refuses dry runs with these words, or takes them without.
func (b *bench) answersProbes(words string) {
	b.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		switch {
		case len(patch.PatchOptions.DryRun) == 0:
			return false, nil, nil
		case words != "":
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, patch.Name, errors.New(words))
		}
		node, err := b.Tracker().Get(patch.GetResource(), "", patch.Name)
		return true, node, err
	})
}

// A policy is believed by what it has and does, not by its name.
func TestDoctorAndThePolicies(t *testing.T) {
	policyOf := func(objects []runtime.Object, at int) *admissionregistrationv1.ValidatingAdmissionPolicy {
		return objects[at].(*admissionregistrationv1.ValidatingAdmissionPolicy)
	}
	bindingOf := func(objects []runtime.Object, at int) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		return objects[at].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	}
	for _, test := range []struct {
		name   string
		change func(objects []runtime.Object) []runtime.Object // policy, binding, policy for ConfigMaps, binding
		words  string                                          // of who refuses a dry run
		code   int
		want   string
	}{
		{"as installed", nil, "ValidatingAdmissionPolicy 'kubelet-supervisor-assignment' denied request", 0, "ok      the API server refuses a dry run in which the node assigns itself"},
		{"a binding that only notes", func(o []runtime.Object) []runtime.Object {
			bindingOf(o, 1).Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
			return o
		}, "", 1, "WRONG   the admission policy kubelet-supervisor-assignment is not as install makes it (spec.validationActions of the ValidatingAdmissionPolicyBinding)"},
		{"a match condition more", func(o []runtime.Object) []runtime.Object {
			spec := &policyOf(o, 0).Spec
			spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
			return o
		}, "", 1, "spec.matchConditions of the ValidatingAdmissionPolicy"},
		{"it ignores failures", func(o []runtime.Object) []runtime.Object {
			ignore := admissionregistrationv1.Ignore
			policyOf(o, 0).Spec.FailurePolicy = &ignore
			return o
		}, "", 1, "spec.failurePolicy of the ValidatingAdmissionPolicy"},
		{"it has a parameter", func(o []runtime.Object) []runtime.Object {
			policyOf(o, 2).Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			return o
		}, "", 1, "WRONG   the admission policy kubelet-supervisor-configmaps is not as install makes it (spec.paramKind"},
		{"it selects other nodes", func(o []runtime.Object) []runtime.Object {
			policyOf(o, 0).Spec.MatchConstraints.ResourceRules[0].Resources = []string{"nodes"}
			return o
		}, "", 1, "spec.matchConstraints of the ValidatingAdmissionPolicy"},
		{"no binding", func(o []runtime.Object) []runtime.Object { return append(o[:1:1], o[2:]...) }, "", 1, "WRONG   the admission policy kubelet-supervisor-assignment has lost its binding"},
		{"nothing", func([]runtime.Object) []runtime.Object { return nil }, "", 0, "note    the admission policy kubelet-supervisor-configmaps is not installed"},
		{"as installed, and it does not hold", nil, "", 1, "WRONG   the API server takes a dry run in which the node assigns itself"},
		{"somebody else refuses", nil, "users is forbidden: cannot impersonate", 0, "unknown whether the admission policy holds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := policies(t)
				if test.change != nil {
					objects = test.change(objects)
				}
				b := newBench(t, append(objects, localNode("n1"))...)
				b.answersProbes(test.words)
				code, stdout, _ := b.run(t, "doctor", "n1")
				if code != test.code {
					t.Errorf("exit code %d, want %d", code, test.code)
				}
				contains(t, stdout, test.want)
			})
		})
	}
}

// An API server before 1.30 has webhooks in that group, and no policies. There install cannot help.
func TestDoctorBeforePolicies(t *testing.T) {
	b := newBench(t, localNode("n1"))
	b.enforces()
	b.Resources = []*metav1.APIResourceList{{GroupVersion: "admissionregistration.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "validatingwebhookconfigurations"}}}}
	stdout, _ := b.do(t, "doctor", "n1")
	for _, name := range []string{deploy.Policy, deploy.ConfigMapPolicy} {
		contains(t, stdout, "note    this API server has no admission policies (Kubernetes 1.30 and later have), so "+name+" is not installed: everybody who may ")
	}
	if strings.Contains(stdout, "kubectl kubelet install") {
		t.Errorf("doctor advises to install what cannot be installed:\n%s", stdout)
	}
	b.Resources[0].APIResources[0].Name = "validatingadmissionpolicies"
	stdout, _ = b.do(t, "doctor", "n1")
	contains(t, stdout, "can assign; kubectl kubelet install\n")
}

// Those who may not impersonate a node try it as themselves.
func TestDoctorProbesAsYourself(t *testing.T) {
	b := newBench(t, append(policies(t), localNode("n1"))...)
	b.enforces()
	b.factory.ConnectAs = func(string, ...string) (kubernetes.Interface, error) {
		node := newBench(t, localNode("n1"))
		node.answersProbes("cannot impersonate")
		return node, nil
	}
	stdout, _ := b.do(t, "doctor", "n1")
	contains(t, stdout, "ok      the API server refuses a dry run in which you write the node's own status")
}
