package forecast

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/resource"
)

// What a pod needs of its node that a feature gate may take away.
const (
	declaredFeatures  = "NodeDeclaredFeatures" // the gate of the whole check
	podLevelResources = "PodLevelResources"

	featureUnsupported = "PodFeatureUnsupported"
	podLevelRefused    = "PodLevelResourcesNotSupported"
)

// featuresOf is what a pod needs by the library that the kubelet's own admission uses, by name.
func featuresOf(node *corev1.Node, pod *corev1.Pod) []string {
	of, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return nil // of a kubelet without a version nothing is known
	}
	all := nodedeclaredfeatures.DefaultFramework
	needs, err := all.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, of)
	if err != nil {
		return nil
	}
	names, err := all.Unmap(needs)
	if err != nil {
		return nil
	}
	return names
}

// features reports whether the kubelet would miss what a pod needs. Only a feature that the running kubelet declares
// is certainly one that it looks at, and only a gate that is written off is certainly off.
func (a *admission) features(c *candidate) verdict {
	if v := a.podLevel(c); v.refused() {
		return v
	}
	if len(a.declared) == 0 || a.config.gate(declaredFeatures) == no {
		return admitted
	}
	doubt := admitted
	for _, name := range c.features {
		why := "it needs the node's feature " + name
		declared := slices.Contains(a.declared, name)
		switch on := a.gatesOf(name); {
		case declared && on == no:
			return verdict{Reason: featureUnsupported, certain: a.keepsGate(declaredFeatures), why: why + ", whose gate is off"}
		case !declared || on == perhaps:
			doubt = verdict{Reason: featureUnsupported, why: why + ", and whether the kubelet has it is not known"}
		}
	}
	return doubt
}

// gatesOf reports whether the gates of a feature are on, where they are on for the configuration that runs.
func (a *admission) gatesOf(feature string) certainty {
	needs, err := nodedeclaredfeatures.DefaultFramework.GetFeatureRequirements(feature)
	if err != nil || needs == nil {
		return perhaps
	}
	on := yes
	for _, gate := range needs.EnabledFeatureGates {
		switch then := a.config.gate(gate); {
		case then == no:
			return no
		case !a.keepsGate(gate):
			on = perhaps
		}
	}
	return on
}

// keepsGate reports whether a gate that is on, and is not written off, certainly stays on.
func (a *admission) keepsGate(name string) bool {
	then := a.config.gate(name)
	return then == yes || a.now.gate(name) == perhaps && a.config.sameDefaults(a.now)
}

// podLevel is about resources of a whole pod.
func (a *admission) podLevel(c *candidate) verdict {
	if !resource.IsPodLevelResourcesSet(c.pod) || a.config.gate(podLevelResources) != no {
		return admitted
	}
	return verdict{Reason: podLevelRefused, certain: len(a.declared) > 0, why: "it has resources of the whole pod, and their gate is off"}
}

// gate is what a configuration says of one; perhaps is nothing, so that it is as the kubelet has it by default.
func (c *Configuration) gate(name string) certainty {
	switch on, said := c.FeatureGates[name]; {
	case !said:
		return perhaps
	case on:
		return yes
	}
	return no
}

// sameDefaults reports whether gates that are not named are as with another configuration: AllAlpha and AllBeta name many.
func (c *Configuration) sameDefaults(other *Configuration) bool {
	of := func(c *Configuration) (text string) {
		for _, name := range []string{"AllAlpha", "AllBeta"} {
			text += strings.Repeat(name, int(c.gate(name)))
		}
		return text
	}
	return of(c) == of(other)
}
