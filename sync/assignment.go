package sync

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxAssignment is longer than any assignment that can be valid, in bytes: 63 + 253 + 253 + 255 and three separators.
const maxAssignment = 1024

// validateField judges spec.configSource.configMap. The API server does so on updates, but not when a Node is created.
func validateField(source *corev1.ConfigMapNodeConfigSource) field.ErrorList {
	var problems field.ErrorList
	if source.UID != "" {
		problems = append(problems, field.Forbidden(nodev1.FieldPath().Child("uid"), "uid must not be set in spec"))
	}
	if source.ResourceVersion != "" {
		problems = append(problems, field.Forbidden(nodev1.FieldPath().Child("resourceVersion"), "resourceVersion must not be set in spec"))
	}
	return append(problems, nodev1.AssignmentOf(&corev1.NodeConfigSource{ConfigMap: source}).Validate()...)
}

// assignment is what a Node asks for, before anything is downloaded. A nil source without a problem is local.
type assignment struct {
	text     string // as Update.Text
	source   *corev1.ConfigMapNodeConfigSource
	problem  *Problem
	shadowed bool
}

// assignmentOf reads annotation and field; the annotation wins, even when it is malformed: falling through to the field
// would change the configuration because of a typing error.
func assignmentOf(annotation *string, configSource *corev1.NodeConfigSource, namespaces []string) assignment {
	if annotation == nil {
		return fromField(configSource, namespaces)
	}
	a := fromAnnotation(*annotation, namespaces)
	if configSource != nil && configSource.ConfigMap != nil && a.problem == nil {
		a.shadowed = a.source == nil || nodev1.FieldText(a.source) != nodev1.FieldText(configSource.ConfigMap)
	}
	return a
}

func fromAnnotation(text string, namespaces []string) assignment {
	a := assignment{text: text}
	if len(text) > maxAssignment {
		// It goes back onto the Node as the assignment that was observed, and annotations have 256 KiB altogether.
		a.text = bounded.Text(text, maxAssignment)
	}
	wanted, err := nodev1.ParseAssignment(text)
	switch {
	case err != nil:
		a.problem = malformed(err, fmt.Sprintf("annotation %s: %v; %s", nodev1.ConfigSourceAnnotation, err, nodev1.HowToAssign))
	case !wanted.IsLocal():
		a.source = wanted.Source()
		a.problem = refuseNamespace(wanted.Namespace, namespaces)
	}
	return a
}

func fromField(configSource *corev1.NodeConfigSource, namespaces []string) assignment {
	if configSource == nil {
		return assignment{}
	}
	if configSource.ConfigMap == nil {
		return assignment{problem: &Problem{
			Malformed: true,
			Error:     "failed to sync: invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
			Words:     "spec.configSource of the Node is empty; name a ConfigMap in it, or remove it",
		}}
	}
	a := assignment{text: nodev1.FieldText(configSource.ConfigMap), source: configSource.ConfigMap.DeepCopy()}
	if err := validateField(configSource.ConfigMap).ToAggregate(); err != nil {
		a.text = bounded.Text(a.text, maxAssignment)
		a.problem = malformed(err, fmt.Sprintf("%v; correct the field", err))
		return a
	}
	a.problem = refuseNamespace(a.source.Namespace, namespaces)
	return a
}

func malformed(err error, words string) *Problem {
	return &Problem{Malformed: true, Error: "failed to sync: " + err.Error(), Words: words}
}

// refuseNamespace keeps configurations to the namespaces that the node's administrator trusts, whatever users may write the Node.
func refuseNamespace(namespace string, allowed []string) *Problem {
	if slices.Contains(allowed, namespace) || slices.Contains(allowed, "*") {
		return nil
	}
	err := field.Forbidden(nodev1.FieldPath().Child("namespace"),
		fmt.Sprintf("namespace %q is not allowed on this node, allowed: %s", namespace, strings.Join(allowed, ", ")))
	return malformed(err, fmt.Sprintf("%v; move the ConfigMap, or change --config-namespaces", err))
}

// retryOf gives a short value for a long one, because it is kept with the state, and on the Node where it has to leave room for the rest of
// the status. Escaped, it may take six times its size there.
func retryOf(text string) string {
	if escaped, err := json.Marshal(text); err == nil && len(escaped) <= maxAssignment {
		return text
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}
