package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// newMapper knows the kinds that are used here, so that the caches start without discovery. If the API server is not available yet, or does not have
// KubeletPools yet, the process waits, and is not ready until then.
func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for of, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Node"):                             meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Pod"):                              meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):                        meta.RESTScopeNamespace,
		appsv1.SchemeGroupVersion.WithKind("ControllerRevision"):               meta.RESTScopeNamespace,
		authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"): meta.RESTScopeRoot,
		v1alpha1.GroupVersion().WithKind("KubeletPool"):                        meta.RESTScopeRoot,
		v1alpha1.GroupVersion().WithKind("KubeletRolloutBudget"):               meta.RESTScopeRoot,
	} {
		m.Add(of, scope)
		m.Add(of.GroupVersion().WithKind(of.Kind+"List"), scope)
	}
	return m
}
