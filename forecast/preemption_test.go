package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPreemption(t *testing.T) {
	critical := priority(systemCritical + 1000)
	checkAll(t, []row{
		{name: "those of the lowest class", then: changes(maxPods(3)), pods: []corev1.Pod{aPod("gu", 0, guaranteed("1", "1Gi")), aPod("bu", 1, asks("cpu", "1")), aPod("be", 2), aPod("crit", 3, critical)}, losses: "be:Preempting"},
		{name: "which of equals is any", then: changes(maxPods(3)), pods: []corev1.Pod{aPod("be1", 0), aPod("be2", 1), aPod("be3", 2), aPod("crit", 3, critical)}, losses: "be1:Preempting? be3:Preempting?", least: 1},
		{name: "the one that is enough", then: changes(systemReserved("memory", "5Gi")), pods: []corev1.Pod{aPod("small", 0, asks("memory", "500Mi")), aPod("big", 1, asks("memory", "2Gi")), aPod("crit", 2, critical, asks("memory", "2Gi"))}, losses: "big:Preempting"},
		{name: "a static pod finds nobody yet", then: changes(systemReserved("memory", "7Gi")), pods: []corev1.Pod{aPod("a", 0, asks("memory", "100Mi")), aPod("s", 1, static, asks("memory", "2Gi"))}, static: "s:UnexpectedAdmissionError"},
		{name: "a critical pod in the wrong place", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("crit", 1, critical, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} })}, anyway: "crit:NodeAffinity"},
	})
}
