package rollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Namespace is where layers come from, and where revisions and variants are stored.
const Namespace = "kubelet-config"

// payloadLimit is the most bytes that a ConfigMap can hold.
const payloadLimit = 1 << 20

// pathFields are the fields that the kubelet resolves relative to the folder of its file. Users cannot know that
// folder for a layer, so a relative path in one of them is refused.
const pathFields = "staticPodPath podLogsDir authentication.x509.clientCAFile tlsCertFile tlsPrivateKeyFile resolvConf volumePluginDir"

// Ref names a layer: a ConfigMap in [Namespace], and one of its keys.
type Ref struct{ Name, Key string }

func (r Ref) String() string { return Namespace + "/" + r.Name + "/" + r.Key }

// Layer is what a [Ref] names.
type Layer struct {
	ResourceVersion string
	// Missing means that the API server has answered that it does not exist.
	Missing bool
	// Patch is canonical JSON; Fault says why there is none. Unknown has the fields of it that no kubelet knows.
	Patch, Fault, Unknown string
}

// ReadLayer decodes a key of a ConfigMap.
func ReadLayer(data map[string]string, key, resourceVersion string) Layer {
	text, is := data[key]
	if !is {
		return Layer{ResourceVersion: resourceVersion, Fault: fmt.Sprintf("it has no key %q", key)}
	}
	patch, err := readPatch([]byte(text), nil)
	if err != nil {
		return Layer{ResourceVersion: resourceVersion, Fault: err.Error()}
	}
	return Layer{ResourceVersion: resourceVersion, Patch: patch, Unknown: unknownFields(patch)}
}

// unknownFields returns the fields of a patch that no kubelet knows, for people.
func unknownFields(patch string) string {
	return bounded.Text(strings.Join(kubeletconfig.UnknownFields(map[string]string{VariantKey: patch}, VariantKey, 0), ", "), 100)
}

// readPatch converts YAML or JSON to canonical JSON: sorted keys, no comments, numbers as written. Its errors
// quote no values.
func readPatch(document []byte, unset []string) (string, error) {
	if len(document) > payloadLimit {
		return "", errors.New("it is larger than 1 MiB")
	}
	tree, err := kubeletconfig.Decode(document)
	if err != nil {
		return "", err
	}
	for _, field := range unset {
		if err := setNull(tree, strings.Split(field, ".")); err != nil {
			return "", fmt.Errorf("unset %s: %w", field, err)
		}
	}
	if err := checkPatch(tree); err != nil {
		return "", err
	}
	if masked := kubeletconfig.MaskedFields(tree); len(masked) > 0 {
		return "", fmt.Errorf("%s is masked (%s), so it is not the value", masked[0], kubeletconfig.Mask)
	}
	text, err := canonical(tree)
	if err != nil {
		return "", err
	}
	return text, checkKnown(tree, text)
}

func canonical(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // sorts keys
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", errors.New("it cannot be written as JSON")
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

func setNull(tree map[string]any, at []string) error {
	if len(at) == 1 {
		tree[at[0]] = nil
		return nil
	}
	child, is := tree[at[0]].(map[string]any)
	if !is {
		if old, there := tree[at[0]]; there && old != nil {
			return fmt.Errorf("%s is no mapping", at[0])
		}
		child = map[string]any{}
		tree[at[0]] = child
	}
	return setNull(child, at[1:])
}

func checkPatch(tree map[string]any) error {
	for field, want := range map[string]string{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"} {
		if value, is := tree[field]; is && value != want {
			return fmt.Errorf("its %s is not %s", field, want)
		}
	}
	for _, field := range strings.Fields(pathFields) {
		if text, is := lookUp(tree, strings.Split(field, ".")).(string); is && text != "" && !path.IsAbs(text) {
			return fmt.Errorf("%s is a relative path", field)
		}
	}
	return nil
}

// checkKnown refuses a layer in which no kubelet knows any field: it was meant for something else, and would
// change nothing on any node.
func checkKnown(tree map[string]any, text string) error {
	unknown := kubeletconfig.UnknownFields(map[string]string{VariantKey: text}, VariantKey, 0)
	fields := make([]string, 0, len(tree))
	for field := range tree {
		if field != "kind" && field != "apiVersion" {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	if len(fields) == 0 || len(fields) > len(unknown) || slices.ContainsFunc(fields, func(f string) bool { return !slices.Contains(unknown, f) }) {
		return nil
	}
	return fmt.Errorf("no kubelet knows any of its fields (%s); a layer has fields of KubeletConfiguration at its top", bounded.Text(strings.Join(fields, ", "), 100))
}

func lookUp(tree map[string]any, at []string) any {
	for ; len(at) > 1; at = at[1:] {
		child, is := tree[at[0]].(map[string]any)
		if !is {
			return nil
		}
		tree = child
	}
	return tree[at[0]]
}
