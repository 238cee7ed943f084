// Package v1alpha1 has the types of the API group kubelet-supervisor.io: KubeletPool, a kubelet configuration for many nodes.
//
// It holds types and their defaults as the API server applies them, and no behaviour. The CustomResourceDefinition and the deep copies are
// made from it by controller-gen; a test compares them with what is checked in, and says how to make them anew.
//
// +kubebuilder:object:generate=true
// +groupName=kubelet-supervisor.io
package v1alpha1
