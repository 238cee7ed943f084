// Package v1alpha1 has the types of the API group kubelet-supervisor.io: KubeletPool, a kubelet configuration for many nodes.
//
// It has the types and the defaults that the API server applies, and no behaviour. controller-gen generates the CustomResourceDefinition and
// the deep copies from it. A test compares them with the files in the repository, and `make manifests` generates them again.
//
// +kubebuilder:object:generate=true
// +groupName=kubelet-supervisor.io
package v1alpha1
