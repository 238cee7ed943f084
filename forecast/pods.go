package forecast

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mostPods bounds a list, of pods that have not ended. The largest nodes have a few hundred.
const mostPods = 2000

// ReadPods reads a PodList as JSON. It holds one pod at a time, and keeps of each only what a forecast needs, and none
// that has ended: a list of many pods is some megabytes of text. It never returns nil without an error.
func ReadPods(text io.Reader) ([]corev1.Pod, error) {
	pods, _, err := ReadPodsAndEnds(text, func(End) {})
	return pods, err
}

// ReadPodsAndEnds is ReadPods that also reports each pod that has ended, and the resourceVersion of the list.
func ReadPodsAndEnds(text io.Reader, tell func(End)) (pods []corev1.Pod, version string, err error) {
	decoder := json.NewDecoder(text)
	switch version, err = enterItems(decoder); {
	case errors.Is(err, errNullItems): // how Go writes a list that has none
		if token, err := decoder.Token(); token != json.Delim('}') {
			return nil, "", fmt.Errorf("reading a list of no pods: %v: %w", token, orNoList(err))
		}
		return []corev1.Pod{}, version, nil
	case err != nil:
		return nil, "", fmt.Errorf("reading a list of pods: %w", err)
	}
	pods, err = readItems(decoder, tell)
	return pods, version, err
}

func readItems(decoder *json.Decoder, tell func(End)) ([]corev1.Pod, error) {
	pods := []corev1.Pod{}
	for decoder.More() {
		var p podDocument
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("reading a list, after %d pods: %w", len(pods), err)
		}
		if ended(p.Status.Phase) {
			tell(p.end())
			continue
		}
		if len(pods) == mostPods {
			return nil, fmt.Errorf("a list has more than %d pods that have not ended", mostPods)
		}
		pods = append(pods, p.pod())
	}
	if _, err := decoder.Token(); err != nil { // a list that was cut off is not a shorter one
		return nil, fmt.Errorf("reading a list of %d pods: %w", len(pods), err)
	}
	return pods, nil
}

// enterItems reads up to the first of the items. The metadata come before them.
func enterItems(decoder *json.Decoder) (version string, err error) {
	if token, err := decoder.Token(); token != json.Delim('{') {
		return "", fmt.Errorf("it does not begin with an object: %v: %w", token, orNoList(err))
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", err
		}
		if key == "items" {
			switch token, err := decoder.Token(); {
			case err == nil && token == nil:
				return version, errNullItems
			case token != json.Delim('['):
				return "", fmt.Errorf("its items are %v: %w", token, orNoList(err))
			}
			return version, nil
		}
		var passed json.RawMessage
		if err := decoder.Decode(&passed); err != nil {
			return "", err
		}
		if key == "metadata" {
			var metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			}
			if json.Unmarshal(passed, &metadata) == nil {
				version = metadata.ResourceVersion
			}
		}
	}
	return "", errNoList
}

var (
	errNoList    = errors.New("it has no list of items")
	errNullItems = errors.New("its items are null")
)

func orNoList(err error) error {
	if err == nil {
		return errNoList
	}
	return err
}

// A podDocument is the part of a Pod that is read. A Pod's own type would do, but the decoder keeps what it has learnt of a type for ever:
// 330 KB of that one, 40 KB of this, and a fifth of the work.
type podDocument struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               types.UID         `json:"uid"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
		Labels            labelDocument     `json:"labels"`
		OwnerReferences   []ownerDocument   `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName        string                       `json:"nodeName"`
		NodeSelector    map[string]string            `json:"nodeSelector"`
		Affinity        *affinityDocument            `json:"affinity"`
		Tolerations     []corev1.Toleration          `json:"tolerations"`
		Priority        *int32                       `json:"priority"`
		RestartPolicy   corev1.RestartPolicy         `json:"restartPolicy"`
		HostUsers       *bool                        `json:"hostUsers"`
		HostNetwork     bool                         `json:"hostNetwork"`
		Overhead        corev1.ResourceList          `json:"overhead"`
		Resources       *corev1.ResourceRequirements `json:"resources"`
		Containers      []containerDocument          `json:"containers"`
		InitContainers  []containerDocument          `json:"initContainers"`
		SecurityContext *struct {
			Sysctls []corev1.Sysctl `json:"sysctls"`
		} `json:"securityContext"`
	} `json:"spec"`
	Status struct {
		Phase                 corev1.PodPhase     `json:"phase"`
		Reason                string              `json:"reason"`  // of pods that have ended
		Message               string              `json:"message"` // of pods that have ended
		QOSClass              corev1.PodQOSClass  `json:"qosClass"`
		Conditions            []conditionDocument `json:"conditions"`
		ContainerStatuses     []statusDocument    `json:"containerStatuses"`
		InitContainerStatuses []statusDocument    `json:"initContainerStatuses"`
	} `json:"status"`
}

type labelDocument struct {
	OS string `json:"kubernetes.io/os"`
}

type ownerDocument struct {
	Kind       string `json:"kind"`
	Controller *bool  `json:"controller"`
}

type affinityDocument struct {
	NodeAffinity *struct {
		Required *corev1.NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	} `json:"nodeAffinity"`
}

type containerDocument struct {
	Name          string                         `json:"name"`
	Resources     corev1.ResourceRequirements    `json:"resources"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	RestartRules  []ruleDocument                 `json:"restartPolicyRules"`
	VolumeMounts  []mountDocument                `json:"volumeMounts"`
	Ports         []portDocument                 `json:"ports"`
}

type portDocument struct {
	ContainerPort int32           `json:"containerPort"`
	HostPort      int32           `json:"hostPort"`
	HostIP        string          `json:"hostIP"`
	Protocol      corev1.Protocol `json:"protocol"`
}

type ruleDocument struct {
	Action corev1.ContainerRestartRuleAction `json:"action"`
}

type mountDocument struct {
	Options []string `json:"bindMountOptions"`
}

type conditionDocument struct {
	Type   corev1.PodConditionType `json:"type"`
	Status corev1.ConditionStatus  `json:"status"`
	Reason string                  `json:"reason"`
}

type statusDocument struct {
	Name               string                       `json:"name"`
	Resources          *corev1.ResourceRequirements `json:"resources"`
	AllocatedResources corev1.ResourceList          `json:"allocatedResources"`
	Started            *bool                        `json:"started"`
	State              struct {
		Running *struct{} `json:"running"`
	} `json:"state"`
}

func (p *podDocument) pod() corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
			CreationTimestamp: p.Metadata.CreationTimestamp, DeletionTimestamp: p.Metadata.DeletionTimestamp},
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, NodeSelector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations,
			Priority: p.Spec.Priority, RestartPolicy: p.Spec.RestartPolicy, HostUsers: p.Spec.HostUsers, HostNetwork: p.Spec.HostNetwork, Overhead: p.Spec.Overhead,
			Resources: p.Spec.Resources, Containers: containersOf(p.Spec.Containers, p.Spec.HostNetwork), InitContainers: containersOf(p.Spec.InitContainers, p.Spec.HostNetwork)},
		Status: corev1.PodStatus{Phase: p.Status.Phase, QOSClass: p.Status.QOSClass,
			ContainerStatuses: statusesOf(p.Status.ContainerStatuses), InitContainerStatuses: statusesOf(p.Status.InitContainerStatuses)},
	}
	for _, owner := range p.Metadata.OwnerReferences {
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Kind: owner.Kind, Controller: owner.Controller})
	}
	if os := p.Metadata.Labels.OS; os != "" {
		pod.Labels = map[string]string{corev1.LabelOSStable: os}
	}
	if hash, mirror := p.Metadata.Annotations[mirrorAnnotation]; mirror { // else the kubelet writes the source itself, over what a person has written
		pod.Annotations = map[string]string{mirrorAnnotation: hash}
		if source, told := p.Metadata.Annotations[SourceAnnotation]; told {
			pod.Annotations[SourceAnnotation] = source
		}
	}
	if affinity := p.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.Required}}
	}
	if p.Spec.SecurityContext != nil && p.Spec.SecurityContext.Sysctls != nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: p.Spec.SecurityContext.Sysctls}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	return pod
}

func containersOf(documents []containerDocument, hostNetwork bool) []corev1.Container {
	containers := make([]corev1.Container, 0, len(documents))
	for _, d := range documents {
		c := corev1.Container{Name: d.Name, Resources: d.Resources, RestartPolicy: d.RestartPolicy}
		for _, rule := range d.RestartRules {
			c.RestartPolicyRules = append(c.RestartPolicyRules, corev1.ContainerRestartRule{Action: rule.Action})
		}
		for _, mount := range d.VolumeMounts {
			if len(mount.Options) > 0 {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{BindMountOptions: mount.Options})
			}
		}
		for _, port := range d.Ports {
			if port.HostPort > 0 || hostNetwork {
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port.ContainerPort, HostPort: cmp.Or(port.HostPort, port.ContainerPort), HostIP: port.HostIP, Protocol: port.Protocol})
			}
		}
		containers = append(containers, c)
	}
	return containers
}

func statusesOf(documents []statusDocument) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(documents))
	for _, d := range documents {
		status := corev1.ContainerStatus{Name: d.Name, Resources: d.Resources, AllocatedResources: d.AllocatedResources, Started: d.Started}
		if d.State.Running != nil {
			status.State.Running = &corev1.ContainerStateRunning{}
		}
		statuses = append(statuses, status)
	}
	return statuses
}
