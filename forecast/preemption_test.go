package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPreemption(t *testing.T) {
	critical := priority(systemCritical + 1000)
	checkAll(t, []row{
		{name: "those of the lowest class", then: changes(maxPods(3)), pods: []corev1.Pod{aPod("gu", 0, guaranteed("1", "1Gi")), aPod("bu", 1, asks("cpu", "1")), aPod("be", 2), aPod("crit", 3, critical)}, losses: "be:Preempting"},
		{name: "which of equals is any", then: changes(maxPods(3)), pods: []corev1.Pod{aPod("be1", 0), aPod("be2", 1), aPod("be3", 2), aPod("crit", 3, critical)}, losses: "be1:Preempting? be2:Preempting? be3:Preempting?", least: 1},
		{name: "all of the equals", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("be1", 0), aPod("crit", 3, critical)}, losses: "be1:Preempting"},
		{name: "an equal that does not run yet", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("be1", 0), aPod("be2", 1, phase(corev1.PodPending)), aPod("crit", 3, critical)}, losses: "be1:Preempting?"},
		{name: "equals of two seconds and priorities", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("be1", 0), aPod("be2", 1, priority(1000)), aPod("crit", 3, critical)}, losses: "be1:Preempting? be2:Preempting?", least: 1},
		{name: "equals of one second, twice", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("low", 0, static, priority(1000)), aPod("none", 0, static), aPod("crit1", 1, priority(systemCritical)), aPod("crit2", 1, priority(systemCritical), asks("cpu", "1"))},
			losses: "crit1:UnexpectedAdmissionError? crit2:UnexpectedAdmissionError?", static: "low:Preempting none:UnexpectedAdmissionError?", least: 1},
		{name: "a pod that may be refused before makes room for certain of nobody", now: changes(soft("memory.available", "1Gi")), then: changes(maxPods(1), func(c *Configuration) { c.TopologyManagerPolicy = "restricted" }),
			pods: []corev1.Pod{aPod("be1", 0), aPod("crit", 3, critical, asks("example.com/gpu", "1"))}, host: built(4, 1, 2),
			node: func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") }, losses: "be1:Preempting?", anyway: "crit:TopologyAffinityError?"},
		{name: "the one that is enough", then: changes(systemReserved("memory", "5Gi")), pods: []corev1.Pod{aPod("small", 0, asks("memory", "500Mi")), aPod("big", 1, asks("memory", "2Gi")), aPod("crit", 2, critical, asks("memory", "2Gi"))}, losses: "big:Preempting"},
		{name: "a static pod finds nobody yet", then: changes(systemReserved("memory", "7Gi")), pods: []corev1.Pod{aPod("a", 0, asks("memory", "100Mi")), aPod("s", 1, static, asks("memory", "2Gi"))}, static: "s:UnexpectedAdmissionError"},
		{name: "a critical pod in the wrong place", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("crit", 1, critical, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} })}, anyway: "crit:NodeAffinity"},
	})
}
