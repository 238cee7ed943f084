package forecast

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// A Manifest is a file of a folder of static pods.
type Manifest struct {
	File   string      // its path
	Pod    *corev1.Pod // as the file has it; nil: the file could not be read, and may have any
	Digest string      // of its content
}

// DecodeManifest reads a static pod from JSON, as far as a kubelet does that takes any Pod with a name. What the
// kubelet adds by default and a forecast needs is added. Labels and annotations are kept.
func DecodeManifest(text []byte) (*corev1.Pod, error) {
	var document struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	var p podDocument
	if err := errors.Join(json.Unmarshal(text, &document), json.Unmarshal(text, &p)); err != nil {
		return nil, fmt.Errorf("it is not a pod: %w", err)
	}
	if document.APIVersion != "v1" || document.Kind != "Pod" {
		return nil, fmt.Errorf("it is %q of %q, and not a Pod of v1", document.Kind, document.APIVersion)
	}
	if p.Metadata.Name == "" {
		return nil, errors.New("it is a pod without a name")
	}
	pod := p.pod()
	pod.Labels, pod.Annotations = document.Metadata.Labels, p.Metadata.Annotations
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	pod.Status = corev1.PodStatus{QOSClass: qosClass(&pod)}
	return &pod, nil
}

// requestLimits adds a request for each limit that has none.
func requestLimits(r *corev1.ResourceRequirements) {
	requests := maps.Clone(r.Limits)
	if requests == nil {
		return
	}
	maps.Copy(requests, r.Requests)
	r.Requests = requests
}

// qosClass is what the kubelet gives a pod whose containers have these resources.
func qosClass(pod *corev1.Pod) corev1.PodQOSClass {
	guaranteed, any := true, pod.Spec.Resources != nil
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := r.Requests[name], r.Limits[name] // 0 where there is none
				any = any || !request.IsZero() || !limit.IsZero()
				guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed && pod.Spec.Resources == nil:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
