//go:build tools

// Package tools keeps the kubelet in this module's requirements.
package tools

import _ "k8s.io/kubernetes/cmd/kubelet"
