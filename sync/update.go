package sync

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Update is what the Node asks for now. Without NodeGone exactly one of Source, Local and Problem is set.
type Update struct {
	// Text is the assignment: the annotation's value verbatim, for fields NAMESPACE/NAME/KEY, "" when nothing is assigned.
	// What is longer than any valid assignment is cut at 1,024 bytes.
	Text string
	// NodeUID tells a Node from one of the same name that came after it.
	NodeUID string
	// Source is the assigned configuration with uid and resourceVersion.
	Source *corev1.ConfigMapNodeConfigSource
	// Payload is data and binaryData of the ConfigMap at that resourceVersion. Whether it has the key, or what is in it,
	// was not looked at.
	Payload map[string]string
	// Local is set when the assignment is "local", and when nothing is assigned.
	Local bool
	// Problem says why the assignment cannot be followed.
	Problem *Problem
	// NodeGone is set while the Node does not exist; nothing else means anything then.
	NodeGone bool
	// Retry is the value of [nodev1.RetryAnnotation]; of a longer one than 1,024 bytes a digest, which differs when the value does.
	Retry string
	// Consent is the value of [nodev1.AllowDisruptionAnnotation]; one that is longer than any that means something is cut.
	Consent string
	// Asked is when the download of Payload began, or where it came by a watch, when it came.
	Asked time.Time
	// Shadowed is set when annotation and field both assign, and differ. The annotation wins.
	Shadowed bool
}

// Problem is a reason why an assignment cannot be followed.
type Problem struct {
	// Malformed is set when the assignment itself is wrong or not allowed, not set when its ConfigMap cannot be had.
	Malformed bool
	// Error is what Node.status.config.error says, in upstream's exact words.
	Error string
	// Words are for people: what is wrong, why, and what to do. One line, a few hundred bytes.
	Words string
}

// maxConsent is the most bytes of a consent; its digests have 12.
const maxConsent = 64

// maxKeys is the most keys of a ConfigMap that are taken. The API has no such limit: 1 MiB has room for a million.
const maxKeys = 1024

// Errors of pkg/kubelet/kubeletconfig/status, Kubernetes 1.11 to 1.23.
const (
	downloadError = "failed to sync: failed to download config, see Kubelet log for details"
	internalError = "failed to sync: internal failure, see Kubelet log for details"
)

// same reports whether two updates say the same. A payload is known by its uid and resourceVersion.
func (u Update) same(other Update) bool {
	return u.Text == other.Text && u.NodeUID == other.NodeUID && u.Local == other.Local && u.NodeGone == other.NodeGone &&
		u.Retry == other.Retry && u.Consent == other.Consent && u.Shadowed == other.Shadowed &&
		equal(u.Source, other.Source) && equal(u.Problem, other.Problem)
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// resolve turns the ConfigMap that was found into the configuration that the assignment names, or into a problem.
func resolve(
	wanted *corev1.ConfigMapNodeConfigSource, found *corev1.ConfigMap, maxPayload int,
) (*corev1.ConfigMapNodeConfigSource, map[string]string, *Problem) {
	name := nameOf(wanted)
	if found == nil {
		return nil, nil, &Problem{Error: downloadError, Words: fmt.Sprintf("%s does not exist; create it, or assign another", name)}
	}
	if found.UID == "" || found.ResourceVersion == "" {
		return nil, nil, &Problem{Error: internalError, Words: fmt.Sprintf("the API server gave %s without uid or resourceVersion", name)}
	}
	if wanted.UID != "" && wanted.UID != found.UID {
		return nil, nil, &Problem{Error: downloadError, Words: fmt.Sprintf(
			"%s was re-created: its uid is %q, the assignment asks for %q; assign %s@%s, or leave the uid out",
			name, bounded.Short(string(found.UID)), bounded.Short(string(wanted.UID)), nodev1.FieldText(wanted), bounded.Short(string(found.UID)))}
	}
	if size := payloadSize(found); size > maxPayload {
		return nil, nil, &Problem{Error: downloadError, Words: fmt.Sprintf(
			"%s holds %d bytes, at most %d are allowed; make it smaller", name, size, maxPayload)}
	}
	if keys := len(found.Data) + len(found.BinaryData); keys > maxKeys {
		return nil, nil, &Problem{Error: downloadError, Words: fmt.Sprintf(
			"%s has %d keys, at most %d are allowed, because each becomes a file; divide it", name, keys, maxKeys)}
	}
	source := *wanted
	source.UID, source.ResourceVersion = found.UID, found.ResourceVersion
	return &source, payloadOf(found), nil
}

func payloadSize(configMap *corev1.ConfigMap) (size int) {
	for _, value := range configMap.Data {
		size += len(value)
	}
	for _, value := range configMap.BinaryData {
		size += len(value)
	}
	return size
}

func payloadOf(configMap *corev1.ConfigMap) map[string]string {
	payload := make(map[string]string, len(configMap.Data)+len(configMap.BinaryData))
	for key, value := range configMap.Data {
		payload[key] = value
	}
	for key, value := range configMap.BinaryData {
		payload[key] = string(value)
	}
	return payload
}

func nameOf(source *corev1.ConfigMapNodeConfigSource) string {
	return "ConfigMap " + source.Namespace + "/" + source.Name
}
