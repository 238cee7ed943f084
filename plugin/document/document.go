package document

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// A Document is a KubeletConfiguration as its author wrote it.
type Document struct {
	Tree     map[string]any // without kind and apiVersion; values as in configz: durations as 1m0s
	Warnings []string       // unknown and duplicate fields

	// Over is set for a configuration of layers over each node's own file, and nil for a whole file. Tree then has the
	// merged layers, without that file.
	Over *Layered
}

// Read decodes payload[key]. It fails for what no kubelet accepts: a missing key, a text that is not a
// KubeletConfiguration, or a value of the wrong type.
func Read(payload map[string]string, key string) (Document, error) {
	warnings := kubeletconfig.Warnings(payload, key, 0)
	over, err := readLayered(payload[key])
	if err != nil {
		return Document{}, fmt.Errorf("key %q %w", key, err)
	}
	if payload, err = WithoutBase(payload, key); err != nil {
		return Document{}, err
	}
	// Without a folder and gates Render changes nothing.
	rendered, err := kubeletconfig.Render(payload, key, "", nil)
	if err != nil {
		return Document{}, err
	}
	var typed v1beta1.KubeletConfiguration
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(rendered, &typed); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %s%s; correct the field", key, faultyField(rendered), kubeletconfig.Quote(err.Error()))
	}
	normal, err := json.Marshal(typed)
	if err != nil {
		return Document{}, fmt.Errorf("key %q cannot be written again: %w", key, err)
	}
	var written, normalised map[string]any
	if err := utiljson.Unmarshal(rendered, &written); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %w", key, err)
	}
	if err := utiljson.Unmarshal(normal, &normalised); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %w", key, err)
	}
	delete(written, "kind")
	delete(written, "apiVersion")
	return Document{Tree: takeFrom(written, normalised), Warnings: warnings, Over: over}, nil
}

// faultyField returns the field that does not decode, as "NAME: ", because the library does not name it if it is,
// for example, a duration.
func faultyField(rendered []byte) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(rendered, &fields); err != nil {
		return ""
	}
	for _, name := range SortedKeys(fields) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil && sigsjson.UnmarshalCaseSensitivePreserveInts(one, &v1beta1.KubeletConfiguration{}) != nil {
			return kubeletconfig.Quote(name) + ": "
		}
	}
	return ""
}

// takeFrom returns the fields of written with their values from normal. A round trip through the types writes
// durations and quantities as a kubelet does, but drops unknown fields and adds fields that were not written.
func takeFrom(written, normal map[string]any) map[string]any {
	taken := make(map[string]any, len(written))
	for name, value := range written {
		other, has := normal[name]
		inner, isTree := value.(map[string]any)
		otherInner, otherIsTree := other.(map[string]any)
		switch {
		case !has:
			taken[name] = value
		case isTree && otherIsTree:
			taken[name] = takeFrom(inner, otherInner)
		default:
			taken[name] = other
		}
	}
	return taken
}

// Header is the beginning of every KubeletConfiguration.
const Header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// Encode returns a node's configuration as a KubeletConfiguration in YAML.
func Encode(node string, tree map[string]any) ([]byte, error) {
	if len(tree) == 0 {
		return []byte(Header), nil
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", node, err)
	}
	return append([]byte(Header), text...), nil
}
