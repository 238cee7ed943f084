package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPreemption(t *testing.T) {
	critical := priority(systemCritical + 1000)
	burstable := func(pod *corev1.Pod) { pod.Status.QOSClass = corev1.PodQOSBurstable }
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
		{name: "a BestEffort pod before a Burstable one that asks for nothing", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("bu", 0, burstable), aPod("be", 1), aPod("crit", 3, critical)}, losses: "be:Preempting"},
		{name: "a Burstable pod before a smaller Guaranteed one", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("gu", 0, guaranteed("100m", "100Mi")), aPod("bu", 1, asks("cpu", "1", "memory", "1Gi")), aPod("crit", 3, critical)}, losses: "bu:Preempting"},
		{name: "an equal between others that does not run yet", then: changes(maxPods(3)), pods: []corev1.Pod{aPod("be1", 0), aPod("be2", 1, phase(corev1.PodPending)), aPod("be3", 2), aPod("crit", 3, critical)}, losses: "be1:Preempting? be3:Preempting?"},
		{name: "equals that give a third pod room, and do not", then: changes(func(c *Configuration) { c.SystemReserved = map[string]string{"cpu": "1", "ephemeral-storage": "10Gi"} }),
			pods:   []corev1.Pod{aPod("e1", 0, asks("cpu", "1", "ephemeral-storage", "50Gi")), aPod("e2", 1, asks("cpu", "1")), aPod("crit", 2, critical, asks("cpu", "2")), aPod("z", 4, asks("ephemeral-storage", "39Gi"))},
			losses: "e1:Preempting? e2:Preempting? z:OutOfephemeral-storage?", least: 1},
		{name: "the nearest one, whose distance is a sum of squares", then: changes(func(c *Configuration) { c.SystemReserved = map[string]string{"cpu": "2720m", "memory": "6812Mi"} }),
			pods:   []corev1.Pod{aPod("memory", 0, asks("memory", "1000Mi")), aPod("both", 1, asks("cpu", "280m", "memory", "280Mi")), aPod("cpu", 2, asks("cpu", "1")), aPod("crit", 3, critical, asks("cpu", "1", "memory", "1000Mi"))},
			losses: "memory:Preempting cpu:Preempting"},
		{name: "the nearest one, by shares of what is needed", then: changes(func(c *Configuration) { c.SystemReserved = map[string]string{"cpu": "2100m", "memory": "6192Mi"} }),
			pods:   []corev1.Pod{aPod("memory", 0, asks("memory", "1000Mi")), aPod("both", 1, asks("cpu", "900m", "memory", "900Mi")), aPod("cpu", 2, asks("cpu", "1")), aPod("crit", 3, critical, asks("cpu", "1", "memory", "1000Mi"))},
			losses: "memory:Preempting both:Preempting cpu:Preempting"},
		{name: "local storage", then: changes(systemReserved("ephemeral-storage", "30Gi")), pods: []corev1.Pod{aPod("small", 0, asks("cpu", "100m")), aPod("big", 1, asks("cpu", "200m", "ephemeral-storage", "30Gi")), aPod("crit", 2, critical, asks("ephemeral-storage", "50Gi"))},
			losses: "big:Preempting"},
		{name: "too few others, and nobody goes for nothing", then: changes(systemReserved("memory", "7Gi")), pods: []corev1.Pod{aPod("gu", 0, guaranteed("100m", "100Mi")), aPod("bu", 1, asks("memory", "100Mi")), aPod("be", 2), aPod("crit", 3, critical, asks("memory", "2Gi"))},
			losses: "crit:UnexpectedAdmissionError"},
		{name: "the one that is enough", then: changes(systemReserved("memory", "5Gi")), pods: []corev1.Pod{aPod("small", 0, asks("memory", "500Mi")), aPod("big", 1, asks("memory", "2Gi")), aPod("crit", 2, critical, asks("memory", "2Gi"))}, losses: "big:Preempting"},
		{name: "a static pod finds nobody yet", then: changes(systemReserved("memory", "7Gi")), pods: []corev1.Pod{aPod("a", 0, asks("memory", "100Mi")), aPod("s", 1, static, asks("memory", "2Gi"))}, static: "s:UnexpectedAdmissionError"},
		{name: "a critical pod in the wrong place", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("crit", 1, critical, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} })}, anyway: "crit:NodeAffinity"},
	})
}
