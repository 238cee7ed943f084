//go:build older

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// declaredFeatures are from 1.36 on.
func declaredFeatures(*v1.Node) lifecycle.PodAdmitHandler { return nil }
