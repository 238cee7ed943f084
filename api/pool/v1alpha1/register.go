package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the types.
const GroupName = "kubelet-supervisor.io"

// Version is the API version of the types.
const Version = "v1alpha1"

// GroupVersion names the group and the version.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers the types in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &KubeletPool{}, &KubeletPoolList{}, &KubeletRolloutBudget{}, &KubeletRolloutBudgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
