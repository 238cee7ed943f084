package forecast

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Sandbox is a pod that runs, as the container runtime knows it. The kubelet's pods are those: one that the API does
// not show may be among them.
type Sandbox struct {
	ID                   string
	Namespace, Name, UID string
	Source               string // where the kubelet has the pod from: api, file or http; "": not told

	Labels, Annotations map[string]string // of a static pod: those of its manifest, and what the kubelet adds
}

// Static reports whether the pod does not come from the API.
func (s *Sandbox) Static() bool { return s.Source != "" && s.Source != "api" }

// ReadyUIDs are the uids, as the kubelet has them, of the pods of these sandboxes.
func ReadyUIDs(sandboxes []Sandbox) map[types.UID]bool {
	ready := make(map[types.UID]bool, len(sandboxes))
	for i := range sandboxes {
		ready[types.UID(sandboxes[i].UID)] = true
	}
	return ready
}

// WithoutPod are the sandboxes of pods of the API that are neither among these pods nor among those that have ended.
// Where there are none, a list of pods lacks no pod that runs.
func WithoutPod(sandboxes []Sandbox, pods []corev1.Pod, ended map[types.UID]bool) (missing []Sandbox) {
	listed := map[types.UID]bool{}
	for i := range pods {
		listed[pods[i].UID] = true
		if hash := pods[i].Annotations[mirrorAnnotation]; hash != "" {
			listed[types.UID(hash)] = true
		}
	}
	for i := range sandboxes {
		s := &sandboxes[i]
		if uid := types.UID(s.UID); !s.Static() && !listed[uid] && !ended[uid] {
			missing = append(missing, *s)
		}
	}
	return missing
}
