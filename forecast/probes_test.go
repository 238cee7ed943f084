package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Startup probes that passed long ago are asked again by some kubelets at their start.
func TestStartupProbes(t *testing.T) {
	probed := func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = &corev1.Probe{} }
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "proxy", StartupProbe: &corev1.Probe{}})
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	of := func(version string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = version }
	}
	on := changes(func(c *Configuration) { c.FeatureGates = map[string]bool{asksStartupProbesAgain: true} })
	const doubt = "startup probes"
	for _, r := range []row{
		{name: "before 1.35", pods: []corev1.Pod{aPod("a", 0, probed)}, node: of("v1.34.4"), unknown: doubt},
		{name: "of a sidecar", pods: []corev1.Pod{aPod("a", 0, sidecar)}, node: of("v1.30.1"), unknown: doubt},
		{name: "since 1.35", pods: []corev1.Pod{aPod("a", 0, probed)}, node: of("v1.35.0")},
		{name: "since 1.35, with the gate", now: on, then: on, pods: []corev1.Pod{aPod("a", 0, probed)}, node: of("v1.36.3"), unknown: doubt},
		{name: "of a version that is not known", pods: []corev1.Pod{aPod("a", 0, probed)}, node: of("new"), unknown: doubt},
		{name: "of a pod that has ended", pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, probed, ended)}, node: of("v1.34.4")},
		{name: "none", pods: []corev1.Pod{aPod("a", 0)}, node: of("v1.34.4")},
	} {
		t.Run(r.name, r.check)
	}
}
