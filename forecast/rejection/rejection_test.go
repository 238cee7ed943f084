package rejection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIs(t *testing.T) {
	for name, row := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"a reason":                       {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "TopologyAffinityError"}, true},
		"too little of any resource":     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfexample.com/device"}, true},
		"a reason of a later kubelet":    {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "New", Message: "Pod was rejected: it is new"}, true},
		"pressure at the admission":      {corev1.PodStatus{Phase: corev1.PodFailed, Reason: Evicted, Message: "Pod was rejected: The node had condition: [DiskPressure]. "}, true},
		"the same by an older kubelet":   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: Evicted, Message: "Pod The node had condition: [DiskPressure]. "}, true},
		"an eviction":                    {corev1.PodStatus{Phase: corev1.PodFailed, Reason: Evicted, Message: "The node was low on resource: memory. "}, false},
		"a container that failed":        {corev1.PodStatus{Phase: corev1.PodFailed}, false},
		"a deadline":                     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}, false},
		"a pod that runs, with a reason": {corev1.PodStatus{Phase: corev1.PodRunning, Reason: "OutOfcpu"}, false},
	} {
		if got := Is(&row.status); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
