package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A gate that takes a feature away which a pod needs is a certain loss, in the kubelet's own word.
func TestDeclaredFeatures(t *testing.T) {
	const feature = "RestartAllContainersOnContainerExits"
	rules := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	pods := []corev1.Pod{aPod("a", 0), aPod("rules", 1, rules)}
	declares := func(features ...string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.NodeInfo.KubeletVersion, n.Status.DeclaredFeatures = "v1.36.3", features
		}
	}
	gates := func(list ...string) func(*Configuration) {
		return func(c *Configuration) {
			c.FeatureGates = map[string]bool{}
			for _, name := range list {
				on := name[0] != '-'
				if !on {
					name = name[1:]
				}
				c.FeatureGates[name] = on
			}
		}
	}
	checkAll(t, []row{
		{name: "the gate goes off", then: changes(gates("-" + feature)), pods: pods, node: declares(feature), losses: "rules:PodFeatureUnsupported", unknown: "featureGates." + feature},
		{name: "the gate goes off, and pressure may be", then: changes(gates("-"+feature), soft("memory.available", "4100Mi")), pods: pods, node: declares(feature), losses: "a:Evicted? rules:PodFeatureUnsupported", unknown: "featureGates." + feature},
		{name: "another gate goes off", then: changes(gates("-X")), pods: pods, node: declares(feature), unknown: "featureGates.X"},
		{name: "the gate is no longer said to be on", now: changes(gates(feature)), then: changes(gates()), pods: pods, node: declares(feature), losses: "rules:PodFeatureUnsupported?", unknown: "featureGates." + feature},
		{name: "all that is beta goes off", then: changes(gates("-AllBeta")), pods: pods, node: declares(feature), losses: "rules:PodFeatureUnsupported?", unknown: "featureGates.AllBeta"},
		{name: "so it is already", now: changes(gates("-AllBeta")), then: changes(maxPods(19)), pods: pods, node: declares(feature)},
		{name: "the whole check goes off", then: changes(gates("-"+feature, "-NodeDeclaredFeatures")), pods: pods, node: declares(feature), unknown: "featureGates.NodeDeclaredFeatures, featureGates." + feature},
		{name: "a kubelet that declares nothing", then: changes(gates("-" + feature)), pods: pods, node: declares(), unknown: "featureGates." + feature},
		{name: "a feature that is not declared now", then: changes(maxPods(19)), pods: pods, node: declares("Other"), anyway: "rules:PodFeatureUnsupported?"},
		{name: "a feature that is not declared, and its gate goes off", then: changes(gates("-" + feature)), pods: pods, node: declares("Other"), anyway: "rules:PodFeatureUnsupported?", unknown: "featureGates." + feature},
		{name: "the gate is on, and is said to be", then: changes(gates(feature)), pods: pods, node: declares(feature), unknown: "featureGates." + feature},
		{name: "a kubelet without a version", then: changes(gates("-" + feature)), pods: pods, node: func(n *corev1.Node) { n.Status.DeclaredFeatures = []string{feature} }, unknown: "featureGates." + feature},
		{name: "resources of the whole pod, and a kubelet that declares nothing", then: changes(gates("-PodLevelResources")), unknown: "featureGates.PodLevelResources", pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "1"})}
		})}, losses: "a:PodLevelResourcesNotSupported?"},
		{name: "resources of the whole pod", then: changes(gates("-PodLevelResources")), node: declares(feature), unknown: "featureGates.PodLevelResources", pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "1"})}
		})}, losses: "a:PodLevelResourcesNotSupported"},
	})
}
