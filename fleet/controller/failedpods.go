package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// failedPods is what this process knew of each failed pod when it first saw it, by UID.
type failedPods map[types.UID]failedPod

type failedPod struct {
	age     time.Duration // of this process
	unbound bool
}

// readAll returns the pods that kubelets have rejected.
func (f *failedPods) readAll(pods []corev1.Pod, nodes []rollout.Node, unbound func(types.UID) bool, age time.Duration) []rollout.TurnedAway {
	first := make(failedPods, len(*f))
	var uids map[string]types.UID
	var turned []rollout.TurnedAway
	for i := range pods {
		p := &pods[i]
		if !rejection.Is(&p.Status) {
			continue
		}
		if uids == nil {
			uids = make(map[string]types.UID, len(nodes))
			for i := range nodes {
				uids[nodes[i].Name] = nodes[i].UID
			}
		}
		seen, is := (*f)[p.UID]
		if !is {
			seen = failedPod{age, unbound(p.UID)}
		}
		first[p.UID] = seen
		if uid, is := uids[p.Spec.NodeName]; is {
			away := rollout.TurnedAway{Node: uid, Namespace: p.Namespace, Name: p.Name, Unbound: seen.unbound, Age: age - seen.age}
			if p.Status.StartTime != nil {
				away.Started = p.Status.StartTime.Time
			}
			turned = append(turned, away)
		}
	}
	*f = first
	return turned
}
