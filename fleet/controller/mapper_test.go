package controller

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// The mapper knows whatever is cached, and what is asked beside it, as the API server has it.
func TestTheMapperKnowsWhatIsUsed(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper, objects := newMapper(), []client.Object{&authorizationv1.SelfSubjectAccessReview{}}
	for object := range cachedObjects() {
		objects = append(objects, object)
	}
	resources := map[string]string{"Node": "nodes", "Pod": "pods in a namespace", "ConfigMap": "configmaps in a namespace",
		"ControllerRevision": "controllerrevisions in a namespace", "KubeletPool": "kubeletpools",
		"KubeletRolloutBudget": "kubeletrolloutbudgets", "SelfSubjectAccessReview": "selfsubjectaccessreviews"}
	for _, object := range objects {
		of, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{of.Kind, of.Kind + "List"} {
			is, err := apiutil.IsGVKNamespaced(of.GroupVersion().WithKind(kind), mapper)
			if err != nil {
				t.Fatal(err)
			}
			mapping, err := mapper.RESTMapping(of.GroupKind(), of.Version)
			if err != nil {
				t.Fatal(err)
			}
			got := mapping.Resource.Resource
			if is {
				got += " in a namespace"
			}
			if got != resources[of.Kind] {
				t.Errorf("%s is %s, not %s", kind, got, resources[of.Kind])
			}
		}
	}
	if _, err := apiutil.IsGVKNamespaced(corev1.SchemeGroupVersion.WithKind("Secret"), mapper); err == nil {
		t.Error("it knows Secrets, which nobody uses")
	}
}
