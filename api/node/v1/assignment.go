package v1

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Local assigns the node's own configuration.
const Local = "local"

// HowToAssign is the advice for a malformed annotation.
const HowToAssign = "write NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local"

// Assignment refers to a configuration, as [ConfigSourceAnnotation] or spec.configSource does. Its zero value is local. Two assignments that are equal
// by == have the same text; [Assignment.Equal] compares what they refer to.
type Assignment struct {
	Namespace, Name, Key string
	// UID is empty unless the assignment is pinned to one object.
	UID string
}

// FieldPath is the path in the API server's messages about an assignment. Annotations are validated by the same rules and with the same messages
// (upstream's ValidateNodeUpdate), so that tools and tests of the removed feature understand them.
func FieldPath() *field.Path { return field.NewPath("spec", "configSource", "configMap") }

// uidPattern does not limit the length, because a pattern that counts to 255 would take a quarter of a MiB of memory; maxUID does.
var uidPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const maxUID = 255

// ParseAssignment parses the value of [ConfigSourceAnnotation]: NAMESPACE/NAME/KEY[@UID], or local. The error has the API server's validation messages
// for spec.configSource.configMap, with at most 64 bytes of each value.
func ParseAssignment(text string) (Assignment, error) {
	if text == Local {
		return Assignment{}, nil
	}
	// Everything after the second slash is the key, so that "ns/name/../key" is a bad key, as it is in the field.
	parts := append(strings.SplitN(text, "/", 3), "", "")
	key, uid, pinned := strings.Cut(parts[2], "@")
	a := Assignment{parts[0], parts[1], key, uid}
	problems := a.Validate()
	if pinned && uid == "" {
		problems = append(problems, field.Required(FieldPath().Child("uid"), "uid must follow the @"))
	}
	if len(problems) > 0 {
		return Assignment{}, problems.ToAggregate()
	}
	return a, nil
}

// AssignmentOf returns the assignment of a source in a Node's spec or status, without its uid. It is local for nil, and for a source without a
// ConfigMap.
func AssignmentOf(source *corev1.NodeConfigSource) Assignment {
	if source == nil || source.ConfigMap == nil {
		return Assignment{}
	}
	c := source.ConfigMap
	return Assignment{Namespace: c.Namespace, Name: c.Name, Key: c.KubeletConfigKey}
}

// Validate judges as validateConfigMapNodeConfigSource of the API server does, with the messages of 1.21, which had a
// detail after "Required value" that upstream's end-to-end tests look for. Local names no ConfigMap, and is not valid
// as one.
func (a Assignment) Validate() field.ErrorList {
	var problems field.ErrorList
	check := func(child, value string, rules func(string) []string) {
		at := FieldPath().Child(child)
		if value == "" {
			problems = append(problems, field.Required(at, child+" must be set"))
			return
		}
		for _, words := range rules(value) {
			problems = append(problems, field.Invalid(at, bounded.Short(value), words))
		}
	}
	check("namespace", a.Namespace, validation.IsDNS1123Label)
	check("name", a.Name, validation.IsDNS1123Subdomain)
	check("kubeletConfigKey", a.Key, validation.IsConfigMapKey)
	if a.UID != "" && !validUID(a.UID) {
		problems = append(problems, field.Invalid(FieldPath().Child("uid"), bounded.Short(a.UID),
			"a uid must consist of at most 255 alphanumeric characters, '-', '_' or '.'"))
	}
	return problems
}

// validUID reports whether an identifier of the API server, opaque otherwise, is safe as a file name.
func validUID(uid string) bool {
	return len(uid) <= maxUID && uidPattern.MatchString(uid) && uid != "." && uid != ".."
}

// IsLocal reports whether it is the node's own configuration.
func (a Assignment) IsLocal() bool { return a == Assignment{} }

// String returns the value of [ConfigSourceAnnotation].
func (a Assignment) String() string {
	if a.IsLocal() {
		return Local
	}
	text := FieldText(a.Source())
	if a.UID != "" {
		text += "@" + a.UID
	}
	return text
}

// FieldText is the assignment of a ConfigMap in spec.configSource, valid or not, as it is in [ConfigObservedAnnotation]: without its uid.
func FieldText(c *corev1.ConfigMapNodeConfigSource) string {
	return c.Namespace + "/" + c.Name + "/" + c.KubeletConfigKey
}

// Unpinned returns the assignment without a uid.
func (a Assignment) Unpinned() Assignment {
	a.UID = ""
	return a
}

// Equal reports whether two assignments name the same configuration, as far as both say: a pinned one equals the same one without a uid.
func (a Assignment) Equal(b Assignment) bool {
	return a.Unpinned() == b.Unpinned() && (a.UID == b.UID || a.UID == "" || b.UID == "")
}

// Source returns the ConfigMap to download; nil for local.
func (a Assignment) Source() *corev1.ConfigMapNodeConfigSource {
	if a.IsLocal() {
		return nil
	}
	return &corev1.ConfigMapNodeConfigSource{Namespace: a.Namespace, Name: a.Name, KubeletConfigKey: a.Key, UID: types.UID(a.UID)}
}
