//go:build tools

// Package tools keeps kube-apiserver in this module's requirements: a go directive below 1.24, which keeps the dependencies
// as Kubernetes 1.24 had them, knows no tool directive.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
