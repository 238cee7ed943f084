package sync

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Annotations by which people speak to the supervisor.
const (
	// ConfigSourceAnnotation assigns: NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local.
	ConfigSourceAnnotation = "kubelet-supervisor.io/config-source"
	// RetryAnnotation asks for another try of what was rejected; any new value does.
	RetryAnnotation = "kubelet-supervisor.io/retry"
	// AllowDisruptionAnnotation lets the one change through that it names, although running pods would be killed.
	AllowDisruptionAnnotation = "kubelet-supervisor.io/allow-disruption"
)

// maxAssignment is longer than any assignment that can be valid, in bytes: 63 + 253 + 253 + 255 and three separators.
const maxAssignment = 1024

const localAssignment = "local"

const howToAssign = "write NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local"

// fieldPath is where the API server places its messages about an assignment. Annotations are judged by the same rules and
// in the same words (upstream's ValidateNodeUpdate), so that tools and tests of the removed feature understand them.
var fieldPath = field.NewPath("spec", "configSource", "configMap")

// uidPattern leaves the length to maxUID: a pattern that counts to 255 takes a quarter of a MiB for as long as the program runs.
var uidPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const maxUID = 255

// ParseAssignment reads the value of ConfigSourceAnnotation: NAMESPACE/NAME/KEY[@UID], or local. The error carries the API
// server's validation messages for spec.configSource.configMap; values are quoted, at most 64 bytes of each.
func ParseAssignment(text string) (namespace, name, key, uid string, local bool, err error) {
	if text == localAssignment {
		return "", "", "", "", true, nil
	}
	// Everything after the second slash is the key, so that "ns/name/../key" is a bad key, as it is in the field.
	parts := append(strings.SplitN(text, "/", 3), "", "")
	namespace, name = parts[0], parts[1]
	key, uid, pinned := strings.Cut(parts[2], "@")
	problems := validateReference(namespace, name, key)
	switch path := fieldPath.Child("uid"); {
	case pinned && uid == "":
		problems = append(problems, field.Required(path, "uid must follow the @"))
	case pinned && !validUID(uid):
		problems = append(problems, field.Invalid(path, short(uid), "a uid must consist of at most 255 alphanumeric characters, '-', '_' or '.'"))
	}
	if len(problems) > 0 {
		return "", "", "", "", false, problems.ToAggregate()
	}
	return namespace, name, key, uid, false, nil
}

// validUID tells whether an identifier of the API server, opaque otherwise, is safe as a file name.
func validUID(uid string) bool {
	return len(uid) <= maxUID && uidPattern.MatchString(uid) && uid != "." && uid != ".."
}

// validateReference judges as validateConfigMapNodeConfigSource of the API server does, with the words of 1.21, which had
// a detail after "Required value" that upstream's end-to-end tests look for.
func validateReference(namespace, name, key string) field.ErrorList {
	var problems field.ErrorList
	check := func(child, value string, rules func(string) []string) {
		if value == "" {
			problems = append(problems, field.Required(fieldPath.Child(child), child+" must be set"))
			return
		}
		for _, words := range rules(value) {
			problems = append(problems, field.Invalid(fieldPath.Child(child), short(value), words))
		}
	}
	check("namespace", namespace, validation.IsDNS1123Label)
	check("name", name, validation.IsDNS1123Subdomain)
	check("kubeletConfigKey", key, validation.IsConfigMapKey)
	return problems
}

// validateField judges spec.configSource.configMap. The API server does so on updates, but not when a Node is created.
func validateField(source *corev1.ConfigMapNodeConfigSource) field.ErrorList {
	var problems field.ErrorList
	if source.UID != "" {
		problems = append(problems, field.Forbidden(fieldPath.Child("uid"), "uid must not be set in spec"))
	}
	if source.ResourceVersion != "" {
		problems = append(problems, field.Forbidden(fieldPath.Child("resourceVersion"), "resourceVersion must not be set in spec"))
	}
	return append(problems, validateReference(source.Namespace, source.Name, source.KubeletConfigKey)...)
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
		a.shadowed = a.source == nil || textOf(a.source) != textOf(configSource.ConfigMap)
	}
	return a
}

func fromAnnotation(text string, namespaces []string) assignment {
	a := assignment{text: text}
	if len(text) > maxAssignment {
		// It goes back onto the Node as the assignment that was observed, and annotations have 256 KiB altogether.
		a.text = bounded.Text(text, maxAssignment)
	}
	namespace, name, key, uid, local, err := ParseAssignment(text)
	switch {
	case err != nil:
		a.problem = malformed(err, fmt.Sprintf("annotation %s: %v; %s", ConfigSourceAnnotation, err, howToAssign))
	case local:
	default:
		a.source = &corev1.ConfigMapNodeConfigSource{Namespace: namespace, Name: name, KubeletConfigKey: key, UID: types.UID(uid)}
		a.problem = refuseNamespace(namespace, namespaces)
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
	a := assignment{text: textOf(configSource.ConfigMap), source: configSource.ConfigMap.DeepCopy()}
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

// refuseNamespace keeps configurations to the namespaces that the node's administrator trusts, whoever may write the Node.
func refuseNamespace(namespace string, allowed []string) *Problem {
	if slices.Contains(allowed, namespace) || slices.Contains(allowed, "*") {
		return nil
	}
	err := field.Forbidden(fieldPath.Child("namespace"), fmt.Sprintf("namespace %q is not allowed on this node, allowed: %s", namespace, strings.Join(allowed, ", ")))
	return malformed(err, fmt.Sprintf("%v; move the ConfigMap, or change --config-namespaces", err))
}

// retryOf gives a short value in the place of a long one: it is kept with the state, and escaped there may take ten times its size.
func retryOf(text string) string {
	if len(text) <= maxAssignment {
		return text
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// textOf writes a source as assignments are written, without its uid.
func textOf(source *corev1.ConfigMapNodeConfigSource) string {
	return source.Namespace + "/" + source.Name + "/" + source.KubeletConfigKey
}
