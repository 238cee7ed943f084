//go:build !older

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// declaredFeatures lets the node declare what its gates let it, and refuses pods that need more.
func declaredFeatures(node *v1.Node) lifecycle.PodAdmitHandler {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeDeclaredFeatures) {
		return nil
	}
	of, all := version.MustParseGeneric(node.Status.NodeInfo.KubeletVersion), nodedeclaredfeatures.DefaultFramework
	node.Status.DeclaredFeatures = all.DiscoverNodeFeatures(&nodedeclaredfeatures.NodeConfiguration{FeatureGates: gates{}, Version: of})
	return lifecycle.NewDeclaredFeaturesAdmitHandler(all, all.MustMapSorted(node.Status.DeclaredFeatures), of)
}

type gates struct{}

func (gates) Enabled(name string) bool {
	return utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
}
