package forecast

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// asksStartupProbesAgain is the gate of kubelets from 1.35 on that do what the ones before always did: forget at their
// start which containers had passed their startup probe.
const asksStartupProbesAgain = "ChangeContainerStatusOnKubeletRestart"

var startupProbesStay = version.MajorMinor(1, 35)

// startupProbeDoubts are about probes that passed long ago. A kubelet that starts may ask them again, and restarts a
// container whose probe fails now: seen with 1.36.3 and the gate, and read in 1.30 to 1.34.
func startupProbeDoubts(f Facts, list []*candidate) []Unknown {
	of, err := version.ParseGeneric(f.Node.Status.NodeInfo.KubeletVersion)
	if err == nil && of.AtLeast(startupProbesStay) && !f.Then.FeatureGates[asksStartupProbesAgain] {
		return nil
	}
	probed := 0
	for _, c := range list {
		if c.runs && slices.ContainsFunc(slices.Concat(c.pod.Spec.InitContainers, c.pod.Spec.Containers), func(c corev1.Container) bool { return c.StartupProbe != nil }) {
			probed++
		}
	}
	if probed == 0 {
		return nil
	}
	return []Unknown{{"startup probes", fmt.Sprintf("those of %d pods are asked again, and a container whose probe fails now is restarted", probed)}}
}
